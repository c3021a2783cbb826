//! The writing side of a node: everyone who reads its rows or its rejects.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::exit::{Exit, Step};
use super::message::Message;
use super::queue::Sender;
use super::stats::NodeStats;
use crate::data::{Batch, ColumnBuilder, ColumnType, RejectRow, RowPos};

/// Sends a node's output to all its readers, waiting for the slowest.
pub(super) struct Outlets {
    rows: Vec<Sender<Message>>,
    rejects: Vec<Sender<Message>>,
    stats: Arc<NodeStats>,
    sent_upto: RowPos,
}

impl Outlets {
    pub(super) fn new(rows: Vec<Sender<Message>>, rejects: Vec<Sender<Message>>, stats: Arc<NodeStats>) -> Self {
        Outlets { rows, rejects, stats, sent_upto: RowPos::start_of(0) }
    }

    /// Sends rows, the rejects of nodes before (`passed`) and this node's (`own`), and the new watermark.
    pub(super) fn emit(
        &mut self,
        batch: Option<Batch>,
        passed: Vec<Arc<RejectRow>>,
        own: Vec<Arc<RejectRow>>,
        upto: RowPos,
    ) -> Step {
        let batch = batch.filter(|batch| batch.n_rows() > 0);
        if batch.is_none() && passed.is_empty() && own.is_empty() && upto == self.sent_upto {
            return Ok(());
        }
        self.sent_upto = upto;
        if let Some(batch) = &batch {
            self.stats.rows_out.fetch_add(batch.n_rows() as u64, Ordering::Relaxed);
            self.stats.bytes_out.fetch_add(batch.bytes() as u64, Ordering::Relaxed);
        }
        if !self.rejects.is_empty() {
            let rows = (!own.is_empty()).then(|| reject_batch(&own));
            send(&self.rejects, Message { batch: rows, rejects: Vec::new(), upto }, &self.stats)?;
        }
        let mut rejects = passed;
        rejects.extend(own);
        send(&self.rows, Message { batch, rejects, upto }, &self.stats)
    }

    /// The watermark that was sent last.
    pub(super) fn sent_upto(&self) -> RowPos {
        self.sent_upto
    }

    /// Says that there will be no more.
    pub(super) fn end(self) -> Exit {
        let start = Instant::now();
        // All are told, even if one has gone: the others did nothing wrong.
        let told: Vec<_> = self.rows.iter().chain(&self.rejects).map(Sender::end).collect();
        NodeStats::add_time(&self.stats.blocked, start);
        if told.iter().all(Result::is_ok) { Exit::Finished } else { Exit::DownstreamClosed }
    }
}

fn send(senders: &[Sender<Message>], message: Message, stats: &NodeStats) -> Step {
    let start = Instant::now();
    let bytes = message.bytes();
    for sender in senders {
        sender.send(message.clone(), bytes).map_err(|_| Exit::DownstreamClosed)?;
    }
    NodeStats::add_time(&stats.blocked, start);
    Ok(())
}

/// Rejects as rows: the schema is that of `node.rejects`.
fn reject_batch(rejects: &[Arc<RejectRow>]) -> Batch {
    let mut rejects = rejects.to_vec();
    rejects.sort_by_key(|reject| reject.pos);
    let column = |text: &dyn Fn(&RejectRow) -> &str| {
        let mut builder = ColumnBuilder::new(&ColumnType::Text);
        rejects.iter().for_each(|reject| builder.push_text(text(reject)));
        builder.finish()
    };
    let columns = vec![
        column(&|reject| &reject.id),
        column(&|reject| &reject.uri),
        column(&|reject| &reject.node),
        column(&|reject| reject.code),
        column(&|reject| &reject.message),
    ];
    Batch::new(rejects.iter().map(|reject| reject.pos).collect(), columns)
}
