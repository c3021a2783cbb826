//! How a graph will run on a machine.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{Inventory, Need, PlaceError, PlaceOptions, Placement, WorkerMemory, WorkerPlace, place};
use crate::graph::{Graph, Merge};
use crate::node::{Devices, Role};

/// Batches that may wait before a node when the file does not say.
const QUEUE_BATCHES: usize = 4;
/// Pieces of work that may be under way in a node for each thread of its pool: one that takes long holds back the
/// emission of those behind it, and this is how many the other threads can take meanwhile.
const WINDOW_PER_THREAD: usize = 8;
/// Bytes that rows between nodes may take by default, unless memory is scarce.
const QUEUE_MEMORY: u64 = 256 << 20;

/// Streams that each model has on a GPU: one to upload, one to compute, one to download.
pub const STREAMS_PER_MODEL: usize = 3;
/// Batches that each model has on a GPU at once: one in each of these stages.
pub const SLOTS_PER_MODEL: usize = 3;

/// A graph placed and sized for a machine. Nothing is started yet.
#[derive(Debug)]
pub struct Plan {
    /// What runs.
    pub graph: Arc<Graph>,
    /// The machine that it was planned for.
    pub inventory: Inventory,
    /// How many threads each pool has.
    pub pools: Pools,
    /// What each model needs.
    pub needs: Vec<Need>,
    /// Where each model runs.
    pub placement: Placement,
    /// What is to be told of the placement, a sentence each.
    pub notes: Vec<String>,
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
    /// Threads of this process that models compute with: none if they all run in workers.
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
    /// Pieces of it that always may, however large they turn out to be.
    pub at_once: usize,
    /// Bytes that may be under way in it beyond these.
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
    pub fn make(graph: Arc<Graph>, inventory: &Inventory) -> Result<Plan, PlanError> {
        let needs: Vec<_> = graph.with_role(Role::Infer).map(|node_idx| need(&graph, node_idx)).collect();
        let said = graph.run.threads.unwrap_or_default();
        let options = PlaceOptions {
            placement: graph.run.placement.unwrap_or_default(),
            isolation: graph.run.isolation.unwrap_or_default(),
            workers_per_device: graph.run.workers_per_device.unwrap_or_default(),
            cpu_threads: said.model.map_or(inventory.cores, NonZeroUsize::get),
        };
        let (placement, notes) = place(&needs, &options, inventory)?;
        // Reading waits more than it computes, on a network file system above all.
        let readers = said.io.map_or((inventory.cores * 2).clamp(4, 32), NonZeroUsize::get);
        let wanted = graph.nodes.iter().filter_map(|node| node.spec.readers).max();
        let pools = Pools {
            io: wanted.filter(|_| said.io.is_none()).map_or(readers, |wanted| readers.max(wanted.get())),
            rows: said.rows.map_or(inventory.cores, NonZeroUsize::get),
            model: placement.threads_here(),
        };
        let queue_memory = graph.run.queue_memory.map_or(QUEUE_MEMORY.min(inventory.memory / 8), |size| size.bytes());
        let rooms = rooms(&graph, pools, readers, queue_memory);
        Ok(Plan { graph, inventory: inventory.clone(), pools, needs, placement, notes, rooms, queue_memory })
    }

    /// What a worker's models take of its GPU's memory, item by item.
    pub fn memory_of(&self, worker: &WorkerPlace) -> WorkerMemory {
        WorkerMemory::of(self.needs.iter().filter(|need| worker.models.contains(&need.node)))
    }
}

fn need(graph: &Graph, node_idx: usize) -> Need {
    let node = &graph.nodes[node_idx];
    Need {
        node: node_idx,
        name: node.name.clone(),
        model: node.spec.need.clone().unwrap_or_default(),
        rows: node.schemas.first().and_then(|schema| schema.batch).unwrap_or(1),
        devices: devices(graph, node_idx),
    }
}

/// The devices that a node's model may run on: the node's own word before the run's.
pub(super) fn devices(graph: &Graph, node_idx: usize) -> Devices {
    let own = graph.nodes[node_idx].spec.need.as_ref().and_then(|need| need.devices.clone());
    own.or_else(|| graph.run.device.clone()).unwrap_or_default()
}

/// Each place where rows can wait gets an equal share of the memory: the queue into each node, and the work under way
/// in it.
fn rooms(graph: &Graph, pools: Pools, readers: usize, queue_memory: u64) -> Vec<Room> {
    let n_places: usize =
        graph.nodes.iter().map(|node| 1 + node.inputs.len() + usize::from(node.merge == Merge::Union)).sum();
    let share = usize::try_from(queue_memory).unwrap_or(usize::MAX) / n_places.max(1);
    let room = |node: &crate::graph::GraphNode| {
        let is_source = node.kind.role() == Role::Source;
        let threads = if is_source { pools.io } else { pools.rows };
        Room {
            queue_batches: node.queue.unwrap_or(QUEUE_BATCHES),
            queue_bytes: share,
            window: threads * WINDOW_PER_THREAD,
            at_once: if is_source { readers } else { pools.rows },
            window_bytes: share,
        }
    };
    graph.nodes.iter().map(room).collect()
}
