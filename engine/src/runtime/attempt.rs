//! One row, fetched and taken through its nodes, in a process that may die of it.

use std::sync::Arc;

use super::alone::{Alone, ways};
use super::trial::Trial;
use crate::data::{Alloc, HeapPool, RowPos};
use crate::graph::Graph;
use crate::node::{Fault, Role};

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
    let ways = ways(graph, source_idx, node_idx);
    if ways.is_empty() {
        return Err(unfit("way from the source to the node"));
    }
    let alloc: Arc<dyn Alloc> = Arc::new(HeapPool::new());
    let fetched = {
        let pos = RowPos { source: trial.source, index: trial.index, sub: trial.sub };
        Alone::build(graph, source_idx, Alone::RESUMED, &alloc)?.fetch(pos, &trial.item())?
    };
    tell(Attempted::Fetched);
    for way in ways {
        let mut row = fetched.clone();
        for node_idx in way {
            let Ok(batch) = row else { break };
            row = Alone::build(graph, node_idx, Alone::RESUMED, &alloc)?.pass(batch)?;
        }
    }
    tell(Attempted::Done);
    Ok(())
}
