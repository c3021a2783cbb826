//! Outputs as others find them: read with the readers that people use, and as objects of a store.

// Shared with the tests of the command line, which use more of it.
#[allow(dead_code)]
#[path = "../cli/program.rs"]
mod program;
mod readers;
#[path = "../store_server/server.rs"]
mod server;
mod stores;
