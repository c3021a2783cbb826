//! Whether every row that came in went out.

use crate::graph::{Graph, RowOrigin};

use super::stats::RunStats;

/// Rows that should have reached a sink since this run began: each source row once for each branch of a union, each
/// reject of a node whose rejects are read.
pub(super) fn expected(graph: &Graph, sink: usize, stats: &RunStats) -> u64 {
    let rows = |origin: &RowOrigin| match *origin {
        RowOrigin::Source(source) => stats.listed_here(source),
        RowOrigin::Rejects(node_idx) => stats.nodes[node_idx].rejects.load(std::sync::atomic::Ordering::Relaxed),
    };
    graph.nodes[sink].origins.iter().map(|(origin, &times)| rows(origin) * u64::from(times)).sum()
}
