//! Runs divided into shards, by the real program: shards that are killed and run again, and merged, give the bytes of a run
//! that was neither divided nor disturbed.

mod cluster;
mod dividing;
mod merging;
#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;
mod scene;
mod surviving;
