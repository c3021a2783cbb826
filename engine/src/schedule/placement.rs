//! Where models run: which workers there are, on which device, with which models.

use serde::Serialize;

use crate::config::Isolation;

/// Where all models run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Whether workers on the CPU are threads of this process or processes; `process` where there are none on the CPU.
    /// Workers on GPUs are always processes: see [`Placement::isolation_of`].
    pub isolation: Isolation,
    /// The workers, those of one device together. A model stands in one or several of them.
    pub workers: Vec<WorkerPlace>,
}

/// One worker: a device and the models that it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerPlace {
    /// Where it computes.
    pub device: DevicePlace,
    /// The indices of the nodes whose models it holds, in ascending order.
    pub models: Vec<usize>,
    /// Threads that its models compute with on the CPU, all together.
    pub threads: usize,
    /// Bytes of the GPU's memory that it was planned to take; 0 on the CPU, whose memory is not planned.
    pub memory: u64,
}

/// A device that a worker computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DevicePlace {
    /// The CPU.
    Cpu,
    /// A GPU, by its place in [`super::Inventory::gpus`].
    Gpu(usize),
}

impl Placement {
    /// The workers that hold the model of node `node_idx`.
    pub fn workers_of(&self, node_idx: usize) -> impl Iterator<Item = &WorkerPlace> {
        self.workers.iter().filter(move |worker| worker.models.contains(&node_idx))
    }

    /// Whether a worker is a thread of this process or a process.
    pub fn isolation_of(&self, worker: &WorkerPlace) -> Isolation {
        match worker.device {
            DevicePlace::Cpu => self.isolation,
            DevicePlace::Gpu(_) => Isolation::Process,
        }
    }

    /// Threads that the models of workers compute with in this process.
    pub fn threads_here(&self) -> usize {
        let here = self.workers.iter().filter(|worker| self.isolation_of(worker) == Isolation::Thread);
        here.map(|worker| worker.threads).sum()
    }
}
