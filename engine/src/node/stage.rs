//! The things that run: what a kind's `build` makes.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Cancel, Fault, LoadModel};
use crate::data::{Batch, Reject, RowMut, RowPos, RowRef};

/// What a node does, in the form that the runtime drives.
pub enum Stage {
    /// Gives rows.
    Source(SourceStage),
    /// Works on each row by itself, on the row pool.
    Rows(Arc<dyn RowMap>),
    /// Only passes on columns, as its spec says: select, join.
    Pass,
    /// Keeps state from row to row, on one thread.
    Fold(Box<dyn Fold>),
    /// Runs a model.
    Infer(InferStage),
    /// Takes rows out.
    Sink(Box<dyn Sink>),
}

/// One thing that a source lists, before its content is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where it comes from, as users see it.
    pub uri: String,
    /// Its id, where that is another.
    pub id: Option<String>,
    /// Where to fetch it: what the source needs, such as a path.
    pub locator: OsString,
    /// Bytes it is expected to have, 0 if unknown.
    pub size_hint: u64,
}

/// Lists a source's items in order, on one thread.
pub trait List: Send {
    /// Appends up to `max` further items to `items`; appending none says that the listing has ended.
    ///
    /// # Errors
    /// What makes the listing impossible; a single item that cannot be read is listed, and rejected by the fetch.
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault>;

    /// Goes to item `index`, so that the next item is that one.
    ///
    /// # Errors
    /// As [`List::next_items`].
    fn seek(&mut self, index: u64) -> Result<(), Fault>;
}

/// Reads the content of listed items, on many threads.
pub trait Fetch: Send + Sync {
    /// Reads item number `index` and writes the source's new columns. The columns `id` and `uri` are written already.
    ///
    /// # Errors
    /// Why this item cannot be read.
    fn fetch(&self, index: u64, item: &Item, out: &mut RowMut<'_>) -> Result<(), Reject>;
}

/// Finds out how many items there are, beside the run; `None` if it was cancelled or cannot be known.
pub type Count = Box<dyn FnOnce(&Cancel) -> Option<u64> + Send>;

/// A source in two halves, because listing is serial and fetching is parallel. The columns `id` and `uri` come first
/// in a source's spec and are filled by the runtime; the fetch fills those after them.
pub struct SourceStage {
    /// Lists.
    pub list: Box<dyn List>,
    /// Fetches.
    pub fetch: Arc<dyn Fetch>,
    /// Counts, for progress in per cent.
    pub count: Option<Count>,
}

/// Work on one row at a time.
pub trait RowMap: Send + Sync {
    /// Reads a row and writes each new column of the node's spec once.
    ///
    /// # Errors
    /// Why this row cannot be processed. Whatever it has written is taken back.
    fn map_row(&self, row: RowRef<'_>, out: &mut RowMut<'_>) -> Result<(), Reject>;
}

/// Work that keeps rows back, such as a batch: on one thread, in order.
pub trait Fold: Send {
    /// Takes rows, appends finished batches to `out`. Rows keep their positions and their order.
    ///
    /// # Errors
    /// A fault of the node, not of a row.
    fn push(&mut self, batch: Batch, out: &mut Vec<Batch>) -> Result<(), Fault>;

    /// When [`Fold::flush`] is to be called even if no row comes.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The position of the first row that is held back.
    fn held(&self) -> Option<RowPos>;

    /// Gives out all rows that are held back.
    ///
    /// # Errors
    /// As [`Fold::push`].
    fn flush(&mut self, out: &mut Vec<Batch>) -> Result<(), Fault>;
}

/// Everything needed to run a model on batches.
pub struct InferStage {
    /// Loads it.
    pub model: Arc<dyn LoadModel>,
    /// The indices of the columns that are its inputs.
    pub inputs: Vec<usize>,
    /// Whether part batches are filled up.
    pub padding: Padding,
}

/// What a part batch needs so that a row's bits do not depend on its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// It is computed at the planned number of rows: the model's kernels sum in another order for another number.
    ToPlan,
    /// Nothing: the model computes each row by itself.
    None,
}

/// How far a sink has come: enough to go on from there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkPos {
    /// Rows written.
    pub rows: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// An output as it lies on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// Where: a path as the user wrote it, or `-` for standard output.
    pub path: String,
    /// Rows in it.
    pub rows: u64,
    /// Bytes in it.
    pub bytes: u64,
}

/// Takes rows out, on one thread, in order. Nothing has its final name before `publish`.
pub trait Sink: Send {
    /// Writes rows.
    ///
    /// # Errors
    /// A full disk and the like.
    fn write(&mut self, batch: &Batch) -> Result<(), Fault>;

    /// Makes durable all that was written. `upto` says that every row before it was written or rejected.
    ///
    /// # Errors
    /// As [`Sink::write`]; a failed fsync is one.
    fn sync(&mut self, upto: RowPos) -> Result<SinkPos, Fault>;

    /// Goes back to `at`, dropping what was written after it.
    ///
    /// # Errors
    /// If what is there is not what was written.
    fn resume(&mut self, at: &SinkPos) -> Result<(), Fault>;

    /// Gives the output its final name.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn publish(self: Box<Self>) -> Result<Vec<Published>, Fault>;

    /// Where the unfinished output lies, for the last line of an interrupted run; `None` if nowhere (standard output).
    fn unfinished(&self) -> Option<PathBuf>;
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Source(_) => "Source",
            Stage::Rows(_) => "Rows",
            Stage::Pass => "Pass",
            Stage::Fold(_) => "Fold",
            Stage::Infer(_) => "Infer",
            Stage::Sink(_) => "Sink",
        })
    }
}
