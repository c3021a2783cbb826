//! The things that run: what a kind's `build` makes.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Counting, Fault, LoadModel};
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
    /// Where to fetch it: what the source needs, such as a path. It has to mean the same in a later run, which may be
    /// started from another folder.
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

    /// Whether item `index` is the same in every run, so that a run that goes on needs no record of what was listed.
    fn is_fixed(&self) -> bool {
        false
    }
}

/// Reads the content of listed items, on many threads.
pub trait Fetch: Send + Sync {
    /// Reads item number `index` and writes the source's new columns. The columns `id` and `uri` are written already.
    ///
    /// # Errors
    /// Why this item cannot be read.
    fn fetch(&self, index: u64, item: &Item, out: &mut RowMut<'_>) -> Result<Stamp, Reject>;

    /// The item as it is now, without reading it: what [`Fetch::fetch`] would give. [`Stamp::NONE`] if it is not there.
    fn stamp(&self, _item: &Item) -> Stamp {
        Stamp::NONE
    }

    /// The stamp of an item that was rejected. A kind that knows by the reject that there is nothing need not look again.
    fn stamp_of_rejected(&self, item: &Item, _reject: &Reject) -> Stamp {
        self.stamp(item)
    }

    /// [`Fetch::stamp`] for many items in the order in which they were listed; `None` where it cannot be told.
    fn stamps(&self, items: &[Item]) -> Vec<Option<Stamp>> {
        items.iter().map(|item| Some(self.stamp(item))).collect()
    }
}

/// One row of an item that holds many, before its columns are written.
pub struct Entry {
    /// Where it comes from, as users see it: the item's uri, `#` and what names the row in it.
    pub uri: String,
    /// Its id, where that is another.
    pub id: Option<String>,
    /// Bytes of memory that it holds.
    pub bytes: u64,
    /// What [`Unpack::read`] makes the columns of, or why there is nothing.
    pub content: Result<Box<dyn Any + Send + Sync>, Reject>,
}

/// Opens listed items that hold many rows each, such as archives and tables. A row's position is `(item, row in it)`, and
/// a run that was stopped goes on there.
pub trait Unpack: Send + Sync {
    /// Opens item number `index` before its row number `skip`: beyond the last row there is nothing. Several may be open at
    /// once, each on a thread of its own.
    ///
    /// # Errors
    /// Why the item cannot be read: it is one rejected row then.
    fn open(&self, index: u64, item: &Item, skip: u32) -> Result<Box<dyn Entries>, Reject>;

    /// Writes the source's new columns for one row, on many threads. The columns `id` and `uri` are written already.
    ///
    /// # Errors
    /// Why this row cannot be read.
    fn read(&self, item: &Item, entry: &Entry, out: &mut RowMut<'_>) -> Result<(), Reject>;

    /// The item as it is now, as [`Fetch::stamp`].
    fn stamp(&self, _item: &Item) -> Stamp {
        Stamp::NONE
    }

    /// [`Unpack::stamp`] for many items, as [`Fetch::stamps`].
    fn stamps(&self, items: &[Item]) -> Vec<Option<Stamp>> {
        items.iter().map(|item| Some(self.stamp(item))).collect()
    }

    /// How many items may be open at once, each read ahead in bounded memory.
    fn n_open(&self) -> usize {
        1
    }
}

/// The rows of an item, one after the other.
pub trait Entries: Send {
    /// The next row; `None` at the end. Where the rest cannot be read, the last row says so, with a reject for its content.
    fn next_entry(&mut self) -> Option<Entry>;

    /// What the item was when it was opened.
    fn stamp(&self) -> Stamp {
        Stamp::NONE
    }
}

/// How a source reads what it has listed.
#[derive(Clone)]
pub enum Reading {
    /// Each item is one row.
    Rows(Arc<dyn Fetch>),
    /// Each item holds rows.
    Unpacked(Arc<dyn Unpack>),
}

impl Reading {
    /// The items as they are now, without reading them; `None` where it cannot be told.
    pub fn stamps(&self, items: &[Item]) -> Vec<Option<Stamp>> {
        match self {
            Reading::Rows(fetch) => fetch.stamps(items),
            Reading::Unpacked(unpack) => unpack.stamps(items),
        }
    }
}

/// What an item was when it was read: another one says that it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub u32);

impl Stamp {
    /// Of what does not change, or is not there.
    pub const NONE: Stamp = Stamp(0);
}

/// Finds out how many items there are, beside the run; `None` if it was cancelled or cannot be known.
pub type Count = Box<dyn FnOnce(&Counting) -> Option<u64> + Send>;

/// A source in two halves, because listing is serial and fetching is parallel. The columns `id` and `uri` come first
/// in a source's spec and are filled by the runtime; the fetch fills those after them.
pub struct SourceStage {
    /// Lists.
    pub list: Box<dyn List>,
    /// Reads.
    pub reading: Reading,
    /// Counts rows, for progress in per cent.
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
    /// What else the sink has to know, such as the parts that it has closed; nothing for most.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub more: serde_json::Value,
}

/// Makes durable what a sink has written up to a cut. It may take a while, and is called on another thread; it is not
/// called if a later cut's is, which covers the earlier ones.
pub type Durable = Box<dyn FnOnce() -> Result<(), Fault> + Send>;

/// An output that is complete and durable, but for its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Where: a path or a URL as the user wrote it, or `-` for standard output.
    pub path: String,
    /// The file that holds it before it is an object, in the folder of the run's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spooled: Option<String>,
    /// Rows in it.
    pub rows: u64,
    /// Bytes in it.
    pub bytes: u64,
    /// Whether it is to be renamed.
    pub place: Place,
}

/// What an output is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// A file: it has a temporary name until it is published.
    File,
    /// An object of a store: it is a file beside the run's state until it is published. See [`Objects`](super::Objects).
    Object,
    /// Standard output, a pipe, a device: what is written is out.
    Stream,
}

/// Takes rows out, on one thread, in order. Nothing has its final name before it is sealed.
pub trait Sink: Send {
    /// Writes rows.
    ///
    /// # Errors
    /// A full disk and the like.
    fn write(&mut self, batch: &Batch) -> Result<(), Fault>;

    /// Where the sink stands, so that it can be gone on with from here by [`Sink::resume`], and how to make it durable.
    /// Called now and then, between rows; every row before `upto` was written or rejected. A sink whose output cannot be
    /// cut back (on an object store) closes a part here.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn cut(&mut self, upto: RowPos) -> Result<(SinkPos, Durable), Fault>;

    /// Parts of the output that were completed before the last [`Sink::cut`] and since the one before it. Each is an output of
    /// its own, and is given its name when that cut is committed.
    fn closed(&mut self) -> Vec<Sealed> {
        Vec::new()
    }

    /// Goes back to `at`, dropping what was written after it: about how many rows that is.
    ///
    /// # Errors
    /// If what is there is not what was written.
    fn resume(&mut self, at: &SinkPos) -> Result<u64, Fault>;

    /// Makes what is left of the output complete and durable. It is given its name afterwards, together with the other outputs.
    ///
    /// # Errors
    /// As [`Sink::write`]; a failed fsync is one.
    fn seal(self: Box<Self>) -> Result<Vec<Sealed>, Fault>;

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
