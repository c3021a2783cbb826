//! The first rows of archives: how many items these are is known only when they are read, so they are read one at a time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::data::{Reject, RowMut};
use engine::node::{Cancel, Entries, Entry, Item, Stamp, Unpack};

/// How often whoever waits looks whether the run ends.
const LOOK: Duration = Duration::from_millis(50);

/// How many rows are still to be read before a source starts over.
pub(super) struct Portion {
    limit: u64,
    state: Mutex<State>,
    changed: Condvar,
    cancel: Cancel,
}

struct State {
    left: u64,
    is_reading: bool,
}

/// What is left of a portion when an item has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Rows,
    Nothing,
    Cancelled,
}

impl Portion {
    pub(super) fn new(limit: u64, cancel: Cancel) -> Self {
        let state = Mutex::new(State { left: limit, is_reading: false });
        Portion { limit, state, changed: Condvar::new(), cancel }
    }

    /// Waits until the item that was listed last has been read.
    pub(super) fn wait(&self) -> Left {
        let mut state = self.lock();
        while state.is_reading {
            if self.cancel.is_draining() {
                return Left::Cancelled;
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.left == 0 { Left::Nothing } else { Left::Rows }
    }

    /// An item is listed.
    pub(super) fn begin(&self) {
        self.lock().is_reading = true;
    }

    /// The source starts over.
    pub(super) fn refill(&self) {
        self.lock().left = self.limit;
    }

    fn take(&self) -> bool {
        let mut state = self.lock();
        let is_left = state.left > 0;
        state.left = state.left.saturating_sub(1);
        is_left
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens items, and reads no more of them than a portion.
pub(super) struct Portioned {
    pub(super) inner: Arc<dyn Unpack>,
    pub(super) portion: Arc<Portion>,
}

impl Unpack for Portioned {
    fn open(&self, index: u64, item: &Item, skip: u32) -> Result<Box<dyn Entries>, Reject> {
        // Before anything that can fail: whoever lists waits for its end.
        let reading = Reading(self.portion.clone());
        let inner = self.inner.open(index, item, skip)?;
        Ok(Box::new(PortionOf { inner, reading }))
    }

    fn read(&self, item: &Item, entry: &Entry, out: &mut RowMut<'_>) -> Result<(), Reject> {
        self.inner.read(item, entry, out)
    }

    fn stamp(&self, item: &Item) -> Stamp {
        self.inner.stamp(item)
    }
}

/// As long as it is there, the item is being read.
struct Reading(Arc<Portion>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.lock().is_reading = false;
        self.0.changed.notify_all();
    }
}

struct PortionOf {
    inner: Box<dyn Entries>,
    reading: Reading,
}

impl Entries for PortionOf {
    fn next_entry(&mut self) -> Option<Entry> {
        if self.reading.0.take() { self.inner.next_entry() } else { None }
    }

    fn stamp(&self) -> Stamp {
        self.inner.stamp()
    }
}
