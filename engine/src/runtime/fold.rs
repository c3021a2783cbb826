//! Nodes that keep rows back: one thread, in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::RecvTimeoutError;

use super::board::{Described, Lane};
use super::exit::{Exit, Step};
use super::message::Message;
use super::outlets::Outlets;
use super::project::project;
use super::queue::Receiver;
use super::shared::{Me, rows_text};
use super::stats::NodeStats;
use crate::data::{Batch, RejectRow, RowPos};
use crate::node::Fold;

/// A stage that folds.
pub(super) struct Folding {
    pub(super) me: Me,
    pub(super) fold: Box<dyn Fold>,
    pub(super) input: Receiver<Message>,
    pub(super) outlets: Outlets,
    pub(super) lane: Arc<Lane>,
}

impl Folding {
    /// Runs until the input ends.
    pub(super) fn run(mut self) -> Exit {
        match self.drive() {
            Ok(()) => self.outlets.end(),
            Err(exit) => exit,
        }
    }

    fn drive(&mut self) -> Step {
        let mut seen = RowPos::start_of(0);
        loop {
            self.me.shared.check()?;
            let start = Instant::now();
            let packet = match self.fold.deadline() {
                None => self.input.channel().recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => self.input.channel().recv_deadline(deadline),
            };
            NodeStats::add_time(&self.me.stats.starved, start);
            let packet = match packet {
                Ok(packet) => packet,
                Err(RecvTimeoutError::Disconnected) => return Err(Exit::Cancelled),
                Err(RecvTimeoutError::Timeout) => {
                    self.flush(seen)?;
                    continue;
                }
            };
            self.me.stats.queue.store(self.input.len(), Ordering::Relaxed);
            let Some(message) = self.input.took(packet) else {
                return self.flush(seen);
            };
            seen = message.upto;
            self.push(message)?;
        }
    }

    fn push(&mut self, message: Message) -> Step {
        let start = Instant::now();
        let mut out = Vec::new();
        if let Some(batch) = message.batch {
            self.me.stats.rows_in.fetch_add(batch.n_rows() as u64, Ordering::Relaxed);
            let _hold =
                self.lane.hold(Arc::new(Described::new(format!("working on {}", rows_text(batch.positions())))));
            self.fold.push(batch, &mut out)?;
        }
        self.me.worked(start);
        self.emit(out, message.rejects, message.upto)
    }

    fn flush(&mut self, seen: RowPos) -> Step {
        let mut out = Vec::new();
        self.fold.flush(&mut out)?;
        self.emit(out, Vec::new(), seen)
    }

    /// Sends batches, each with the position of the first row that is not sent yet as watermark: in a union one position
    /// comes several times, so the one behind the last row sent would be too far.
    fn emit(&mut self, out: Vec<Batch>, mut passed: Vec<Arc<RejectRow>>, seen: RowPos) -> Step {
        let after_all = self.fold.held().map_or(seen, |held| held.min(seen));
        let firsts: Vec<_> = out.iter().skip(1).map(|batch| batch.positions()[0].min(seen)).collect();
        for (batch, upto) in out.into_iter().zip(firsts.into_iter().chain([after_all])) {
            let batch = project(&self.me.node().spec, &[&batch], Vec::new());
            self.outlets.emit(Some(batch), std::mem::take(&mut passed), Vec::new(), upto)?;
        }
        self.outlets.emit(None, passed, Vec::new(), after_all)
    }
}
