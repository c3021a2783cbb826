//! `flowgpu bench` and `flowgpu tune`: figures of every shape of pipeline, and no trace of the measuring.

#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;

mod measuring;
mod refusing;
mod tuning;
