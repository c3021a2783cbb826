//! What has been done and is durable: what stages note on their way, for the thread that makes cuts of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::ledger::{Ledger, SourceEnd};
use crate::data::RowPos;
use crate::journal::{Listing, SinkCut, Stamps};
use crate::node::{Durable, Sealed, Stamp};

/// Where a sink stood.
#[derive(Default)]
pub(super) struct Mark {
    pub(super) cut: SinkCut,
    /// What makes it durable; `None` once it is.
    pub(super) durable: Option<Durable>,
}

/// What is noted of a source.
#[derive(Default)]
pub(super) struct SourceNotes {
    /// How the listing has ended.
    pub(super) listed: Option<Listed>,
    /// How the rows of what was listed have ended, if not with the listing.
    pub(super) unpacked: Option<Listed>,
    pub(super) end: Option<SourceEnd>,
    /// Of what was listed; `None` where the listing needs no record, or there is no journal.
    pub(super) listing: Option<Arc<Mutex<Listing>>>,
    pub(super) stamps: Option<Stamps>,
    /// Where items hold many rows: how many rows come before each that is under way.
    pub(super) rows_before: Option<BTreeMap<u64, u64>>,
}

impl SourceNotes {
    /// How many rows come before a position.
    pub(super) fn rows_at(&self, at: RowPos) -> u64 {
        match &self.rows_before {
            Some(rows_before) => rows_before.get(&at.index).map_or(0, |rows| rows + u64::from(at.sub)),
            None => at.index + u64::from(at.sub > 0),
        }
    }

    /// Forgets items before a position that is done.
    pub(super) fn forget_before(&mut self, at: RowPos) {
        if let Some(rows_before) = &mut self.rows_before {
            *rows_before = rows_before.split_off(&at.index);
        }
    }
}

/// How a listing has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// There is no more.
    All,
    /// A limit was reached.
    Limit,
    /// It was asked to stop.
    Stopped,
}

/// Shared by stages and the committer.
pub(super) struct Progress {
    ledger: Mutex<Ledger<Mark>>,
    sources: Vec<Mutex<SourceNotes>>,
    /// By sink: parts that are complete and not published, each with the position before which it was.
    closed: Vec<Mutex<VecDeque<(RowPos, Sealed)>>>,
    /// By sink: its parts that have their names, those of earlier runs among them.
    published: Vec<Mutex<Vec<Sealed>>>,
    /// By sink: asks it to look whether it is to note where it stands.
    bells: Vec<(Sender<()>, Receiver<()>)>,
    wake: Mutex<Wake>,
    woken: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Wake {
    /// Something was noted.
    is_noted: bool,
    /// So much waits that a cut should not be waited for.
    is_urgent: bool,
    /// The stages have ended.
    is_over: bool,
}

/// Why the committer was woken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    Noted,
    Urgent,
    Over,
    Late,
}

impl Progress {
    pub(super) fn new(ledger: Ledger<Mark>, published: Vec<Vec<Sealed>>, sources: Vec<SourceNotes>) -> Self {
        let n_sinks = published.len();
        Progress {
            ledger: Mutex::new(ledger),
            sources: sources.into_iter().map(Mutex::new).collect(),
            closed: (0..n_sinks).map(|_| Mutex::default()).collect(),
            published: published.into_iter().map(Mutex::new).collect(),
            bells: (0..n_sinks).map(|_| bounded(1)).collect(),
            wake: Mutex::default(),
            woken: Condvar::new(),
        }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger<Mark>> {
        lock(&self.ledger)
    }

    pub(super) fn source(&self, source: usize) -> MutexGuard<'_, SourceNotes> {
        lock(&self.sources[source])
    }

    /// The ends of the sources that have ended.
    pub(super) fn ends(&self) -> Vec<Option<SourceEnd>> {
        self.sources.iter().map(|source| lock(source).end).collect()
    }

    /// Notes what the next items of a source were when they were read.
    pub(super) fn stamp(&self, source: u32, stamps: &[Stamp]) {
        if let Some(record) = &mut self.source(source as usize).stamps {
            record.push(stamps);
        }
    }

    /// The bell of a sink.
    pub(super) fn bell(&self, sink: usize) -> Receiver<()> {
        self.bells[sink].1.clone()
    }

    /// Asks all sinks to note where they stand.
    pub(super) fn ask(&self) {
        self.ledger().ask();
        for (bell, _) in &self.bells {
            // One that rings already does not need to ring twice.
            let _ = bell.try_send(());
        }
    }

    /// A sink notes where it stood before the row at `at`, and which parts it has completed since it last did.
    pub(super) fn mark(&self, sink: usize, at: RowPos, mark: Mark, closed: Vec<Sealed>) {
        lock(&self.closed[sink]).extend(closed.into_iter().map(|sealed| (at, sealed)));
        self.ledger().mark(sink, at, mark);
        self.notify(|wake| wake.is_noted = true);
    }

    /// Takes out the parts that a sink had completed when it stood at `at`.
    pub(super) fn closed(&self, sink: usize, at: RowPos) -> Vec<Sealed> {
        let mut closed = lock(&self.closed[sink]);
        let n_before = closed.partition_point(|(pos, _)| *pos <= at);
        closed.drain(..n_before).map(|(_, sealed)| sealed).collect()
    }

    /// The parts of a sink that have their names.
    pub(super) fn published(&self, sink: usize) -> MutexGuard<'_, Vec<Sealed>> {
        lock(&self.published[sink])
    }

    /// So much waits to be committed that it should be done now.
    pub(super) fn hurry(&self) {
        self.notify(|wake| wake.is_urgent = true);
    }

    /// The stages have ended.
    pub(super) fn over(&self) {
        self.notify(|wake| wake.is_over = true);
    }

    /// Waits for something to do.
    pub(super) fn wait(&self, until: Instant) -> Woken {
        let mut wake = lock(&self.wake);
        loop {
            if wake.is_over {
                return Woken::Over;
            }
            if std::mem::take(&mut wake.is_urgent) {
                return Woken::Urgent;
            }
            if std::mem::take(&mut wake.is_noted) {
                return Woken::Noted;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return Woken::Late;
            }
            wake = self.woken.wait_timeout(wake, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    fn notify(&self, note: impl FnOnce(&mut Wake)) {
        note(&mut lock(&self.wake));
        self.woken.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
