//! Row maps and plain projections as parallel work.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::board::{At, Described};
use super::message::Message;
use super::parallel::{Chunk, Grain, Task};
use super::project::project;
use super::shared::{Me, Names};
use crate::data::{Alloc, Batch, Column, ColumnBuilder, ColumnType, Reject, RejectRow, RowMut, RowPos, code};
use crate::node::{Fault, Role, RowMap};

impl Chunk for Message {
    fn n_rows(&self) -> usize {
        Message::n_rows(self)
    }

    fn bytes(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::bytes)
    }

    fn upto(&self, row_idx: usize) -> RowPos {
        match &self.batch {
            Some(batch) if row_idx < batch.n_rows() => batch.positions()[row_idx],
            _ => self.upto,
        }
    }

    fn take_rejects(&mut self) -> Vec<Arc<RejectRow>> {
        std::mem::take(&mut self.rejects)
    }
}

/// What a node of the form [`crate::node::Stage::Rows`] or [`crate::node::Stage::Pass`] does to a piece of a message.
pub(super) struct RowTask {
    me: Me,
    map: Option<Arc<dyn RowMap>>,
    new_types: Vec<ColumnType>,
    names: Names,
    alloc: Arc<dyn Alloc>,
}

impl RowTask {
    /// `map` is absent for nodes that only pass on columns.
    pub(super) fn new(me: Me, map: Option<Arc<dyn RowMap>>, alloc: Arc<dyn Alloc>) -> Self {
        let node = me.node();
        let (new_types, names) = (node.spec.new_types(), Names::of(&node.schemas[0]));
        RowTask { me, map, new_types, names, alloc }
    }
}

impl Task for RowTask {
    type Input = Message;

    fn run(&self, input: &Message, range: Range<usize>, at: &At) -> Result<Grain, Fault> {
        let whole = input.batch.as_ref().expect("grains are cut from rows");
        let rows = whole.slice(range);
        let Some(map) = &self.map else {
            let batch = project(&self.me.node().spec, &[&rows], Vec::new());
            return Ok(Grain { batch: Some(batch), ..Grain::default() });
        };
        let (what, killer) = ("the code for this row", &self.me.shared.killer);
        let slot = killer.enter(self.me.node_idx);
        let mapped = map_rows(rows.n_rows(), what, &self.new_types, &*self.alloc, at, |row_idx, out| {
            if let Some(slot) = &slot {
                let pos = rows.positions()[row_idx];
                if let Some(reject) = killer.kills(&self.me.shared.graph, self.me.node_idx, pos) {
                    return Err(reject);
                }
                slot.note(pos);
            }
            map.map_row(rows.row(row_idx), out)
        });
        drop(slot);
        let rejects =
            mapped.rejects.into_iter().map(|(row_idx, reject)| self.me.reject(&self.names, &rows, row_idx, reject));
        let rejects = rejects.collect::<Result<Vec<_>, _>>()?;
        let passed = if rejects.is_empty() { rows } else { rows.take(&mapped.passed) };
        let batch = project(&self.me.node().spec, &[&passed], mapped.columns);
        Ok(Grain { batch: Some(batch), rejects, ..Grain::default() })
    }

    fn describe(&self, input: &Message, row_idx: usize) -> Described {
        let verb = if self.me.node().kind.role() == Role::Decode { "decoding" } else { "working on" };
        let uri = input.batch.as_ref().and_then(|batch| self.names.uri_of(batch, row_idx));
        Described::new(uri.map_or_else(|| verb.to_owned(), |uri| format!("{verb} `{uri}`")))
    }
}

/// What came of some rows.
pub(super) struct Mapped {
    pub(super) columns: Vec<Column>,
    pub(super) passed: Vec<usize>,
    pub(super) rejects: Vec<(usize, Reject)>,
}

/// Makes the new columns of rows one row at a time. A row that fails or panics leaves nothing behind; `what` is said to
/// have panicked then. Which row it is at is noted in `at`.
pub(super) fn map_rows(
    n_rows: usize,
    what: &str,
    new_types: &[ColumnType],
    alloc: &dyn Alloc,
    at: &At,
    mut map: impl FnMut(usize, &mut RowMut<'_>) -> Result<(), Reject>,
) -> Mapped {
    let mut builders: Vec<_> = new_types.iter().map(ColumnBuilder::new).collect();
    let (mut passed, mut rejects) = (Vec::with_capacity(n_rows), Vec::new());
    for row_idx in 0..n_rows {
        at.row(row_idx);
        let mut out = RowMut::new(&mut builders, alloc);
        let outcome = catch_unwind(AssertUnwindSafe(|| map(row_idx, &mut out)));
        let outcome = outcome.unwrap_or_else(|panic| {
            Err(Reject::new(code::PANIC, format!("{what} panicked: {}", crate::worker::panic_text(&*panic))))
        });
        match outcome {
            Ok(()) => {
                passed.push(row_idx);
                assert!(out.is_complete(passed.len()), "the node left out or repeated a column");
            }
            Err(reject) => {
                builders.iter_mut().for_each(|builder| builder.truncate(passed.len()));
                rejects.push((row_idx, reject));
            }
        }
    }
    Mapped { columns: builders.into_iter().map(ColumnBuilder::finish).collect(), passed, rejects }
}
