//! Asking a run to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const RUNNING: u8 = 0;
const DRAINING: u8 = 1;
const ABORTED: u8 = 2;

/// A flag that all parts of a run look at. It only ever rises: running, draining (sources stop, the rest finishes),
/// aborted (everything stops).
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicU8>);

impl Cancel {
    /// A flag of a run that goes on.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// Asks sources to stop and the rest to finish what is in flight.
    pub fn drain(&self) {
        self.0.fetch_max(DRAINING, Ordering::AcqRel);
    }

    /// Asks everything to stop.
    pub fn abort(&self) {
        self.0.fetch_max(ABORTED, Ordering::AcqRel);
    }

    /// Whether sources should stop.
    pub fn is_draining(&self) -> bool {
        self.0.load(Ordering::Acquire) != RUNNING
    }

    /// Whether everything should stop.
    pub fn is_aborted(&self) -> bool {
        self.0.load(Ordering::Acquire) == ABORTED
    }
}
