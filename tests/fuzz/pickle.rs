//! Weight files of `torch.save`: a pickle in a zip archive, or between others. Nothing in them is run.

use nodes::testing::read_weights;

use crate::mutate::Random;
use crate::sums::crc32;
use crate::target::{Check, Target, nothing_made};
use crate::unpacking::Scratch;

pub const TARGET: Target = Target {
    name: "pickle",
    n_cases: 15_000,
    max_memory: 16 << 20,
    seeds: &["nodes/tests/weights"],
    made: nothing_made,
    dress,
    prepare,
};

fn prepare() -> Check {
    let scratch = Scratch::new();
    Box::new(move |input| {
        let path = scratch.write("x.pth", input);
        if let Err(error) = read_weights(&path) {
            assert!(error.to_string().contains("x.pth"), "{error}");
            assert!(error.to_string().len() < 64 << 10, "{} bytes of message", error.to_string().len());
        }
        let names = std::fs::read_dir(scratch.path()).expect("a folder").count();
        assert_eq!(names, 1, "something was written");
    })
}

/// Makes the sums of what an archive stores right, by its directory.
fn dress(random: &mut Random, mut file: Vec<u8>) -> Vec<u8> {
    if !file.starts_with(b"PK") || random.one_in(6) {
        return file;
    }
    let number = |file: &[u8], at: usize, width: usize| {
        let bytes = file.get(at..at + width)?;
        Some(bytes.iter().rev().fold(0usize, |number, &byte| number << 8 | usize::from(byte)))
    };
    let entries: Vec<_> =
        (0..file.len().saturating_sub(45)).filter(|&at| file[at..].starts_with(b"PK\x01\x02")).collect();
    for entry in entries {
        let mended = || {
            let (n_bytes, local) = (number(&file, entry + 20, 4)?, number(&file, entry + 42, 4)?);
            let start = local + 30 + number(&file, local + 26, 2)? + number(&file, local + 28, 2)?;
            let body = file.get(start..start.checked_add(n_bytes)?)?;
            Some((local, crc32(body).to_le_bytes()))
        };
        if let Some((local, sum)) = mended() {
            file[entry + 16..entry + 20].copy_from_slice(&sum);
            file[local + 14..local + 18].copy_from_slice(&sum);
        }
    }
    file
}
