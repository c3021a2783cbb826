//! What is under way: who holds what, so that a piece of work that does not come back can be named.
//!
//! A [`Lane`] is one kind of work of one node, such as its reads. What goes into a lane is put there and taken out under a
//! lock of the lane's own, once a grain or a batch; the row that a grain is at costs one relaxed store. Texts are made
//! only when someone asks. The board knows no time: that something has not moved is for the [watchdog](super::watchdog)
//! to see.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::thread::{Pid, gettid};

/// Work under way.
pub(super) trait Holding: Send + Sync {
    /// Another number whenever it has moved on.
    fn progress(&self) -> u64 {
        0
    }

    /// Whether it waits for its turn, so that what stands before it is to be named instead.
    fn is_waiting(&self) -> bool {
        false
    }

    /// What is done with what.
    fn describe(&self) -> Described;
}

/// Work in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Described {
    /// Such as ``reading `a.jpg` ``.
    pub(super) text: String,
    /// The file that is being read or written, if it is one.
    pub(super) path: Option<PathBuf>,
}

impl Described {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Described { text: text.into(), path: None }
    }

    pub(super) fn at(self, path: PathBuf) -> Self {
        Described { path: Some(path), ..self }
    }
}

/// Work that is the same whenever it is done.
impl Holding for Described {
    fn describe(&self) -> Described {
        self.clone()
    }
}

/// The row that a grain is at.
#[derive(Debug, Default)]
pub(super) struct At(AtomicU64);

impl At {
    /// Row `row_idx` begins.
    pub(super) fn row(&self, row_idx: usize) {
        self.0.store(row_idx as u64, Ordering::Relaxed);
    }

    /// The row.
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }
}

/// All lanes of a run.
#[derive(Default)]
pub(super) struct Board {
    lanes: Mutex<Vec<Arc<Lane>>>,
}

impl Board {
    /// A new lane of node `node_idx`, whose work is done by so many threads.
    pub(super) fn lane(&self, node_idx: usize, n_threads: usize) -> Arc<Lane> {
        let lane = Arc::new(Lane { node_idx, n_threads, state: Mutex::default() });
        self.lock().push(lane.clone());
        lane
    }

    /// The lanes so far, in the order in which they were made.
    pub(super) fn lanes(&self) -> Vec<Arc<Lane>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One kind of work of one node.
pub(super) struct Lane {
    pub(super) node_idx: usize,
    /// How many pieces of it can be under way at once; 0 where that says nothing.
    pub(super) n_threads: usize,
    state: Mutex<LaneState>,
}

#[derive(Default)]
struct LaneState {
    n_begun: u64,
    /// By the order in which they began.
    held: BTreeMap<u64, Entry>,
}

struct Entry {
    what: Arc<dyn Holding>,
    /// The thread at it.
    thread: Pid,
}

/// A lane at one moment: an equal one later says that nothing has moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    n_begun: u64,
    /// What is held, and how far each is.
    held: Vec<(u64, u64)>,
}

impl Seen {
    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }
}

/// What holds a lane up.
pub(super) struct Holder {
    pub(super) described: Described,
    pub(super) thread: Pid,
    pub(super) n_held: usize,
}

impl Lane {
    /// Begins a piece of work, on the calling thread; it ends when the hold is dropped.
    pub(super) fn hold(self: &Arc<Self>, what: Arc<dyn Holding>) -> Hold {
        let thread = gettid();
        let mut state = self.lock();
        let number = state.n_begun;
        state.n_begun += 1;
        state.held.insert(number, Entry { what, thread });
        Hold { lane: self.clone(), number }
    }

    /// How it stands.
    pub(super) fn look(&self) -> Seen {
        let state = self.lock();
        let held = state.held.iter().map(|(&number, entry)| (number, entry.what.progress()));
        Seen { n_begun: state.n_begun, held: held.collect() }
    }

    /// The longest held piece of work that does not wait for another.
    pub(super) fn holder(&self) -> Option<Holder> {
        let held: Vec<_> = self.lock().held.values().map(|entry| (entry.what.clone(), entry.thread)).collect();
        // Outside of the lock: whoever describes may ask others.
        let n_held = held.len();
        let (what, thread) = held.iter().find(|(what, _)| !what.is_waiting()).or_else(|| held.first())?;
        Some(Holder { described: what.describe(), thread: *thread, n_held })
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of work under way, until it is dropped.
#[must_use]
pub(super) struct Hold {
    lane: Arc<Lane>,
    number: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        // The entry is dropped outside of the lock: it may be the last that holds a chunk of rows.
        let entry = self.lane.lock().held.remove(&self.number);
        drop(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(At);

    impl Holding for Row {
        fn progress(&self) -> u64 {
            self.0.get() as u64
        }

        fn is_waiting(&self) -> bool {
            self.0.get() == 9
        }

        fn describe(&self) -> Described {
            Described::new(format!("row {}", self.0.get()))
        }
    }

    fn row(row_idx: usize) -> Arc<Row> {
        let row = Row(At::default());
        row.0.row(row_idx);
        Arc::new(row)
    }

    #[test]
    fn every_step_of_the_work_shows() {
        let board = Board::default();
        let lane = board.lane(3, 2);
        assert!(lane.look().is_idle());
        let first = row(0);
        let hold = lane.hold(first.clone());
        let begun = lane.look();
        assert!(!begun.is_idle());
        assert_eq!(lane.look(), begun);
        first.0.row(1);
        let moved = lane.look();
        assert_ne!(moved, begun);
        drop(hold);
        let ended = lane.look();
        assert!(ended.is_idle());
        let again = lane.hold(row(1));
        assert_ne!(lane.look(), moved, "another piece is not the same, wherever it is");
        drop(again);
        assert_ne!(lane.look(), ended, "what came and went between two looks shows too");
        assert_eq!(board.lanes().len(), 1);
    }

    #[test]
    fn the_longest_held_that_does_not_wait_is_named() {
        let lane = Board::default().lane(0, 4);
        assert!(lane.holder().is_none());
        let waiting = lane.hold(row(9));
        let named = || lane.holder().map(|holder| (holder.described.text, holder.n_held));
        assert_eq!(named(), Some(("row 9".to_owned(), 1)), "better than nothing");
        let first = lane.hold(row(5));
        let second = lane.hold(row(6));
        assert_eq!(named(), Some(("row 5".to_owned(), 3)));
        drop(first);
        assert_eq!(named(), Some(("row 6".to_owned(), 2)));
        drop((second, waiting));
        assert!(lane.holder().is_none());
    }
}
