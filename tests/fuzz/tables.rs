//! What `source.csv` and `source.jsonl` have in common.

use engine::node::NodeKind;
use engine::node::harness::Harness;

use crate::mutate::Random;
use crate::packing::maybe_packed;
use crate::target::Check;
use crate::unpacking::{OneFile, Scratch};

/// A table of kind `K` with the options `with`, and with those that are found in its first line.
pub fn table<K: NodeKind>(with: &'static str, beginning: &'static str) -> Check {
    let scratch = Scratch::new();
    scratch.write("x", beginning.as_bytes());
    scratch.write("photo.jpg", b"a photograph");
    let known = OneFile::new(&Harness::new::<K>(with, vec![]).in_folder(scratch.path()));
    Box::new(move |input| {
        scratch.write("x", input);
        let _ = known.read();
        let found = Harness::new::<K>("{path: x, max_line_bytes: 4KiB}", vec![]).in_folder(scratch.path());
        match found.spec() {
            Ok(_) => drop(OneFile::new(&found).read()),
            Err(error) => assert!(error.to_string().len() < 8192, "{} bytes of message", error.to_string().len()),
        }
    })
}

/// The checksums of tables are those of their packing.
pub fn dress(random: &mut Random, table: Vec<u8>) -> Vec<u8> {
    maybe_packed(random, table)
}
