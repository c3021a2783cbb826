//! The command line of flowgpu: arguments in, diagnostics, pictures and figures out.
//!
//! The program is [`main_with`] over a list of kinds, so that the shipped binary and the one for tests differ in that
//! list alone. Everything that is decided here is about people and terminals; what a pipeline means and how it runs is
//! for the engine.

mod args;
mod command;
mod failure;
mod logs;
mod manual;
mod measure;
mod output;
mod panics;
mod pipeline;
pub mod progress;
mod shards;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use engine::node::Registry;

use crate::args::Cli;
use crate::failure::Failure;
use crate::progress::AboveBars;

/// The version and a hash of the sources: worker processes must be of the same build.
pub(crate) const BUILD: &str = env!("FLOWGPU_BUILD");

/// What every command may use.
pub(crate) struct Context<'a> {
    /// The kinds that there are.
    pub(crate) registry: &'a Registry,
    /// Where log lines and messages go while a run shows its progress.
    pub(crate) above: AboveBars,
}

/// The program with these kinds: reads the process's arguments, and says what its exit code is.
pub fn main_with(registry: &Registry) -> ExitCode {
    ExitCode::from(run(registry))
}

fn run(registry: &Registry) -> u8 {
    panics::install();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    let above = AboveBars::default();
    if let Err(failure) = logs::start(&above) {
        return failure.tell();
    }
    let cx = Context { registry, above };
    // A panic of the main thread has been told by the hook.
    let done = catch_unwind(AssertUnwindSafe(|| cli.command.run(&cx)));
    match done.unwrap_or(Err(Failure::Panicked)) {
        Ok(code) => code,
        Err(failure) => failure.tell(),
    }
}
