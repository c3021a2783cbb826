//! Data that lie in stores and on web servers, through the program itself and a real server that can be told to misbehave:
//! the right rows, the right number of requests, the same bytes after a kill.

mod containers;
mod faults;
mod images;
mod keys;
mod outputs;
// Shared with the tests of the command line, which use more of it.
#[allow(dead_code)]
#[path = "../cli/program.rs"]
mod program;
mod scene;
#[path = "../store_server/server.rs"]
mod server;
mod stopping;
mod web;
