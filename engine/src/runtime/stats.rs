//! The figures of a run while it runs: one truth for the progress bar, the report, Prometheus and the verdict.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::stall::{Stall, Stalls};
use crate::worker::WorkerStats;

/// What one node has done so far. Each is written by the node's own stage and read by anyone.
#[derive(Debug, Default)]
pub struct NodeStats {
    /// Rows taken in.
    pub rows_in: AtomicU64,
    /// Rows given out.
    pub rows_out: AtomicU64,
    /// Rows rejected here.
    pub rejects: AtomicU64,
    /// Bytes of the rows given out.
    pub bytes_out: AtomicU64,
    /// Nanoseconds of work, over all threads.
    pub work: AtomicU64,
    /// Nanoseconds that the stage waited for input with nothing to do.
    pub starved: AtomicU64,
    /// Nanoseconds that the stage waited for room behind it.
    pub blocked: AtomicU64,
    /// Nanoseconds from the stage's start to its end, 0 while it runs.
    pub lifetime: AtomicU64,
    /// Messages waiting before it.
    pub queue: AtomicUsize,
}

impl NodeStats {
    /// Adds the time since `start` to a counter.
    pub(super) fn add_time(counter: &AtomicU64, start: Instant) {
        counter.fetch_add(nanos(start.elapsed()), Ordering::Relaxed);
    }

    /// Nanoseconds of the node's life so far.
    fn lived(&self, elapsed: Duration) -> u64 {
        match self.lifetime.load(Ordering::Relaxed) {
            0 => nanos(elapsed),
            ended => ended,
        }
    }

    /// The part of the whole run in which the node was at work: a node that ended early was not, from then on.
    pub(super) fn busy_part(&self, elapsed: Duration) -> f64 {
        self.shares(elapsed).busy * self.lived(elapsed) as f64 / nanos(elapsed).max(1) as f64
    }

    /// How the node spent its time, given how long the run has taken so far.
    pub fn shares(&self, elapsed: Duration) -> Shares {
        let lifetime = self.lived(elapsed);
        let part = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 / lifetime.max(1) as f64;
        let (starved, blocked) = (part(&self.starved).min(1.0), part(&self.blocked).min(1.0));
        Shares { busy: (1.0 - starved - blocked).max(0.0), starved, blocked }
    }
}

/// How a node spent its time; the three add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Shares {
    /// Working: something was under way.
    pub busy: f64,
    /// Waiting for input.
    pub starved: f64,
    /// Waiting for room behind it.
    pub blocked: f64,
}

/// The figures of a whole run.
#[derive(Debug)]
pub struct RunStats {
    /// When it started.
    pub start: Instant,
    /// By node index.
    pub nodes: Vec<Arc<NodeStats>>,
    /// By worker, in the order of the placement.
    pub workers: Vec<Arc<WorkerStats>>,
    /// Rows that each source will list, by source number, where that is known; `u64::MAX` where not.
    pub(super) totals: Vec<AtomicU64>,
    /// Rows that each source has listed, by source number.
    pub(super) listed: Vec<AtomicU64>,
    /// Rejected rows, each once.
    pub rejects: AtomicU64,
    /// Rows of all sources that are done and durable.
    pub committed: AtomicU64,
    /// The row of each source at which this run began, by source number.
    pub(super) starts: Vec<u64>,
    /// Whether sources were asked to stop before their end.
    pub(super) stopped_early: AtomicBool,
    /// Nodes that did not come on for a while.
    pub(super) stalls: Arc<Stalls>,
}

impl RunStats {
    pub(super) fn new(n_nodes: usize, starts: Vec<u64>, workers: Vec<Arc<WorkerStats>>, stalls: Arc<Stalls>) -> Self {
        RunStats {
            start: Instant::now(),
            nodes: (0..n_nodes).map(|_| Arc::default()).collect(),
            workers,
            totals: starts.iter().map(|_| AtomicU64::new(u64::MAX)).collect(),
            listed: starts.iter().map(|&start| AtomicU64::new(start)).collect(),
            rejects: AtomicU64::new(0),
            committed: AtomicU64::new(starts.iter().sum()),
            starts,
            stopped_early: AtomicBool::new(false),
            stalls,
        }
    }

    /// Rows that all sources will give, if all of them know.
    pub fn total(&self) -> Option<u64> {
        self.totals
            .iter()
            .map(|total| total.load(Ordering::Relaxed))
            .try_fold(0u64, |sum, total| (total != u64::MAX).then(|| sum.saturating_add(total)))
    }

    /// Nodes that did not come on for a while, in the order in which that was noticed.
    pub fn stalls(&self) -> Vec<Stall> {
        self.stalls.all()
    }

    /// How long node `node_idx` has made no progress with what it holds, once that counts as a stall; else zero.
    pub fn stalled(&self, node_idx: usize) -> Duration {
        self.stalls.quiet(node_idx)
    }

    /// Rows that source number `source` will list, if that is known.
    pub(super) fn total_of(&self, source: u32) -> Option<u64> {
        let total = self.totals[source as usize].load(Ordering::Relaxed);
        (total != u64::MAX).then_some(total)
    }

    /// Rows of all sources that earlier runs have done.
    pub fn resumed_at(&self) -> u64 {
        self.starts.iter().sum()
    }

    /// Rows that source number `source` has listed since this run began.
    pub(super) fn listed_here(&self, source: u32) -> u64 {
        self.listed(source).saturating_sub(self.starts[source as usize])
    }

    /// Rows that source number `source` has listed, those of earlier runs among them.
    pub fn listed(&self, source: u32) -> u64 {
        self.listed[source as usize].load(Ordering::Relaxed)
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
