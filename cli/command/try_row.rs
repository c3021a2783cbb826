//! `flowgpu try-row`: takes one row through the nodes that it may have killed a run in.
//!
//! It is started by `flowgpu run`, gets the trial on its standard input, and says on its standard output how far it came.
//! That it is there to say so is what the other wants to know.

use std::io::{self, Read, Write};
use std::thread;

use engine::config::RunOptions;
use engine::graph::Graph;
use engine::runtime::{Attempted, Trial, attempt};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::Context;
use crate::args::PipelineArgs;
use crate::failure::{Failure, exit};
use crate::pipeline::Pipeline;

/// Said when the item was read.
pub(super) const FETCHED: &str = "fetched";
/// Said when the row was taken through all of its nodes.
pub(super) const DONE: &str = "done";
/// Said, with the reason, when that cannot be done.
pub(super) const UNTRIED: &str = "untried: ";

/// Tries a row.
#[derive(Debug, clap::Args)]
pub(crate) struct TryRow {
    #[command(flatten)]
    pipeline: PipelineArgs,
}

impl TryRow {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        // Nobody would hear what an orphan has to say.
        let tied = set_parent_process_death_signal(Some(Signal::KILL));
        tied.map_err(|error| Failure::fault(format!("the trial of a row cannot start: {error}")))?;
        let mut text = Vec::new();
        io::stdin().read_to_end(&mut text).map_err(|error| Failure::fault(format!("no trial comes: {error}")))?;
        let by_hand = |_| Failure::usage("`flowgpu try-row` is started by `flowgpu run`, not by hand");
        let trial: Trial = serde_json::from_slice(&text).map_err(by_hand)?;
        let loaded = Pipeline::load(&self.pipeline.file, &self.pipeline.vars, RunOptions::default(), cx.registry)?;
        // On a thread as those that decode: the main thread has a larger stack, and would not overflow where they do.
        let tried = thread::scope(|scope| {
            let tried =
                thread::Builder::new().name("rows".to_owned()).spawn_scoped(scope, || tried(&loaded.graph, &trial));
            tried.map(|thread| thread.join())
        });
        match tried {
            Ok(Ok(())) => Ok(exit::DONE),
            Ok(Err(_)) => Err(Failure::Panicked),
            Err(error) => Err(Failure::fault(format!("the trial of a row has no thread: {error}"))),
        }
    }
}

fn tried(graph: &Graph, trial: &Trial) {
    let done = attempt(graph, trial, |how_far| {
        say(match how_far {
            Attempted::Fetched => FETCHED,
            Attempted::Done => DONE,
        });
    });
    if let Err(fault) = done {
        say(&format!("{UNTRIED}{}", fault.message.replace('\n', " ")));
    }
}

/// At once: what is said last before a death counts.
fn say(line: &str) {
    let mut stdout = io::stdout().lock();
    // Without a listener it is no trial.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
