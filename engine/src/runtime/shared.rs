//! What all stages of a run share.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::board::{Board, Lane};
use super::exit::{Exit, Step};
use super::killer::Killer;
use super::progress::Progress;
use super::rejects::RejectLog;
use super::stats::{NodeStats, RunStats};
use super::trace::Trace;
use crate::config::OnError;
use crate::data::{Batch, Reject, RejectRow, Role, RowPos, Schema};
use crate::graph::Graph;
use crate::graph::render::figures::grouped;
use crate::node::{Cancel, Fault};

/// Shared by all stages of a run.
pub(super) struct Shared {
    pub(super) graph: Arc<Graph>,
    pub(super) cancel: Cancel,
    pub(super) stats: Arc<RunStats>,
    pub(super) rejects: RejectLog,
    pub(super) progress: Progress,
    pub(super) trace: Option<Arc<Trace>>,
    /// What is under way.
    pub(super) board: Arc<Board>,
    /// What is known of rows that kill the process.
    pub(super) killer: Killer,
    fault: Mutex<Option<Fault>>,
}

impl Shared {
    #[expect(clippy::too_many_arguments, reason = "the parts of one struct")]
    pub(super) fn new(
        graph: Arc<Graph>,
        cancel: Cancel,
        stats: Arc<RunStats>,
        rejects: RejectLog,
        progress: Progress,
        trace: Option<Arc<Trace>>,
        board: Arc<Board>,
        killer: Killer,
    ) -> Self {
        Shared { graph, cancel, stats, rejects, progress, trace, board, killer, fault: Mutex::new(None) }
    }

    /// Records a fault; the first one stays. Sources stop.
    pub(super) fn fail(&self, fault: Fault) {
        self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(fault);
        self.cancel.abort();
    }

    /// Ends a stage if everything is to stop.
    pub(super) fn check(&self) -> Step {
        if self.cancel.is_aborted() { Err(Exit::Cancelled) } else { Ok(()) }
    }

    /// The first fault.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// What a stage knows of itself.
#[derive(Clone)]
pub(super) struct Me {
    pub(super) node_idx: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) stats: Arc<NodeStats>,
}

impl Me {
    pub(super) fn new(node_idx: usize, shared: &Arc<Shared>) -> Self {
        Me { node_idx, shared: shared.clone(), stats: shared.stats.nodes[node_idx].clone() }
    }

    pub(super) fn node(&self) -> &crate::graph::GraphNode {
        &self.shared.graph.nodes[self.node_idx]
    }

    /// A lane for one kind of this node's work, which so many threads do.
    pub(super) fn lane(&self, n_threads: usize) -> Arc<Lane> {
        self.shared.board.lane(self.node_idx, n_threads)
    }

    /// Notes work that began at `start` and ends now.
    pub(super) fn worked(&self, start: Instant) {
        NodeStats::add_time(&self.stats.work, start);
        if let Some(trace) = &self.shared.trace {
            trace.worked(&self.node().name, start);
        }
    }

    /// A reject as a row, with the id and uri of the row that it was.
    ///
    /// # Errors
    /// If the node is to end the run instead.
    pub(super) fn reject(
        &self,
        names: &Names,
        batch: &Batch,
        row_idx: usize,
        reject: Reject,
    ) -> Result<Arc<RejectRow>, Fault> {
        let row = batch.row(row_idx);
        let uri = names.uri.map_or(String::new(), |column| row.text(column).to_owned());
        let id = names.id.map_or_else(|| uri.clone(), |column| row.text(column).to_owned());
        self.reject_row(row.pos(), id, uri, reject)
    }

    /// The same where the row is not in a batch.
    pub(super) fn reject_row(
        &self,
        pos: RowPos,
        id: String,
        uri: String,
        reject: Reject,
    ) -> Result<Arc<RejectRow>, Fault> {
        let node = self.node();
        // Whoever reads it alone, in a log or a table, has to know the file.
        let names_row = uri.is_empty() || reject.message.contains(&uri);
        let message = if names_row { reject.message } else { format!("`{uri}`: {}", reject.message) };
        let message = self.shared.graph.redact(&message);
        if node.on_error == OnError::Fail {
            let message = format!("{message} ({})", reject.code);
            return Err(Fault::transient(message).help("leave out `on_error: fail` to go on without such rows"));
        }
        self.stats.rejects.fetch_add(1, Ordering::Relaxed);
        tracing::trace!(node = node.name, uri, code = reject.code, message, "rejected");
        let name = node.name.clone();
        Ok(Arc::new(RejectRow { pos, node_index: self.node_idx, id, uri, node: name, code: reject.code, message }))
    }
}

/// Rows in words, by their place in their source: `rows 643,584–643,615`.
pub(super) fn rows_text(positions: &[RowPos]) -> String {
    match positions {
        [] => "no rows".to_owned(),
        [first, .., last] if first.index != last.index => {
            format!("rows {}–{}", grouped(first.index), grouped(last.index))
        }
        [first, ..] => format!("row {}", grouped(first.index)),
    }
}

/// Where a schema has the columns that name a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    id: Option<usize>,
    uri: Option<usize>,
}

impl Names {
    /// Where a row came from, if its batch says so.
    pub(super) fn uri_of<'a>(&self, batch: &'a Batch, row_idx: usize) -> Option<&'a str> {
        let column = self.uri.or(self.id).filter(|_| row_idx < batch.n_rows())?;
        Some(batch.row(row_idx).text(column))
    }

    /// By role; columns that a select has hidden are still found by name.
    pub(super) fn of(schema: &Schema) -> Self {
        let text = |column: &usize| schema.fields[*column].ty == crate::data::ColumnType::Text;
        let find = |role, name| schema.index_of_role(role).or_else(|| schema.index_of(name)).filter(text);
        Names { id: find(Role::Id, "id"), uri: find(Role::Uri, "uri") }
    }
}
