//! `source.webdataset`: tars as they are, and packed.

use engine::node::harness::Harness;
use nodes::source::webdataset::Webdataset;

use crate::mutate::Random;
use crate::packing::maybe_packed;
use crate::target::{Check, Target, nothing_made};
use crate::unpacking::{OneFile, Scratch};

pub const TARGET: Target =
    Target { name: "tar", n_cases: 6_000, max_memory: 12 << 20, seeds: &[], made: nothing_made, dress, prepare };

const WITH: &str = "{path: x.tar, carry: {caption: txt, label: cls}, max_member_bytes: 64KiB, max_header_bytes: 16KiB}";

fn prepare() -> Check {
    let scratch = Scratch::new();
    scratch.write("x.tar", b"");
    let source = OneFile::new(&Harness::new::<Webdataset>(WITH, vec![]).in_folder(scratch.path()));
    Box::new(move |input| {
        scratch.write("x.tar", input);
        let Ok(rows) = source.read() else { return };
        let n_bytes: usize = rows.iter().filter_map(|row| Some(row.values.as_ref().ok()?.0)).sum();
        // What is packed may be longer than the file: the largest input, as long as a code for it is short.
        let is_packed = input.starts_with(&[0x1f, 0x8b]) || input.get(1..4) == Some(b"\xb5\x2f\xfd");
        assert!(is_packed || n_bytes <= input.len(), "{n_bytes} bytes out of {}", input.len());
    })
}

fn dress(random: &mut Random, mut tar: Vec<u8>) -> Vec<u8> {
    if !random.one_in(8) {
        // Blocks that look like headers get a right sum, whether they are where a reader looks or not.
        for block in tar.as_chunks_mut::<512>().0 {
            let is_header = block[257..262] == *b"ustar" || block[148..154].iter().all(u8::is_ascii_digit);
            if is_header {
                block[148..156].fill(b' ');
                let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
                block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            }
        }
    }
    maybe_packed(random, tar)
}
