//! A shard's part of each source.

use super::resume::Nothing;
use crate::graph::Graph;
use crate::journal::Slices;
use crate::node::{Cancel, Fault, Role, Shard, Stage};

/// Leaves of each source's listing what belongs to the shard. By source: what is added to a number of the shard's to get
/// the source's own.
///
/// # Errors
/// A source that cannot be listed, or divided as it was for other shards.
pub(super) fn divide(
    graph: &Graph,
    shard: Option<Shard>,
    built: &mut [(usize, Stage)],
    cancel: &Cancel,
) -> Result<Vec<u64>, Fault> {
    let mut offsets = vec![0; graph.with_role(Role::Source).count()];
    let Some(shard) = shard else { return Ok(offsets) };
    let slices = Slices::open(graph, shard);
    for (node_idx, stage) in built {
        let node = &graph.nodes[*node_idx];
        let (Stage::Source(source), Some(number)) = (stage, node.source.map(|number| number as usize)) else {
            continue;
        };
        let list = std::mem::replace(&mut source.list, Box::new(Nothing));
        let (list, slice) = slices.take(number, list, cancel).map_err(|fault| fault.in_node(&node.name))?;
        source.list = list;
        offsets[number] = slice.start;
        let n_items = slice.n_items();
        // Nothing is known of a listing that was cut short.
        source.count = (!cancel.is_draining()).then(|| Box::new(move |_: &Cancel| Some(n_items)) as _);
    }
    Ok(offsets)
}
