//! Bytes made to do harm, for everything that reads bytes: each target replays what is kept for it and then as many changes of
//! it as its number of cases, from a fixed seed. `scripts/fuzz.sh TARGET SECONDS SEED` goes on for as long as is wanted.
//!
//! A case passes if nothing panics, memory stays below the target's bound, it ends, and what the target promises holds.
//! A new target is a file here, and a line in each of the two lists below.

#![allow(clippy::print_stderr, reason = "whoever runs a target by hand wants to see how it goes")]

mod csv;
mod drive;
mod frames;
mod image;
mod journal;
mod jsonl;
mod memory;
mod mutate;
mod onnx;
mod packing;
mod parquet;
mod pickle;
mod safetensors;
mod sums;
mod tables;
mod tar;
mod target;
mod unpacking;
mod watch;
mod yaml;

use target::Target;

/// A test for each, and the list that `scripts/fuzz.sh` chooses from.
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        const TARGETS: &[Target] = &[$($name::TARGET),*];
        mod each { $(#[test] fn $name() { crate::drive::replay_and_change(&crate::$name::TARGET) })* }
    };
}

targets![csv, frames, image, journal, jsonl, onnx, parquet, pickle, safetensors, tar, yaml];

/// Run by `scripts/fuzz.sh`, which says in the environment what is wanted.
#[test]
#[ignore = "it runs for as long as it is told to"]
fn by_hand() {
    let said = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("scripts/fuzz.sh sets {name}"));
    let number = |name: &str| said(name).parse().unwrap_or_else(|_| panic!("{name} is no number"));
    let name = said("FLOWGPU_FUZZ_TARGET");
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("no target `{name}`; there are {}", names.join(", ")));
    drive::by_hand(target, number("FLOWGPU_FUZZ_SECONDS"), number("FLOWGPU_FUZZ_SEED"));
}
