//! Rows that were rejected, run again and summed up, by the real program.

mod again;
mod command;
// Shared with the tests of the command line, which use more of it.
#[allow(dead_code)]
#[path = "../cli/program.rs"]
mod program;
mod scene;
mod web;
