//! `flowgpu bench`: how fast a pipeline is, its input repeated and its outputs thrown away.

mod clock;
mod measured;

use std::sync::Arc;
use std::time::Duration;

use engine::config::RunOptions;
use engine::graph::Graph;
use engine::node::{Cancel, Role};
use engine::runtime::{Running, Setup};
use engine::schedule::{Inventory, Plan};
use serde_json::json;

use self::clock::Clock;
use self::measured::{Measured, Part};
use super::Format;
use crate::args::{PipelineArgs, PlacementArgs};
use crate::failure::{Failure, exit};
use crate::pipeline::Pipeline;
use crate::{Context, output};

/// Measures.
#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pipeline: PipelineArgs,

    #[command(flatten)]
    placement: PlacementArgs,

    /// How many seconds are measured, from the first batch on
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Bench {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let run = self.placement.over(RunOptions::default());
        let mut graph = Pipeline::load(&self.pipeline.file, &self.pipeline.vars, run, cx.registry)?.graph;
        let clock = Arc::new(Clock::new(Duration::from_secs(self.seconds), graph.nodes.len()));
        // Rejects of a measurement are counted only: the file is in a folder that goes away.
        let scratch = std::env::temp_dir().join(format!("flowgpu-bench-{}", std::process::id()));
        std::fs::create_dir(&scratch)
            .map_err(|error| Failure::fault(format!("cannot create a scratch folder: {error}")))?;
        graph.run.rejects = Some(scratch.join("rejects.jsonl").display().to_string());
        measure_instead(&mut graph, &clock);
        let measured = rejects_of(graph);
        // What is left there is in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&scratch);
        let n_rejects = measured?;
        let rate = clock.rate();
        let text = match self.format {
            Format::Json => super::json(&json!({"end_to_end": rate, "rejected": n_rejects})),
            Format::Text => {
                let rate = rate.map_or("no rows".to_owned(), |rate| format!("{rate:.1} rows/s"));
                format!("end to end  {rate}\nrejected    {n_rejects}\n")
            }
        };
        output::answer(&text)?;
        Ok(if n_rejects > 0 { exit::REJECTS } else { exit::DONE })
    }
}

/// Puts measured nodes in the place of the sources and sinks.
fn measure_instead(graph: &mut Graph, clock: &Arc<Clock>) {
    let limit = graph.run.limit.take();
    graph.run.max_rejects = None;
    for (node_idx, node) in graph.nodes.iter_mut().enumerate() {
        let part = match node.kind.role() {
            Role::Source => Part::Source { limit },
            Role::Sink => Part::Sink,
            _ => continue,
        };
        node.node = Arc::new(Measured { inner: node.node.clone(), node_idx, part, clock: clock.clone() });
    }
}

/// Runs it, without a journal, and says how many rows were rejected.
fn rejects_of(graph: Graph) -> Result<u64, Failure> {
    let inventory = Inventory::read_for(&graph);
    let plan = Plan::make(Arc::new(graph), &inventory)?;
    let setup = Setup { build: crate::BUILD.to_owned(), ..Setup::default() };
    let running = Running::start(plan, Cancel::new(), &setup, None)?;
    let stats = running.stats();
    let report = running.join();
    if let Some(fault) = report.fault {
        return Err(fault.into());
    }
    Ok(stats.rejects.load(std::sync::atomic::Ordering::Relaxed))
}
