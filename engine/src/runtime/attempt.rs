//! One row, fetched and taken through its nodes, in a process that may die of it.

use std::sync::Arc;

use super::board::At;
use super::project::project;
use super::row_task::map_rows;
use super::running::{Part, build};
use super::trial::Trial;
use crate::config::Port;
use crate::data::{Alloc, Batch, HeapPool, Reject, RowPos, code};
use crate::graph::{Graph, Merge};
use crate::node::{Cancel, Fault, Reading, Role, Stage};

/// Ways from a source to a node that are tried: a union may have several.
const MOST_WAYS: usize = 16;

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempted {
    /// The item was read, and the row's way through the nodes begins.
    Fetched,
    /// The row was taken through all of them, or was rejected on its way.
    Done,
}

/// Does with the row what a run would do with it, up to and in the trial's node, and tells how far it is. Nothing comes of
/// the row; that the process is there afterwards is the result.
///
/// # Errors
/// If the pipeline is not one in which that can be done.
pub fn attempt(graph: &Graph, trial: &Trial, mut tell: impl FnMut(Attempted)) -> Result<(), Fault> {
    let unfit = |what: &str| Fault::permanent(format!("there is no {what} of this trial in the pipeline"));
    let node_idx = graph.nodes.iter().position(|node| node.name == trial.node).ok_or_else(|| unfit("node"))?;
    let source_idx = graph.with_role(Role::Source).find(|&at| graph.nodes[at].source == Some(trial.source));
    let source_idx = source_idx.ok_or_else(|| unfit("source"))?;
    let mut ways = Vec::new();
    find_ways(graph, source_idx, node_idx, &mut Vec::new(), &mut ways);
    if ways.is_empty() {
        return Err(unfit("way from the source to the node"));
    }
    let alloc: Arc<dyn Alloc> = Arc::new(HeapPool::new());
    let fetched = fetch(graph, source_idx, trial, &alloc)?;
    tell(Attempted::Fetched);
    for way in ways {
        let mut batch = fetched.clone();
        for node_idx in way {
            if batch.n_rows() == 0 {
                break;
            }
            batch = pass(graph, node_idx, batch, &alloc)?;
        }
    }
    tell(Attempted::Done);
    Ok(())
}

/// Collects the nodes between, in order and with the last: those that keep rows as they are, or work on each by itself.
fn find_ways(graph: &Graph, source_idx: usize, node_idx: usize, after: &mut Vec<usize>, ways: &mut Vec<Vec<usize>>) {
    if node_idx == source_idx {
        ways.push(after.iter().rev().copied().collect());
        return;
    }
    let node = &graph.nodes[node_idx];
    if node.merge == Merge::Join || ways.len() >= MOST_WAYS {
        return;
    }
    after.push(node_idx);
    for edge in node.inputs.iter().filter(|edge| edge.port == Port::Rows) {
        find_ways(graph, source_idx, edge.from, after, ways);
    }
    after.pop();
}

/// A node as a run that goes on builds it: what was listed once may be gone.
fn build_alone(graph: &Graph, node_idx: usize, alloc: &Arc<dyn Alloc>) -> Result<Stage, Fault> {
    build(graph, node_idx, Part { shard: None, is_resumed: true }, alloc, &Cancel::new())
}

fn fetch(graph: &Graph, source_idx: usize, trial: &Trial, alloc: &Arc<dyn Alloc>) -> Result<Batch, Fault> {
    let node = &graph.nodes[source_idx];
    let Stage::Source(source) = build_alone(graph, source_idx, alloc)? else {
        return Err(Fault::bug("a source that gives no rows").in_node(&node.name));
    };
    let (item, types) = (trial.item(), node.spec.new_types());
    let pos = RowPos { source: trial.source, index: trial.index, sub: trial.sub };
    let mapped = map_rows(1, "reading this", &types, &**alloc, &At::default(), |_, out| match &source.reading {
        Reading::Rows(fetch) => {
            out.text(0, item.id.as_deref().unwrap_or(&item.uri));
            out.text(1, &item.uri);
            fetch.fetch(trial.index, &item, out).map(drop)
        }
        Reading::Unpacked(unpack) => {
            let gone = || Reject::new(code::NOT_FOUND, format!("`{}` has no row {} any more", item.uri, trial.sub));
            let entry = unpack.open(trial.index, &item, trial.sub)?.next_entry().ok_or_else(gone)?;
            out.text(0, entry.id.as_deref().unwrap_or(&entry.uri));
            out.text(1, &entry.uri);
            match &entry.content {
                Ok(_) => unpack.read(&item, &entry, out),
                Err(reject) => Err(reject.clone()),
            }
        }
    });
    let positions = mapped.passed.iter().map(|_| pos).collect();
    Ok(project(&node.spec, &[&Batch::new(positions, Vec::new())], mapped.columns))
}

fn pass(graph: &Graph, node_idx: usize, batch: Batch, alloc: &Arc<dyn Alloc>) -> Result<Batch, Fault> {
    let node = &graph.nodes[node_idx];
    match build_alone(graph, node_idx, alloc)? {
        Stage::Pass => Ok(project(&node.spec, &[&batch], Vec::new())),
        Stage::Rows(map) => {
            let types = node.spec.new_types();
            let mapped =
                map_rows(batch.n_rows(), "the code for this row", &types, &**alloc, &At::default(), |row_idx, out| {
                    map.map_row(batch.row(row_idx), out)
                });
            Ok(project(&node.spec, &[&batch.take(&mapped.passed)], mapped.columns))
        }
        Stage::Fold(mut fold) => {
            let mut out = Vec::new();
            fold.push(batch, &mut out)?;
            fold.flush(&mut out)?;
            Ok(project(&node.spec, &[&Batch::concat(&out)], Vec::new()))
        }
        Stage::Source(_) | Stage::Infer(_) | Stage::Sink(_) => {
            Err(Fault::permanent("a row cannot be taken through it alone").in_node(&node.name))
        }
    }
}
