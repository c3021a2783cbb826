//! How a graph will run on a machine.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{Inventory, Need, PlaceError, Placement, Policy};
use crate::config::Devices;
use crate::graph::{Graph, Merge};
use crate::node::Role;

/// Batches that may wait before a node when the file does not say.
const QUEUE_BATCHES: usize = 4;
/// Pieces of work that may be under way in a node for each thread of its pool: one that takes long holds back the
/// emission of those behind it, and this is how many the other threads can take meanwhile.
const WINDOW_PER_THREAD: usize = 8;
/// Bytes that rows between nodes may take by default, unless memory is scarce.
const QUEUE_MEMORY: u64 = 256 << 20;

/// A graph placed and sized for a machine. Nothing is started yet.
#[derive(Debug)]
pub struct Plan {
    /// What runs.
    pub graph: Arc<Graph>,
    /// The machine that it was planned for.
    pub inventory: Inventory,
    /// How many threads each pool has.
    pub pools: Pools,
    /// Where each model runs.
    pub placement: Placement,
    /// How much may wait before and be under way in each node, by index.
    pub rooms: Vec<Room>,
    /// Bytes that rows between nodes may take, all queues together.
    pub queue_memory: u64,
}

/// How many threads each pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Pools {
    /// Threads that read.
    pub io: usize,
    /// Threads that work on rows.
    pub rows: usize,
    /// Threads that models on the CPU compute with.
    pub model: usize,
}

/// How much may wait before a node, and be under way in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Room {
    /// Batches that may wait before it.
    pub queue_batches: usize,
    /// Bytes that may wait before it; one batch always may.
    pub queue_bytes: usize,
    /// Pieces of work that may be under way in it.
    pub window: usize,
    /// Bytes that may be under way in it; one piece for each thread always may.
    pub window_bytes: usize,
}

/// Why a graph cannot run on a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct PlanError(#[from] pub PlaceError);

impl Plan {
    /// Places and sizes `graph` for a machine.
    ///
    /// # Errors
    /// If a model cannot be placed.
    pub fn make(graph: Arc<Graph>, inventory: &Inventory, policy: &dyn Policy) -> Result<Plan, PlanError> {
        let pools = pools(&graph, inventory);
        let needs: Vec<_> = graph
            .with_role(Role::Infer)
            .map(|node| Need {
                node,
                name: graph.nodes[node].name.clone(),
                devices: graph.run.device.clone().unwrap_or(Devices::Auto),
            })
            .collect();
        let placement = policy.place(&needs, inventory)?;
        let queue_memory = graph.run.queue_memory.map_or(QUEUE_MEMORY.min(inventory.memory / 8), |size| size.bytes());
        let rooms = rooms(&graph, pools, queue_memory);
        Ok(Plan { graph, inventory: inventory.clone(), pools, placement, rooms, queue_memory })
    }
}

fn pools(graph: &Graph, inventory: &Inventory) -> Pools {
    let said = graph.run.threads.unwrap_or_default();
    let or = |threads: Option<NonZeroUsize>, otherwise: usize| threads.map_or(otherwise, NonZeroUsize::get);
    Pools {
        // Reading waits more than it computes, on a network file system above all.
        io: or(said.io, (inventory.cores * 2).clamp(4, 32)),
        rows: or(said.rows, inventory.cores),
        model: or(said.model, inventory.cores),
    }
}

/// Each place where rows can wait gets an equal share of the memory: the queue into each node, and the work under way
/// in it.
fn rooms(graph: &Graph, pools: Pools, queue_memory: u64) -> Vec<Room> {
    let n_places: usize =
        graph.nodes.iter().map(|node| 1 + node.inputs.len() + usize::from(node.merge == Merge::Union)).sum();
    let share = usize::try_from(queue_memory).unwrap_or(usize::MAX) / n_places.max(1);
    let room = |node: &crate::graph::GraphNode| {
        let threads = if node.kind.role() == Role::Source { pools.io } else { pools.rows };
        Room {
            queue_batches: node.queue.unwrap_or(QUEUE_BATCHES),
            queue_bytes: share,
            window: threads * WINDOW_PER_THREAD,
            window_bytes: share,
        }
    };
    graph.nodes.iter().map(room).collect()
}
