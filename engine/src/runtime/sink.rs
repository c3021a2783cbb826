//! Sinks: one thread, in order.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::exit::{Exit, Step};
use super::message::Message;
use super::queue::Receiver;
use super::shared::Me;
use super::stats::NodeStats;
use super::writing::Writing;
use crate::data::RowPos;
use crate::node::Sink;

/// A stage that takes rows out.
pub(super) struct Sinking {
    pub(super) me: Me,
    pub(super) sink: Box<dyn Sink>,
    pub(super) input: Receiver<Message>,
    /// The sink's number in the reject log.
    pub(super) number: usize,
    pub(super) writing: Writing,
}

/// What a sink leaves when its stage has ended.
pub(super) struct Sunk {
    pub(super) node_idx: usize,
    pub(super) sink: Box<dyn Sink>,
    /// Rows rejected on the way to it.
    pub(super) rejected: u64,
}

impl Sinking {
    /// Runs until the input ends. The sink comes back to be published, or to say where its unfinished output lies.
    pub(super) fn run(mut self) -> (Exit, Sunk) {
        let mut rejected = 0;
        let exit = match self.drive(&mut rejected) {
            Ok(()) => Exit::Finished,
            Err(exit) => exit,
        };
        (exit, Sunk { node_idx: self.me.node_idx, sink: self.sink, rejected })
    }

    fn drive(&mut self, rejected: &mut u64) -> Step {
        let mut seen = RowPos::start_of(0);
        loop {
            let start = Instant::now();
            let packet = self.input.channel().recv().map_err(|_| Exit::Cancelled)?;
            NodeStats::add_time(&self.me.stats.starved, start);
            self.me.stats.queue.store(self.input.len(), Ordering::Relaxed);
            let Some(message) = self.input.took(packet) else { break };
            seen = message.upto;
            *rejected += message.rejects.len() as u64;
            self.write(message)?;
        }
        self.me.shared.rejects.advance(self.number, RowPos::END, Vec::new(), &self.me.shared.stats)?;
        let start = Instant::now();
        let hold = self.writing.begin();
        self.sink.cut(seen)?.1()?;
        drop(hold);
        self.me.worked(start);
        Ok(())
    }

    fn write(&mut self, message: Message) -> Step {
        let start = Instant::now();
        if let Some(batch) = &message.batch {
            self.me.stats.rows_in.fetch_add(batch.n_rows() as u64, Ordering::Relaxed);
            let hold = self.writing.begin();
            self.sink.write(batch)?;
            drop(hold);
            self.me.stats.rows_out.fetch_add(batch.n_rows() as u64, Ordering::Relaxed);
            self.me.stats.bytes_out.fetch_add(batch.bytes() as u64, Ordering::Relaxed);
        }
        self.me.shared.rejects.advance(self.number, message.upto, message.rejects, &self.me.shared.stats)?;
        self.me.worked(start);
        Ok(())
    }
}
