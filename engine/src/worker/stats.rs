//! The figures of a worker while it runs: one truth for the progress lines and the report.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::frame::Cap;
use crate::node::DeviceInfo;

/// What one worker has done so far. A worker that was replaced goes on here under another process.
#[derive(Debug, Default)]
pub struct WorkerStats {
    /// Where it computes: `cpu`, `cuda:1`.
    pub device: String,
    /// The indices of the nodes whose models it holds.
    pub nodes: Vec<usize>,
    /// Its process, 0 before the first has started. This process, where workers are threads.
    pub pid: AtomicU32,
    /// Rows that it computed, padding not counted.
    pub rows: AtomicU64,
    /// How many times it was replaced.
    pub restarts: AtomicU32,
    state: AtomicU8,
    /// Rows by node, in the order of `nodes`.
    by_node: Vec<AtomicU64>,
    trouble: Mutex<Option<String>>,
    opened: Mutex<Option<DeviceInfo>>,
    caps: Mutex<Vec<(usize, Cap)>>,
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum WorkerState {
    /// It opens its device and loads models.
    Starting,
    /// It computes.
    Serving,
    /// It died, and suspects are computed one by one.
    Quarantine,
    /// It will not come back.
    Lost,
    /// It has done all.
    Stopped,
}

impl WorkerStats {
    /// A worker that has not started.
    pub fn new(device: impl Into<String>, nodes: Vec<usize>) -> Self {
        let by_node = nodes.iter().map(|_| AtomicU64::new(0)).collect();
        WorkerStats { device: device.into(), nodes, by_node, ..WorkerStats::default() }
    }

    /// Rows of node `node_idx` that it computed.
    pub fn rows_of(&self, node_idx: usize) -> u64 {
        self.counter(node_idx).map_or(0, |rows| rows.load(Ordering::Relaxed))
    }

    pub(crate) fn add_rows(&self, node_idx: usize, n_rows: u64) {
        self.rows.fetch_add(n_rows, Ordering::Relaxed);
        if let Some(rows) = self.counter(node_idx) {
            rows.fetch_add(n_rows, Ordering::Relaxed);
        }
    }

    fn counter(&self, node_idx: usize) -> Option<&AtomicU64> {
        let place = self.nodes.iter().position(|node| *node == node_idx)?;
        self.by_node.get(place)
    }

    /// What went wrong with it last, as the rest of a sentence: `died of signal 9 (kill)`.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_trouble(&self, trouble: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }

    /// What it is doing.
    pub fn state(&self) -> WorkerState {
        const STATES: [WorkerState; 5] = [
            WorkerState::Starting,
            WorkerState::Serving,
            WorkerState::Quarantine,
            WorkerState::Lost,
            WorkerState::Stopped,
        ];
        STATES[usize::from(self.state.load(Ordering::Relaxed)).min(STATES.len() - 1)]
    }

    pub(crate) fn set_state(&self, state: WorkerState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// The device as the worker itself has found it.
    pub fn opened(&self) -> Option<DeviceInfo> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_opened(&self, info: DeviceInfo) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(info);
    }

    /// What did not fit into the device's memory, by node index.
    pub fn caps(&self) -> Vec<(usize, Cap)> {
        self.caps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_cap(&self, node_idx: usize, cap: Cap) {
        let mut caps = self.caps.lock().unwrap_or_else(PoisonError::into_inner);
        caps.retain(|(other, known)| (*other, &known.shape) != (node_idx, &cap.shape));
        caps.push((node_idx, cap));
    }
}
