//! What bad input, a full disk and missing permissions get, by the program itself.

mod archives;
mod bad_files;
mod bad_outputs;
mod bomb;
mod fifo;
mod thousand;
#[path = "../examples/workplace.rs"]
mod workplace;

use workplace::Workplace;

/// A user that owns nothing: the superuser may read and write everything.
const NOBODY: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];

/// What to put before a program so that permissions count for it.
fn unprivileged() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() { &NOBODY } else { &["env"] }
}

/// The program for tests, as a user for whom permissions count.
fn run_unprivileged(workplace: &Workplace, args: &[&str]) -> workplace::Ended {
    let program: Vec<_> = unprivileged().iter().copied().chain([env!("CARGO_BIN_EXE_flowgpu"), "run"]).collect();
    workplace.command(&program, args)
}

/// A row of a reject file: the file, the node and the stable word.
fn told(row: &serde_json::Value) -> [&str; 3] {
    ["uri", "node", "code"].map(|key| row[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {row}")))
}
