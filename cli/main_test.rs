//! The same program with kinds that misbehave on purpose, for tests. It is not shipped.

use std::process::ExitCode;

fn main() -> ExitCode {
    flowgpu::main_with(&nodes::testing_registry())
}
