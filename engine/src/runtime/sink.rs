//! Sinks: one thread, in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::{never, select};

use super::exit::{Exit, Step};
use super::message::Message;
use super::progress::Mark;
use super::queue::Receiver;
use super::shared::Me;
use super::stats::NodeStats;
use super::writing::Writing;
use crate::data::{Batch, RejectRow, RowPos};
use crate::journal::SinkCut;
use crate::node::Sink;

/// A stage that takes rows out.
pub(super) struct Sinking {
    pub(super) me: Me,
    pub(super) sink: Box<dyn Sink>,
    pub(super) input: Receiver<Message>,
    /// The sink's number among the sinks.
    pub(super) number: usize,
    pub(super) writing: Writing,
    /// Whether it reads several sources.
    pub(super) reads_several: bool,
    /// Rows rejected on the way to it.
    pub(super) rejected: Rejections,
    /// Where the sources that are complete in it end.
    pub(super) ends: Vec<(u32, u64)>,
    /// Where it stands at the start.
    pub(super) start: SinkCut,
}

/// What a sink leaves when its stage has ended.
pub(super) struct Sunk {
    pub(super) node_idx: usize,
    pub(super) sink: Box<dyn Sink>,
    /// Rows rejected on the way to it.
    pub(super) rejected: u64,
    pub(super) ends: Vec<(u32, u64)>,
    /// Where it stood at the start.
    pub(super) start: SinkCut,
}

/// Counts rejected rows by how far the sink has come: a reject may arrive before rows that come before it.
#[derive(Default)]
pub(super) struct Rejections {
    counted: u64,
    early: Vec<RowPos>,
}

impl Rejections {
    /// So many before the sink's start.
    pub(super) fn after(counted: u64) -> Self {
        Rejections { counted, early: Vec::new() }
    }

    fn arrive(&mut self, rejects: &[Arc<RejectRow>]) {
        self.early.extend(rejects.iter().map(|reject| reject.pos));
    }

    /// How many there are before `at`. Asked for in ascending order.
    fn before(&mut self, at: RowPos) -> u64 {
        let n_early = self.early.len();
        self.early.retain(|pos| *pos >= at);
        self.counted += (n_early - self.early.len()) as u64;
        self.counted
    }
}

impl Sinking {
    /// Runs until the input ends. The sink comes back to be sealed, or to say where its unfinished output lies.
    pub(super) fn run(mut self) -> (Exit, Sunk) {
        let exit = match self.drive() {
            Ok(()) => Exit::Finished,
            Err(exit) => {
                // What came through before somebody else failed is worth keeping.
                if !matches!(exit, Exit::Faulted(_)) {
                    let _ = self.note_here();
                }
                exit
            }
        };
        let rejected = self.rejected.before(RowPos::END);
        (exit, Sunk { node_idx: self.me.node_idx, sink: self.sink, rejected, ends: self.ends, start: self.start })
    }

    fn drive(&mut self) -> Step {
        let mut bell = self.me.shared.progress.bell(self.number);
        loop {
            self.me.shared.check()?;
            let start = Instant::now();
            let packet = select! {
                recv(self.input.channel()) -> packet => packet.map_err(|_| Exit::Cancelled)?,
                recv(bell) -> rung => {
                    if rung.is_err() {
                        bell = never();
                    }
                    NodeStats::add_time(&self.me.stats.starved, start);
                    self.note_due()?;
                    continue;
                }
            };
            NodeStats::add_time(&self.me.stats.starved, start);
            self.me.stats.queue.store(self.input.len(), Ordering::Relaxed);
            match self.input.took(packet) {
                Some(message) => self.take(message)?,
                None => return self.end(),
            }
        }
    }

    fn take(&mut self, message: Message) -> Step {
        let start = Instant::now();
        let shared = self.me.shared.clone();
        let upto = message.upto;
        self.rejected.arrive(&message.rejects);
        // Before this sink notes a position behind them: a cut may be made there at once, and has to have them.
        let is_crowded = shared.rejects.advance(message.rejects);
        let mut points = shared.progress.ledger().claim(self.number, upto);
        let mut rows = message.batch;
        // In a union of branches rows of the watermark's own position may be here already: a cut goes before the first of
        // them, and more may come with the same watermark.
        let is_beyond = |batch: &Batch| batch.positions().last().is_some_and(|last| *last >= upto);
        if rows.as_ref().is_some_and(is_beyond)
            && points.last() != Some(&upto)
            && !shared.progress.ledger().has_noted(self.number, upto)
        {
            points.push(upto);
        }
        for at in points {
            let n_before = rows.as_ref().map_or(0, |batch| batch.positions().partition_point(|pos| *pos < at));
            if let Some(batch) = rows.take() {
                self.write(&batch.slice(0..n_before))?;
                rows = (n_before < batch.n_rows()).then(|| batch.slice(n_before..batch.n_rows()));
            }
            self.note(at)?;
        }
        if let Some(batch) = &rows {
            self.write(batch)?;
        }
        shared.progress.ledger().passed(self.number, upto);
        self.note_due()?;
        if is_crowded {
            shared.progress.hurry();
        }
        self.me.worked(start);
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> Step {
        if batch.n_rows() == 0 {
            return Ok(());
        }
        self.me.stats.rows_in.fetch_add(batch.n_rows() as u64, Ordering::Relaxed);
        let hold = self.writing.begin();
        self.sink.write(batch)?;
        drop(hold);
        self.me.stats.rows_out.fetch_add(batch.n_rows() as u64, Ordering::Relaxed);
        self.me.stats.bytes_out.fetch_add(batch.bytes() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// All rows have come.
    fn end(&mut self) -> Step {
        let shared = self.me.shared.clone();
        let points = shared.progress.ledger().claim(self.number, RowPos::END);
        for at in points {
            self.note(at)?;
        }
        shared.progress.ledger().passed(self.number, RowPos::END);
        Ok(())
    }

    /// Notes where the sink stands if that was asked for while it was at work, or since.
    fn note_due(&mut self) -> Step {
        let due = self.me.shared.progress.ledger().due(self.number);
        due.map_or(Ok(()), |at| self.note(at))
    }

    fn note_here(&mut self) -> Step {
        let here = self.me.shared.progress.ledger().stands_at(self.number);
        here.map_or(Ok(()), |at| self.note(at))
    }

    fn note(&mut self, at: RowPos) -> Step {
        let start = Instant::now();
        let hold = self.writing.begin();
        let (pos, durable) = self.sink.cut(at)?;
        let closed = self.sink.closed();
        drop(hold);
        if self.reads_several && at.index == u64::MAX {
            self.ends.retain(|(source, _)| *source != at.source);
            self.ends.push((at.source, pos.bytes));
        }
        let cut = SinkCut { pos, rejected: self.rejected.before(at), ends: self.ends.clone(), closed: Vec::new() };
        self.me.shared.progress.mark(self.number, at, Mark { cut, durable: Some(durable) }, closed);
        self.me.worked(start);
        Ok(())
    }
}
