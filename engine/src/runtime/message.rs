//! What travels along an edge.

use std::sync::Arc;

use crate::data::{Batch, RejectRow, RowPos};

/// Rows, rejects, and how far the edge has come.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Rows in order, none before the previous message's watermark.
    pub(super) batch: Option<Batch>,
    /// Rows rejected on the way to here. Each arrives before the watermark passes its position.
    pub(super) rejects: Vec<Arc<RejectRow>>,
    /// Every row before it has been seen, as a row or as a reject.
    pub(super) upto: RowPos,
}

impl Message {
    /// Bytes that it holds in a queue.
    pub(super) fn bytes(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::bytes) + self.rejects.len() * 256
    }

    /// Rows in it.
    pub(super) fn n_rows(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::n_rows)
    }
}
