//! The thread that makes cuts: it asks for positions, and what all sinks have passed it makes durable.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ledger::end_of;
use super::progress::Woken;
use super::rejects::Rejected;
use super::shared::Shared;
use super::writing::Writing;
use crate::graph::Graph;
use crate::journal::{Cut, Journal, Moment, NextRow, SinkCut, SourceCut, Why, publish_closed};
use crate::node::Fault;

/// How often progress is made durable, if the file does not say.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// How often it looks whether everything is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Makes cuts until the stages have ended.
pub(super) struct Committer {
    shared: Arc<Shared>,
    journal: Option<Journal>,
    /// By sink, for the watchdog.
    syncing: Vec<Writing>,
}

/// The committer's thread.
pub(super) struct Committing {
    thread: JoinHandle<Committer>,
    shared: Arc<Shared>,
}

impl Committer {
    pub(super) fn new(shared: Arc<Shared>, journal: Option<Journal>) -> Self {
        let syncing = shared.graph.sinks().map(|node_idx| Writing::new(&shared, node_idx, "making durable"));
        Committer { syncing: syncing.collect(), shared, journal }
    }

    /// Starts the thread.
    pub(super) fn start(self) -> Result<Committing, Fault> {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("commit".to_owned()).spawn(move || self.run());
        let thread = thread.map_err(|error| Fault::transient(format!("cannot start a thread: {error}")))?;
        Ok(Committing { thread, shared })
    }

    fn run(mut self) -> Self {
        // Half of what was promised: a sink may take a while to come past the position that it is asked for.
        let every = self.shared.graph.run.commit_every.map_or(COMMIT_EVERY, |every| every.get()) / 2;
        let mut next = Instant::now() + every;
        let mut has_parted = false;
        loop {
            let woken = self.shared.progress.wait(next.min(Instant::now() + LOOK));
            // Stages that do not end in time are left behind with the process: what has come through them is kept.
            let parts = !has_parted && self.shared.cancel.is_aborted() && self.shared.fault().is_none();
            if woken == Woken::Urgent || woken == Woken::Over || parts || Instant::now() >= next {
                self.shared.progress.ask();
                next = Instant::now() + every;
            }
            if let Err(fault) = self.commit() {
                self.shared.fail(fault);
                return self;
            }
            if woken == Woken::Over {
                return self;
            }
            if parts {
                has_parted = true;
                // The process will end, and later it may not come to saying so. Cuts may still follow.
                self.journal.iter_mut().for_each(|journal| journal.left(Why::Interrupted, None));
            }
        }
    }

    /// Makes a cut of what all sinks have passed, if that is more than before.
    fn commit(&mut self) -> Result<(), Fault> {
        let shared = self.shared.clone();
        let progress = &shared.progress;
        let ends = progress.ends();
        let Some(frontier) = progress.ledger().advance(&ends) else { return Ok(()) };
        let Rejected { cut: rejects, durables } = shared.rejects.commit(&frontier, &shared.stats)?;
        let mut durables = durables;
        let mut sinks = Vec::new();
        for (number, node_idx) in shared.graph.sinks().enumerate() {
            let mut ledger = progress.ledger();
            let Some((at, mark)) = ledger.at_frontier(number) else {
                return Err(Fault::bug("a sink has not noted where it stands"));
            };
            durables.extend(mark.durable.take().map(|durable| self.syncing[number].around(durable)));
            let cut = SinkCut { closed: progress.closed(number, at), ..mark.cut.clone() };
            sinks.push((shared.graph.nodes[node_idx].name.clone(), cut));
        }
        let sources = frontier.iter().enumerate().map(|(source, &done)| {
            let end = ends[source];
            let is_end = done == end_of(source as u32);
            let at = end.filter(|_| is_end).map_or(done, |end| end.at);
            let mut notes = progress.source(source);
            let has_many = notes.rows_before.is_some();
            notes.forget_before(at);
            SourceCut {
                done: end.filter(|_| is_end).map_or_else(|| notes.rows_at(at), |end| end.rows),
                next: has_many.then_some(NextRow { item: at.index, row: at.sub }),
                total: shared.stats.total_of(source as u32),
                ended: end.is_some_and(|end| end.is_all && done >= end.at),
            }
        });
        let cut = Cut { at: Moment::now(), sources: sources.collect(), sinks: sinks.into_iter().collect(), rejects };
        let rows = cut.rows();
        if let Some(journal) = &mut self.journal {
            durables.into_iter().try_for_each(|durable| durable())?;
            for (source, n_items) in cut.sources.iter().map(SourceCut::n_items).enumerate() {
                let mut notes = progress.source(source);
                if let Some(listing) = &notes.listing {
                    listing.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).sync(n_items)?;
                }
                if let Some(stamps) = &mut notes.stamps {
                    stamps.sync()?;
                }
            }
            journal.cut(cut.clone())?;
        }
        // After the journal says that they are complete: a run that dies here gives them their names when it goes on.
        publish_closed(&shared.graph, &cut)?;
        for (number, node_idx) in shared.graph.sinks().enumerate() {
            let closed = cut.sinks.get(&shared.graph.nodes[node_idx].name).map(|cut| &cut.closed[..]);
            progress.published(number).extend_from_slice(closed.unwrap_or_default());
        }
        shared.stats.committed.store(rows, Ordering::Relaxed);
        Ok(())
    }
}

impl Committing {
    /// Makes a last cut, now that the stages have ended, and gives the journal back.
    pub(super) fn finish(self) -> Option<Journal> {
        self.shared.progress.over();
        match self.thread.join() {
            Ok(committer) => committer.journal,
            Err(panic) => {
                self.shared.fail(Fault::bug(crate::worker::panic_text(&*panic)).help(super::running::REPORT));
                None
            }
        }
    }
}

/// Where each sink stands at the start.
pub(super) fn starts_of(graph: &Graph, cut: Option<&Cut>) -> Vec<SinkCut> {
    let of = |sink: usize| cut.and_then(|cut| cut.sinks.get(&graph.nodes[sink].name)).cloned().unwrap_or_default();
    graph.sinks().map(of).collect()
}
