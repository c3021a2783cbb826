//! `flowgpu plan`: how a pipeline would run on this machine.

use std::fmt::Write;
use std::sync::Arc;

use engine::config::{Devices, RunOptions};
use engine::graph::{self, GraphNode};
use engine::node::Role;
use engine::schedule::{self, Inventory, Replicate};
use serde_json::{Value as Json, json};

use super::Format;
use crate::args::PipelineArgs;
use crate::failure::{Failure, exit};
use crate::pipeline::{Pipeline, from_here};
use crate::progress::human::{bytes, count, grouped};
use crate::progress::{Charset, Terminal};
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu plan classify.yaml
  flowgpu plan classify.yaml --format json

No data are read; models' headers are.";

/// Shows the plan.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Plan {
    #[command(flatten)]
    pipeline: PipelineArgs,

    /// Where models are to run: auto, cpu, cuda, or GPUs by number such as cuda:0,2
    #[arg(long, value_name = "DEVICE")]
    device: Option<Devices>,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Plan {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let run = RunOptions { device: self.device.clone(), ..RunOptions::default() };
        let loaded = Pipeline::load(&self.pipeline.file, &self.pipeline.vars, run, cx.registry)?;
        let plan = schedule::Plan::make(Arc::new(loaded.graph), &Inventory::read(), &Replicate)?;
        let text = match self.format {
            Format::Text => text(&plan, &Terminal::stdout()),
            Format::Json => super::json(&json(&plan)),
        };
        output::answer(&text)?;
        Ok(exit::DONE)
    }
}

fn text(plan: &schedule::Plan, terminal: &Terminal) -> String {
    let graph = &plan.graph;
    let arrow = if terminal.charset == Charset::Unicode { "→" } else { "->" };
    let mut text = String::new();
    let mut line = |word: &str, rest: String| {
        // Writing into a String does not fail.
        let _ = writeln!(text, "{word:<10} {rest}");
    };
    line("host", format!("{}, {} of memory", count(plan.inventory.cores as u64, "core"), bytes(plan.inventory.memory)));
    let pools = plan.pools;
    let n_models = plan.graph.with_role(Role::Infer).count();
    let mut threads = vec![format!("reading {}", pools.io), format!("rows {}", pools.rows)];
    if n_models > 0 {
        threads.push(format!("models {}", pools.model));
    }
    line("threads", threads.join(", "));
    line("queues", queues(plan));
    for place in places(plan) {
        let node = &graph.nodes[place.node];
        let batch = node.schemas.first().and_then(|schema| schema.batch);
        let batch = batch.map(|size| format!(", batches of {}", grouped(size as u64))).unwrap_or_default();
        line(
            "placement",
            format!("{} {arrow} {}, {}{batch}", node.name, place.device, count(place.instances as u64, "instance")),
        );
    }
    let name_columns = graph.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0);
    let kind_columns = graph.nodes.iter().map(|node| node.kind.name().len()).max().unwrap_or(0);
    for (node_idx, node) in graph.nodes.iter().enumerate() {
        let word = if node_idx == 0 { "nodes" } else { "" };
        let detail = graph.redact(&node.spec.detail);
        let rest = format!("{:<name_columns$}  {:<kind_columns$}  {detail}", node.name, node.kind.name());
        line(word, rest.trim_end().to_owned());
    }
    for (number, path) in outputs(plan).into_iter().enumerate() {
        line(if number == 0 { "writes" } else { "" }, path);
    }
    text
}

/// Where a model runs, and how many instances of it.
struct Place {
    node: usize,
    device: String,
    instances: usize,
}

fn places(plan: &schedule::Plan) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for node in plan.graph.with_role(Role::Infer) {
        for worker in plan.placement.workers_of(node) {
            let device = plan.inventory.device_name(worker.device);
            match places.iter_mut().find(|place| (place.node, &place.device) == (node, &device)) {
                Some(place) => place.instances += 1,
                None => places.push(Place { node, device, instances: 1 }),
            }
        }
    }
    places
}

fn queues(plan: &schedule::Plan) -> String {
    let waits: Vec<_> = plan.graph.nodes.iter().zip(&plan.rooms).filter(|(node, _)| !node.inputs.is_empty()).collect();
    let common = waits.iter().map(|(_, room)| room.queue_batches).min().unwrap_or(0);
    let others = waits.iter().filter(|(_, room)| room.queue_batches != common);
    let others: Vec<_> = others.map(|(node, room)| format!("{} before `{}`", room.queue_batches, node.name)).collect();
    let mut text = format!("{} before each node", count(common as u64, "batch").replace("batchs", "batches"));
    if !others.is_empty() {
        text = format!("{text} ({})", others.join(", "));
    }
    format!("{text}, at most {} in all", bytes(plan.queue_memory))
}

fn outputs(plan: &schedule::Plan) -> Vec<String> {
    let graph = &plan.graph;
    let of = |node: &GraphNode| match node.node.writes(&graph.base) {
        paths if paths.is_empty() => vec!["standard output".to_owned()],
        paths => paths.iter().map(|path| from_here(path).display().to_string()).collect(),
    };
    graph.with_role(Role::Sink).flat_map(|sink| of(&graph.nodes[sink])).collect()
}

fn json(plan: &schedule::Plan) -> Json {
    let graph: &graph::Graph = &plan.graph;
    let nodes = graph.nodes.iter().zip(&plan.rooms).map(|(node, room)| {
        json!({
            "name": node.name,
            "kind": node.kind.name(),
            "detail": graph.redact(&node.spec.detail),
            "batch": node.output.batch,
            "room": room,
        })
    });
    let placement = places(plan).into_iter().map(
        |place| json!({"node": graph.nodes[place.node].name, "device": place.device, "instances": place.instances}),
    );
    json!({
        "name": graph.name,
        "host": plan.inventory,
        "threads": plan.pools,
        "queue_memory": plan.queue_memory,
        "placement": placement.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "writes": outputs(plan),
    })
}
