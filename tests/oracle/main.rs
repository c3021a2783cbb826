//! Runs pipelines, kills them, starts them again until they are done, and reads what they have written.
//!
//! Everything follows from a seed: the pipeline, its input, what happens to it and how it is run each time. Only the
//! moments at which something happens are the machine's. `scripts/oracle.sh` runs as many rounds from any seed as one likes;
//! the test runs the first fifty.
//!
//! What must hold is found by reading the outputs again, never from what the program says about itself: every row of the
//! input is in every output whose path it enters, or among the rejects, once per branch, in order; and the bytes are
//! those of the same pipeline run once without a disturbance.

mod case;
mod check;
mod dice;
mod disturbance;
mod inputs;
#[path = "../properties/pipeline.rs"]
mod pipeline;
mod progress;
mod reading;
#[path = "../properties/reference.rs"]
mod reference;
mod round;
mod session;
mod settings;
mod sketch;
mod tally;

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tally::Tally;

/// Rounds at a time. Most of their time is waiting.
const N_THREADS: u64 = 3;
/// After so many failures nobody needs more of them.
const MAX_FAILED: usize = 5;

fn number(variable: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return default };
    text.parse().unwrap_or_else(|_| panic!("`{variable}` is `{text}`, and has to be a number"))
}

/// Runs a round; what it has counted, or `None` if something did not hold.
fn round(seed: u64) -> Option<Tally> {
    let folder = tempfile::Builder::new().prefix("flowgpu-oracle-").tempdir().expect("a folder");
    let done = catch_unwind(|| round::run(seed, folder.path()));
    let Ok(tally) = done else {
        say(&format!("seed {seed} failed; its files are in {}", folder.keep().display()));
        return None;
    };
    Some(tally)
}

#[expect(clippy::print_stdout, reason = "what was done is worth knowing")]
fn say(text: &str) {
    println!("{text}");
}

#[test]
fn a_run_that_is_interrupted_again_and_again_gives_what_an_undisturbed_one_gives() {
    let (first, n_rounds) = (number("FLOWGPU_ORACLE_SEED", 1), number("FLOWGPU_ORACLE_ROUNDS", 50));
    let (next, tally, failed) = (AtomicU64::new(0), Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..N_THREADS.min(n_rounds) {
            scope.spawn(|| {
                while failed.lock().expect("no panic").len() < MAX_FAILED {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    if turn >= n_rounds {
                        return;
                    }
                    match round(first + turn) {
                        Some(counted) => tally.lock().expect("no panic").add(counted),
                        None => failed.lock().expect("no panic").push(first + turn),
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().expect("no panic");
    say(&format!("seeds {first} to {}: {tally}", first + n_rounds - 1));
    let failed = failed.into_inner().expect("no panic");
    let again = failed.first().map(|seed| format!("scripts/oracle.sh {seed} 1")).unwrap_or_default();
    assert!(failed.is_empty(), "failed: seeds {failed:?}; the first one again: {again}");
    assert!(tally.kills_after_commit * 2 > tally.kills, "most kills come after the first commit: {tally}");
}
