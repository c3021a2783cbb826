//! The shipped program.

use std::process::ExitCode;

fn main() -> ExitCode {
    flowgpu::main_with(&nodes::registry())
}
