//! Nodes that a single row is taken through, without a run around them.

use std::sync::Arc;

use super::board::At;
use super::project::project;
use super::row_task::{Mapped, map_rows};
use super::running::{Part, build};
use crate::config::Port;
use crate::data::{Alloc, Batch, ColumnType, Reject, RowPos, code};
use crate::graph::{Graph, GraphNode, Merge};
use crate::node::{Cancel, Fault, Item, Reading, Stage};

/// Ways from a source to a node that are found: a union may have several.
const MOST_WAYS: usize = 16;

/// The nodes between, in order and with the last, for each way from the source to the node: those that keep rows as they are, or
/// work on each by itself.
pub(super) fn ways(graph: &Graph, source_idx: usize, node_idx: usize) -> Vec<Vec<usize>> {
    let mut ways = Vec::new();
    collect(graph, source_idx, node_idx, &mut Vec::new(), &mut ways);
    ways
}

fn collect(graph: &Graph, source_idx: usize, node_idx: usize, after: &mut Vec<usize>, ways: &mut Vec<Vec<usize>>) {
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
        collect(graph, source_idx, edge.from, after, ways);
    }
    after.pop();
}

/// A node, built, that rows are taken through one at a time.
pub(super) struct Alone<'g> {
    node: &'g GraphNode,
    stage: Stage,
    new_types: Vec<ColumnType>,
    alloc: Arc<dyn Alloc>,
}

impl<'g> Alone<'g> {
    /// As in a run that goes on: what was listed once may be gone.
    pub(super) const RESUMED: Part = Part { shard: None, is_resumed: true };

    /// The node, built as in a run that is `part`.
    pub(super) fn build(graph: &'g Graph, node_idx: usize, part: Part, alloc: &Arc<dyn Alloc>) -> Result<Self, Fault> {
        let stage = build(graph, node_idx, part, alloc, &Cancel::new())?;
        let node = &graph.nodes[node_idx];
        Ok(Alone { node, stage, new_types: node.spec.new_types(), alloc: alloc.clone() })
    }

    /// The node's stage.
    pub(super) fn stage(&mut self) -> &mut Stage {
        &mut self.stage
    }

    /// A row of an item, or why it is rejected; a row that the item does not have is one that is not found.
    pub(super) fn fetch(&self, pos: RowPos, item: &Item) -> Result<Result<Batch, Reject>, Fault> {
        let Stage::Source(stage) = &self.stage else {
            return Err(Fault::bug("a source that gives no rows").in_node(&self.node.name));
        };
        let (what, at) = ("reading this", At::default());
        let mapped = map_rows(1, what, &self.new_types, &*self.alloc, &at, |_, out| match &stage.reading {
            Reading::Rows(fetch) => {
                out.text(0, item.id.as_deref().unwrap_or(&item.uri));
                out.text(1, &item.uri);
                fetch.fetch(pos.index, item, out).map(drop)
            }
            Reading::Unpacked(unpack) => {
                let gone = || Reject::new(code::NOT_FOUND, format!("`{}` has no row {} any more", item.uri, pos.sub));
                let entry = unpack.open(pos.index, item, pos.sub)?.next_entry().ok_or_else(gone)?;
                out.text(0, entry.id.as_deref().unwrap_or(&entry.uri));
                out.text(1, &entry.uri);
                match &entry.content {
                    Ok(_) => unpack.read(item, &entry, out),
                    Err(reject) => Err(reject.clone()),
                }
            }
        });
        let positions = mapped.passed.iter().map(|_| pos).collect();
        Ok(self.outcome(mapped, Batch::new(positions, Vec::new())))
    }

    /// What the node makes of a row, or why it is rejected.
    pub(super) fn pass(&mut self, row: Batch) -> Result<Result<Batch, Reject>, Fault> {
        match &mut self.stage {
            Stage::Pass => Ok(Ok(project(&self.node.spec, &[&row], Vec::new()))),
            Stage::Rows(map) => {
                let what = "the code for this row";
                let mapped = map_rows(row.n_rows(), what, &self.new_types, &*self.alloc, &At::default(), |at, out| {
                    map.map_row(row.row(at), out)
                });
                let passed = row.take(&mapped.passed);
                Ok(self.outcome(mapped, passed))
            }
            Stage::Fold(fold) => {
                let mut out = Vec::new();
                fold.push(row, &mut out)?;
                fold.flush(&mut out)?;
                Ok(Ok(project(&self.node.spec, &[&Batch::concat(&out)], Vec::new())))
            }
            Stage::Source(_) | Stage::Infer(_) | Stage::Sink(_) => {
                Err(Fault::permanent("a row cannot be taken through it alone").in_node(&self.node.name))
            }
        }
    }

    fn outcome(&self, mapped: Mapped, passed: Batch) -> Result<Batch, Reject> {
        match mapped.rejects.into_iter().next() {
            Some((_, reject)) => Err(reject),
            None => Ok(project(&self.node.spec, &[&passed], mapped.columns)),
        }
    }
}
