//! A shard's part of each source.

use std::sync::Arc;

use super::board::Board;
use super::resume::Nothing;
use crate::graph::Graph;
use crate::journal::Slices;
use crate::node::{Cancel, Counting, Fault, Item, List, Reading, Role, Shard, Stage};

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
    board: &Board,
) -> Result<Vec<u64>, Fault> {
    let mut offsets = vec![0; graph.with_role(Role::Source).count()];
    let Some(shard) = shard else { return Ok(offsets) };
    let slices = Slices::open(graph, shard);
    for (node_idx, stage) in built {
        let node = &graph.nodes[*node_idx];
        let (Stage::Source(source), Some(number)) = (stage, node.source.map(|number| number as usize)) else {
            continue;
        };
        let counting = Arc::new(Counting::new(cancel.clone()));
        let hold = board.lane(*node_idx, 1).hold(counting.clone());
        let list = std::mem::replace(&mut source.list, Box::new(Nothing));
        let list = Box::new(Counted { list, counting });
        let (list, slice) = slices.take(number, list, cancel).map_err(|fault| fault.in_node(&node.name))?;
        drop(hold);
        source.list = list;
        offsets[number] = slice.start;
        let n_items = slice.n_items();
        // Nothing is known of a listing that was cut short.
        let is_known = !cancel.is_draining() && matches!(source.reading, Reading::Rows(_));
        source.count = is_known.then(|| Box::new(move |_: &Counting| Some(n_items)) as _);
    }
    Ok(offsets)
}

/// Counts what is listed, so that whoever watches sees a long listing move.
struct Counted {
    list: Box<dyn List>,
    counting: Arc<Counting>,
}

impl List for Counted {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let n_before = items.len();
        self.list.next_items(max, items)?;
        self.counting.came_to(self.counting.n_seen() + (items.len() - n_before) as u64);
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.list.seek(index)
    }

    fn is_fixed(&self) -> bool {
        self.list.is_fixed()
    }
}
