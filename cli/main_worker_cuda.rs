//! The same program with CUDA in it, for the worker processes that the shipped one starts on GPUs.
//!
//! It is a file of its own because it is linked against CUDA's libraries, and so does not start on a machine without them.

use std::process::ExitCode;

fn main() -> ExitCode {
    flowgpu::main_with(&nodes::registry())
}
