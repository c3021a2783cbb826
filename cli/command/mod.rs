//! The commands, one file each.
//!
//! A new one is a file with its options and `run`, a line in [`Command`] and a line in [`Command::run`].

mod bench;
mod completions;
mod devices;
mod graph;
mod merge;
mod nodes;
mod plan;
mod rejects;
mod run;
mod schema;
mod status;
mod try_row;
mod tune;
mod validate;
mod verify;
mod worker;

use clap::{Subcommand, ValueEnum};

use crate::Context;
use crate::failure::Failure;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a pipeline
    Run(Box<run::Run>),
    /// Show how far runs are, alive or dead
    Status(status::Status),
    /// Sum up what runs have rejected, by code and node
    Rejects(rejects::Rejects),
    /// Put the outputs of a run's shards together
    Merge(merge::Merge),
    /// Find every mistake in pipelines without running them
    Validate(validate::Validate),
    /// Compare the pixels that a pipeline makes of its files with Pillow's
    Verify(verify::Verify),
    /// Show a pipeline as a graph, with the figures of a run on it if there is a report
    Graph(graph::Graph),
    /// Show how a pipeline would run on this machine: threads, queues, placement, outputs
    Plan(plan::Plan),
    /// Measure how fast a pipeline is; nothing is written
    Bench(bench::Bench),
    /// Find the settings with which a pipeline is fastest on this machine
    Tune(tune::Tune),
    /// Show the GPUs and the CPU, and how many workers fit on them
    Devices(devices::Devices),
    /// List the kinds of nodes, or show the manual of one
    Nodes(nodes::Nodes),
    /// Print the JSON Schema of pipeline files, for editors
    Schema(schema::Schema),
    /// Print a script that completes commands and options in a shell
    Completions(completions::Completions),
    /// Compute what `flowgpu run` sends: one of its worker processes
    #[command(hide = true)]
    Worker(worker::Worker),
    /// Take a row through the nodes that it may have killed a run in: what `flowgpu run` does apart from itself
    #[command(hide = true)]
    TryRow(try_row::TryRow),
}

impl Command {
    /// Does it, and says the exit code.
    pub(crate) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Command::Run(command) => command.run(cx),
            Command::Status(command) => command.run(cx),
            Command::Rejects(command) => command.run(cx),
            Command::Merge(command) => command.run(cx),
            Command::Validate(command) => command.run(cx),
            Command::Verify(command) => command.run(cx),
            Command::Graph(command) => command.run(cx),
            Command::Plan(command) => command.run(cx),
            Command::Bench(command) => command.run(cx),
            Command::Tune(command) => command.run(cx),
            Command::Devices(command) => command.run(),
            Command::Nodes(command) => command.run(cx),
            Command::Schema(command) => command.run(cx),
            Command::Completions(command) => command.run(),
            Command::Worker(command) => command.run(cx),
            Command::TryRow(command) => command.run(cx),
        }
    }
}

/// For people or for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines for people
    #[default]
    Text,
    /// Data for other programs
    Json,
}

/// A value as indented JSON.
fn json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
