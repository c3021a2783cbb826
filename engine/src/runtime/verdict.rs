//! What limited the run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::pools::pool_of;
use super::stats::{RunStats, Shares};
use crate::graph::Graph;
use crate::node::Role;

/// The node that set the pace.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Verdict {
    /// The node's index.
    #[serde(skip)]
    pub node_idx: usize,
    /// Its name.
    pub node: String,
    /// Its kind.
    pub kind: String,
    /// How it spent its time.
    pub shares: Shares,
    /// What could be done about it.
    pub hint: String,
}

impl Verdict {
    /// The node that waited least, for input or for room: the others waited for it. Of several the last, because a node
    /// behind a bottleneck starves and one before it is blocked. Nodes that share a pool also wait for its threads, which
    /// looks like work from outside: of those it is the one that has used the threads most.
    pub fn of(graph: &Graph, stats: &RunStats, elapsed: Duration) -> Option<Verdict> {
        let busy = |node_idx: usize| stats.nodes[node_idx].busy_part(elapsed);
        let work = |node_idx: usize| stats.nodes[node_idx].work.load(Ordering::Relaxed);
        let candidates =
            graph.order.iter().copied().filter(|&node_idx| graph.nodes[node_idx].kind.role() != Role::Batch);
        let busiest = candidates.max_by(|&a, &b| busy(a).total_cmp(&busy(b)))?;
        let pool = pool_of(graph, busiest);
        let sharers =
            graph.order.iter().copied().filter(|&node_idx| pool.is_some() && pool_of(graph, node_idx) == pool);
        let node_idx = sharers.max_by_key(|&node_idx| work(node_idx)).unwrap_or(busiest);
        let node = &graph.nodes[node_idx];
        Some(Verdict {
            node_idx,
            node: node.name.clone(),
            kind: node.kind.name().to_owned(),
            shares: stats.nodes[node_idx].shares(elapsed),
            hint: hint(node.kind.role()).to_owned(),
        })
    }
}

fn hint(role: Role) -> &'static str {
    match role {
        Role::Source => "faster storage, or more `threads: {io: …}` where it answers slowly",
        Role::Decode => "more cores, or smaller images in the source",
        Role::Infer => "a faster device, a smaller `dtype`, or a smaller model",
        Role::Batch | Role::Transform => "more cores",
        Role::Sink => "a faster disk, or fewer columns",
    }
}
