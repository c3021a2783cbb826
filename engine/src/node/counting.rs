//! Counting beside a run.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Cancel;

/// What a [`Count`](super::Count) is given: the run's wish to end, and where to note how far it is, so that one that hangs
/// can be told from one that is long.
#[derive(Debug, Default)]
pub struct Counting {
    /// The run's wish to end.
    pub cancel: Cancel,
    n_seen: AtomicU64,
}

impl Counting {
    /// Counting that `cancel` ends.
    pub fn new(cancel: Cancel) -> Self {
        Counting { cancel, n_seen: AtomicU64::new(0) }
    }

    /// So many were counted so far.
    pub fn came_to(&self, n_items: u64) {
        self.n_seen.store(n_items, Ordering::Relaxed);
    }

    /// How many were counted so far.
    pub fn n_seen(&self) -> u64 {
        self.n_seen.load(Ordering::Relaxed)
    }
}
