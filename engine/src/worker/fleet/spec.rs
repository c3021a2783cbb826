//! What a fleet is made of.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::worker::WorkerStats;
use crate::worker::frame::Load;

/// What a fleet is made of.
#[derive(Debug)]
pub struct FleetSpec {
    /// The version of this program and the hash of its source, which workers must have too.
    pub build: String,
    /// The workers.
    pub workers: Vec<WorkerSpec>,
    /// The models; workers name them by their index here.
    pub models: Vec<ModelSpec>,
    /// How long a batch may take at least before its worker counts as hung.
    pub patience: Duration,
    /// Bytes of shared memory to reserve for one arena; what is not used costs nothing.
    pub reserve: u64,
}

/// One worker.
#[derive(Debug)]
pub struct WorkerSpec {
    /// The program.
    pub program: PathBuf,
    /// The kind of device that it opens: `cpu` or `cuda`.
    pub device: &'static str,
    /// The UUID that its device must have, if that is known.
    pub uuid: Option<String>,
    /// What its environment has beyond this process's.
    pub environment: Vec<(&'static str, String)>,
    /// Its models.
    pub models: Vec<usize>,
    /// Its figures.
    pub stats: Arc<WorkerStats>,
}

/// One model.
#[derive(Debug)]
pub struct ModelSpec {
    /// The index of its node.
    pub node_idx: usize,
    /// How it is loaded.
    pub load: Load,
    /// Bytes of a row of each output, where that is known.
    pub row_bytes: Vec<Option<usize>>,
}
