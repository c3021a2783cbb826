//! Runs that are stopped and started again, by the real program: what is done again and what is not, what keeps a run
//! from going on, and what the program says about it.
//!
//! A run is stopped at a place, not at a moment: a model hangs on a row, once, and what is before that row is waited for.

mod again;
mod changes;
mod containers;
mod disk;
mod files;
mod kills;
mod locks;
// Shared with the tests of the command line, which use more of it.
#[allow(dead_code)]
#[path = "../cli/program.rs"]
mod program;
mod scene;
