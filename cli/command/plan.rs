//! `flowgpu plan`: how a pipeline would run on this machine.

mod bar;
mod json;
mod text;

use std::sync::Arc;

use engine::config::RunOptions;
use engine::graph::GraphNode;
use engine::schedule::{self, Inventory};

use super::Format;
use crate::args::{PipelineArgs, PlacementArgs};
use crate::failure::{Failure, exit};
use crate::pipeline::{Pipeline, from_here};
use crate::progress::Terminal;
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu plan classify.yaml
  flowgpu plan classify.yaml --device cuda:0 --workers-per-device 2
  flowgpu plan classify.yaml --format json

No data are read and no GPU is opened; models' headers are read, and the driver is asked for memory.";

/// Shows the plan.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Plan {
    #[command(flatten)]
    pipeline: PipelineArgs,

    #[command(flatten)]
    placement: PlacementArgs,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Plan {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let run = self.placement.over(RunOptions::default());
        let loaded = Pipeline::load(&self.pipeline.file, &self.pipeline.vars, run, cx.registry)?;
        let inventory = Inventory::read_for(&loaded.graph);
        let plan = schedule::Plan::make(Arc::new(loaded.graph), &inventory)?;
        let text = match self.format {
            Format::Text => text::text(&plan, &Terminal::stdout()),
            Format::Json => super::json(&json::json(&plan)),
        };
        output::answer(&text)?;
        Ok(exit::DONE)
    }
}

/// The files that a run writes.
fn outputs(plan: &schedule::Plan) -> Vec<String> {
    let graph = &plan.graph;
    let of = |node: &GraphNode| match node.node.writes(&graph.base) {
        paths if paths.is_empty() => vec!["standard output".to_owned()],
        paths => paths.iter().map(|path| from_here(path).display().to_string()).collect(),
    };
    graph.sinks().flat_map(|sink| of(&graph.nodes[sink])).collect()
}

/// The names of a worker's models.
fn models(plan: &schedule::Plan, worker: &schedule::WorkerPlace) -> Vec<String> {
    worker.models.iter().map(|&node| plan.graph.nodes[node].name.clone()).collect()
}
