//! What a run has done, as data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::stall::Stall;
use super::stats::Shares;
use super::verdict::Verdict;
use crate::node::{Fault, FaultKind};
use crate::worker::WorkerState;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All rows went through; outputs have their final names.
    Done,
    /// It was asked to stop; what was in flight is in the unfinished outputs.
    Interrupted,
    /// A fault ended it.
    Failed,
}

/// What a run has done: what `--report` writes and the summary shows.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The pipeline's name.
    pub name: String,
    /// How the run ended.
    pub outcome: Outcome,
    /// The process's exit code.
    pub exit_code: u8,
    /// Rows of all sources that earlier runs had done.
    pub resumed_at: u64,
    /// Rows of all sources that are done and durable.
    pub committed: u64,
    /// Rows that an earlier run had written to an output when it was stopped, and that were done again.
    pub redone: u64,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Rows that all sources listed.
    pub rows_in: u64,
    /// What ended the run, if something did.
    pub fault: Option<Fault>,
    /// By node, in the order of the file.
    pub nodes: Vec<NodeReport>,
    /// Who computed the models, in the order of the placement.
    pub workers: Vec<WorkerReport>,
    /// Outputs, with final names where the run is done.
    pub outputs: Vec<OutputReport>,
    /// Rejected rows.
    pub rejects: RejectReport,
    /// By sink: whether every row that came in went out.
    pub accounts: Vec<SinkAccount>,
    /// What limited the run.
    pub bottleneck: Option<Verdict>,
    /// Nodes that did not come on for a while, in the order in which that was noticed.
    pub stalls: Vec<Stall>,
}

/// One node's part of a run.
#[derive(Clone, Debug, Serialize)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Rows taken in.
    pub rows_in: u64,
    /// Rows given out.
    pub rows_out: u64,
    /// Rows rejected here.
    pub rejects: u64,
    /// Bytes of the rows given out.
    pub bytes_out: u64,
    /// Rows given out a second.
    pub rows_per_second: f64,
    /// Seconds of work over all threads.
    pub work_seconds: f64,
    /// Threads that share that work.
    pub threads: usize,
    /// How it spent its time.
    #[serde(flatten)]
    pub shares: Shares,
}

/// One worker's part of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerReport {
    /// Its process: this one, where workers are threads; the last one, where it was replaced.
    pub pid: u32,
    /// Where it computed: `cpu`, `cuda:1`.
    pub device: String,
    /// The device's name, as the worker has found it.
    pub device_name: Option<String>,
    /// The device's UUID, as the worker has found it.
    pub uuid: Option<String>,
    /// The nodes whose models it held.
    pub nodes: Vec<String>,
    /// Rows that it computed, each model's counted.
    pub rows: u64,
    /// How many times it was replaced.
    pub restarts: u32,
    /// What went wrong with it last, if anything did, as the rest of a sentence: `died of signal 9 (kill)`.
    pub trouble: Option<String>,
    /// How it ended.
    pub state: WorkerState,
    /// Batches that were too large for the device's memory, and the most rows that were not. Rows computed in such parts
    /// equal the others within tolerance, not bit by bit.
    pub caps: Vec<CapReport>,
}

/// The most rows that a device held at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CapReport {
    /// The node.
    pub node: String,
    /// One row's shape, input by input.
    pub shape: Vec<Vec<usize>>,
    /// The rows.
    pub rows: usize,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputReport {
    /// The sink.
    pub node: String,
    /// Where it is.
    pub path: String,
    /// Rows in it.
    pub rows: u64,
    /// Bytes in it.
    pub bytes: u64,
}

/// The rejected rows of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RejectReport {
    /// How many, each row once.
    pub total: u64,
    /// By the code of the reason.
    pub by_code: BTreeMap<String, u64>,
    /// By the node that rejected.
    pub by_node: BTreeMap<String, u64>,
    /// The file with all of them; absent if there are none.
    pub path: Option<PathBuf>,
}

/// What came to a sink, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SinkAccount {
    /// The sink.
    pub node: String,
    /// Rows that entered its path.
    pub entered: u64,
    /// Rows it wrote.
    pub written: u64,
    /// Rows rejected on the way.
    pub rejected: u64,
}

impl SinkAccount {
    /// Whether no row was lost or made.
    pub fn balances(&self) -> bool {
        self.entered == self.written + self.rejected
    }
}

/// Exit codes: see the table in the documentation of the program.
pub(super) fn exit_code(outcome: Outcome, fault: Option<&Fault>, n_rejects: u64) -> u8 {
    match (outcome, fault.map(|fault| fault.kind)) {
        (_, Some(FaultKind::Permanent)) => 2,
        (_, Some(FaultKind::Closed)) => 0,
        (_, Some(FaultKind::Transient | FaultKind::Bug)) => 1,
        (Outcome::Interrupted, None) => 130,
        (Outcome::Failed, None) => 1,
        (Outcome::Done, None) if n_rejects > 0 => 3,
        (Outcome::Done, None) => 0,
    }
}
