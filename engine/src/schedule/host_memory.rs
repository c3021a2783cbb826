//! What a run takes of the machine's own memory, where its models run on the processor.

use std::fmt;

use serde::Serialize;

use super::{Bytes, DevicePlace, Plan};
use crate::config::Isolation;
use crate::data::Schema;
use crate::graph::GraphNode;
use crate::node::Role;

/// Bytes that this program takes before any model and any row: its code as far as it is used, its threads, what they work
/// in and what the allocator holds. By `benches/foretold.py`.
pub const PROGRAM_BYTES: u64 = 51 << 20;

/// Bytes that each worker process adds to that: the code is the same memory. By the same.
const PROCESS_BYTES: u64 = 3 << 20;

/// An estimate, item by item, of the largest proportional set size of all processes together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostMemory {
    /// Processes.
    pub n_processes: u64,
    /// What they take before any model and any row.
    pub program: u64,
    /// The models and what each takes, in all processes together; 0 for one that does not say.
    pub models: Vec<ModelHostMemory>,
    /// Rows that wait between nodes or are under way, as far as their size is known.
    pub rows: u64,
}

/// What one model takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelHostMemory {
    /// The node's name.
    pub name: String,
    /// Bytes, in all processes together.
    pub bytes: u64,
}

impl HostMemory {
    /// The estimate for a plan; `None` where models run on GPUs, whose workers' own memory is not planned.
    pub fn of(plan: &Plan) -> Option<Self> {
        let workers = &plan.placement.workers;
        if workers.iter().any(|worker| worker.device != DevicePlace::Cpu) {
            return None;
        }
        let apart = workers.iter().filter(|worker| plan.placement.isolation_of(worker) == Isolation::Process);
        let n_processes = 1 + apart.count() as u64;
        let model = |need: &super::Need| {
            let host = need.model.host;
            // Threads of one process share the weights.
            let n_copies = (n_processes - 1).max(1);
            let threads: usize = plan.placement.workers_of(need.node).map(|worker| worker.threads).sum();
            let bytes = host.weights.saturating_mul(n_copies);
            let bytes = bytes.saturating_add(host.per_thread.saturating_mul(threads as u64));
            ModelHostMemory { name: need.name.clone(), bytes }
        };
        let nodes = plan.graph.nodes.iter().zip(&plan.rooms);
        Some(HostMemory {
            n_processes,
            program: PROGRAM_BYTES + (n_processes - 1) * PROCESS_BYTES,
            models: plan.needs.iter().map(model).collect(),
            rows: nodes.map(|(node, room)| rows(node, room)).fold(0, u64::saturating_add),
        })
    }

    /// The sum.
    pub fn bytes(&self) -> u64 {
        self.models.iter().fold(self.program.saturating_add(self.rows), |sum, model| sum.saturating_add(model.bytes))
    }
}

/// `about 96 MiB here: program 33 MiB + scores 53 MiB + rows 10 MiB`.
impl fmt::Display for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {} here: ", Bytes(self.bytes()))?;
        match self.n_processes {
            1 => write!(f, "program {}", Bytes(self.program))?,
            several => write!(f, "{several} processes {}", Bytes(self.program))?,
        }
        for ModelHostMemory { name, bytes } in &self.models {
            match *bytes {
                0 => write!(f, " + {name} (not known)")?,
                bytes => write!(f, " + {name} {}", Bytes(bytes))?,
            }
        }
        write!(f, " + rows {}", Bytes(self.rows))
    }
}

/// What waits before a node, and what it has under way.
fn rows(node: &GraphNode, room: &super::Room) -> u64 {
    let of_batch = |schema: &Schema| (schema.batch.unwrap_or(1) * row_bytes(schema)) as u64;
    let waiting = node.schemas.iter().map(|schema| {
        let queued = of_batch(schema).saturating_mul(room.queue_batches as u64);
        queued.min((room.queue_bytes as u64).max(of_batch(schema)))
    });
    let under_way = match node.kind.role() {
        // One batch is put together; while the last rows of one are computed, the first of the next are.
        Role::Batch => node.schemas.iter().map(of_batch).sum(),
        Role::Infer => node.schemas.iter().map(|schema| 2 * of_batch(schema)).sum(),
        Role::Decode => of_batch(&node.output).saturating_mul(room.window as u64).min(room.window_bytes as u64),
        _ => 0,
    };
    waiting.fold(under_way, u64::saturating_add)
}

/// Bytes of a row, as far as its columns have a size of their own.
fn row_bytes(schema: &Schema) -> usize {
    schema.fields.iter().filter_map(|field| field.ty.row_bytes()).sum()
}
