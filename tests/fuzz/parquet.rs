//! `source.parquet`: footers, page headers, pages.

use engine::node::Reading;
use engine::node::harness::Harness;
use nodes::source::parquet::Parquet;

use crate::target::{Check, Target, as_it_is, nothing_made};
use crate::unpacking::{Scratch, rows, whole_rows};

pub const TARGET: Target = Target {
    name: "parquet",
    n_cases: 3_000,
    max_memory: 96 << 20,
    seeds: &[],
    made: nothing_made,
    dress: as_it_is,
    prepare,
};

fn prepare() -> Check {
    let scratch = Scratch::new();
    scratch.write("photo.jpg", b"a photograph");
    Box::new(move |input| {
        scratch.write("x.parquet", input);
        for with in [
            "{path: x.parquet, max_page_bytes: 8MiB}",
            "{path: x.parquet, column: uri, carry: none, max_page_bytes: 8MiB}",
        ] {
            let source = Harness::new::<Parquet>(with, vec![]).in_folder(scratch.path());
            let Ok(spec) = source.spec() else { continue };
            let items = source.items(100).unwrap_or_else(|fault| panic!("{fault}"));
            let stage = source.source().unwrap_or_else(|fault| panic!("{fault}"));
            let Reading::Unpacked(unpack) = stage.reading else { panic!("its items are row groups") };
            for item in items.iter().take(4) {
                // What is passed over is not looked into, so the rows behind damage may be others when a run goes on there.
                if let Ok(all) = whole_rows(&*unpack, &spec, item) {
                    let _ = rows(&*unpack, &spec, item, all.len() as u32 / 2);
                }
            }
        }
    })
}
