//! What does not come back is named, and what kills the process is found, by the real program.

mod hangs;
mod killer;
// Shared with the tests of the command line, which use more of it.
#[allow(dead_code)]
#[path = "../cli/program.rs"]
mod program;
mod share;
