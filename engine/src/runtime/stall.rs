//! A node that does not come on.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// A node that holds something and has made no progress with it for a while.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// The node.
    pub node: String,
    /// For how long, in seconds: so far, or in all.
    pub seconds: f64,
    /// What it holds: ``reading `photos/a.jpg` (1 of 8 threads)``.
    pub holds: String,
    /// What speaks for a cause, if anything does: ``it lies on `/mnt/photos` (nfs4)``.
    pub hint: Option<String>,
}

/// The stalls of a run: noted by the watchdog, read by anyone.
#[derive(Debug)]
pub(super) struct Stalls {
    all: Mutex<Vec<Stall>>,
    /// By node: milliseconds of the stall that it is in, 0 if it is in none.
    quiet: Vec<AtomicU64>,
}

impl Stalls {
    pub(super) fn new(n_nodes: usize) -> Self {
        Stalls { all: Mutex::default(), quiet: (0..n_nodes).map(|_| AtomicU64::new(0)).collect() }
    }

    /// All so far, in the order in which they were noticed.
    pub(super) fn all(&self) -> Vec<Stall> {
        self.lock().clone()
    }

    /// How long a node has been in the stall that it is in.
    pub(super) fn quiet(&self, node_idx: usize) -> Duration {
        self.quiet.get(node_idx).map_or(Duration::ZERO, |millis| Duration::from_millis(millis.load(Ordering::Relaxed)))
    }

    pub(super) fn set_quiet(&self, node_idx: usize, quiet: Duration) {
        let millis = u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX);
        self.quiet[node_idx].store(millis, Ordering::Relaxed);
    }

    /// Notes a stall, or how number `stall_idx` is now; says its number.
    pub(super) fn note(&self, stall_idx: Option<usize>, stall: Stall) -> usize {
        let mut all = self.lock();
        match stall_idx.and_then(|stall_idx| Some((stall_idx, all.get_mut(stall_idx)?))) {
            Some((stall_idx, known)) => {
                *known = stall;
                stall_idx
            }
            None => {
                all.push(stall);
                all.len() - 1
            }
        }
    }

    /// Stall number `stall_idx` has lasted so long.
    pub(super) fn prolong(&self, stall_idx: usize, quiet: Duration) {
        if let Some(stall) = self.lock().get_mut(stall_idx) {
            stall.seconds = quiet.as_secs_f64();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Stall>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is told of stalls, on the watchdog's thread.
#[derive(Clone)]
pub struct OnStall(Arc<dyn Fn(&Stall) + Send + Sync>);

impl OnStall {
    /// Calls `tell` for each.
    pub fn new(tell: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        OnStall(Arc::new(tell))
    }

    pub(super) fn call(&self, stall: &Stall) {
        (self.0)(stall);
    }
}

impl fmt::Debug for OnStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnStall")
    }
}
