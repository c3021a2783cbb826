//! Sources: a thread that lists, and fetches as parallel work.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::board::{At, Described, Holding};
use super::exit::{Exit, Step};
use super::ledger::SourceEnd;
use super::pace::GRAIN_ROWS;
use super::parallel::{Chunk, Grain, Task};
use super::progress::Listed;
use super::project::project;
use super::queue::Sender;
use super::row_task::map_rows;
use super::shared::Me;
use super::unpack::{Container, Unpacked};
use crate::data::{Alloc, Batch, ColumnType, Reject, RejectRow, RowMut, RowPos};
use crate::graph::render::figures::grouped;
use crate::node::{Counting, Fault, Fetch, Item, List, Stamp, Unpack};

/// Items that a source has listed, one after the other.
pub(super) struct Items {
    first: RowPos,
    items: Vec<Item>,
}

impl Items {
    /// The items, each with its position.
    pub(super) fn into_positioned(self) -> impl Iterator<Item = (RowPos, Item)> {
        let first = self.first;
        (0..).zip(self.items).map(move |(number, item)| (RowPos { index: first.index + number, ..first }, item))
    }
}

/// What a listing is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// Each item is a row.
    Rows,
    /// Each item holds rows.
    Containers,
}

impl Chunk for Items {
    fn n_rows(&self) -> usize {
        self.items.len()
    }

    fn bytes(&self) -> usize {
        self.items.iter().map(|item| item.size_hint as usize).sum()
    }

    fn upto(&self, row_idx: usize) -> RowPos {
        RowPos::new(self.first.source, self.first.index + row_idx as u64)
    }

    fn take_rejects(&mut self) -> Vec<Arc<RejectRow>> {
        Vec::new()
    }
}

/// Lists until the end, the limit, or the wish to stop.
pub(super) struct Lister {
    pub(super) me: Me,
    pub(super) list: Box<dyn List>,
    pub(super) lists: Lists,
    /// The index of the first item to be listed.
    pub(super) start: u64,
    /// The index of the first that is not, whatever there is.
    pub(super) limit: u64,
    pub(super) output: Sender<Items>,
}

impl Lister {
    /// Runs until the listing ends.
    pub(super) fn run(mut self) -> Exit {
        let shared = self.me.shared.clone();
        match self.drive() {
            Ok(()) if shared.cancel.is_aborted() => Exit::Cancelled,
            Ok(()) if self.output.end().is_ok() => Exit::Finished,
            // What fetches has stopped before.
            Ok(()) | Err(Exit::DownstreamClosed) if shared.cancel.is_draining() || self.is_enough() => Exit::Finished,
            Ok(()) => Exit::DownstreamClosed,
            Err(exit) => exit,
        }
    }

    /// Whether what opens the items has as many rows as are wanted.
    fn is_enough(&self) -> bool {
        let number = self.me.node().source.expect("a source has a number");
        self.me.shared.progress.source(number as usize).unpacked == Some(Listed::Limit)
    }

    fn drive(&mut self) -> Step {
        let shared = self.me.shared.clone();
        let number = self.me.node().source.expect("a source has a number");
        let listed = &shared.stats.listed[number as usize];
        let (lane, listing) = (self.me.lane(1), Arc::new(Listing::default()));
        let mut index = self.start;
        let mut how = Listed::Limit;
        // A first small chunk, so that work begins at once.
        let mut max = 16;
        while index < self.limit {
            if shared.cancel.is_draining() {
                how = Listed::Stopped;
                break;
            }
            let wanted = (self.limit - index).min(max) as usize;
            let mut items = Vec::with_capacity(wanted);
            let hold = lane.hold(listing.clone());
            self.list.next_items(wanted, &mut items)?;
            drop(hold);
            if items.is_empty() {
                // A walk that ends because it is asked to stop is not at its end.
                how = if shared.cancel.is_draining() { Listed::Stopped } else { Listed::All };
                break;
            }
            listing.came_to(&self.me, items.last());
            let first = RowPos::new(number, index);
            index += items.len() as u64;
            if self.lists == Lists::Rows {
                listed.store(index, Ordering::Relaxed);
            }
            let bytes = items.iter().map(|item| size_of::<Item>() + item.uri.len() + item.locator.len()).sum();
            self.output.send(Items { first, items }, bytes).map_err(|_| Exit::DownstreamClosed)?;
            max = (max * 4).min(GRAIN_ROWS as u64);
        }
        if how != Listed::Stopped && self.lists == Lists::Rows {
            shared.stats.totals[number as usize].store(index, Ordering::Relaxed);
        }
        shared.progress.source(number as usize).listed = Some(how);
        Ok(())
    }
}

/// Where a listing stands.
#[derive(Default)]
struct Listing(Mutex<Option<Described>>);

impl Listing {
    fn came_to(&self, me: &Me, last: Option<&Item>) {
        let described = last.map(|item| describe(me, "listing what comes after", item));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = described;
    }
}

impl Holding for Listing {
    fn describe(&self) -> Described {
        let described = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        described.unwrap_or_else(|| Described::new("listing"))
    }
}

impl Holding for Counting {
    fn progress(&self) -> u64 {
        self.n_seen()
    }

    fn describe(&self) -> Described {
        Described::new(format!("counting, {} so far", grouped(self.n_seen())))
    }
}

/// What is done with an item. The locator of a file is its path.
fn describe(me: &Me, verb: &str, item: &Item) -> Described {
    Described::new(format!("{verb} `{}`", item.uri)).at(me.shared.graph.base.join(&item.locator))
}

/// A row that is read.
#[derive(Clone, Copy)]
struct Row<'a> {
    pos: RowPos,
    id: &'a str,
    uri: &'a str,
}

/// What reading rows needs, whatever they are made of.
pub(super) struct Reader {
    me: Me,
    types: Vec<ColumnType>,
    alloc: Arc<dyn Alloc>,
    /// Where the source starts.
    start: RowPos,
    /// What is added to an index for the source's own: in a shard it is not the same.
    offset: u64,
}

impl Reader {
    pub(super) fn new(me: Me, alloc: Arc<dyn Alloc>, start: RowPos, offset: u64) -> Self {
        let types = me.node().spec.new_types();
        Reader { me, types, alloc, start, offset }
    }

    /// Makes a batch of rows: `row` says which they are, `read` writes the columns behind the first two.
    fn rows<'a>(
        &self,
        n_rows: usize,
        at: &At,
        row: impl Fn(usize) -> Row<'a>,
        mut read: impl FnMut(usize, &mut RowMut<'_>) -> Result<(), Reject>,
    ) -> Result<Grain, Fault> {
        // By row: one that panics leaves its own out.
        let mapped = map_rows(n_rows, "reading this", &self.types, &*self.alloc, at, |row_idx, out| {
            let row = row(row_idx);
            out.text(0, row.id);
            out.text(1, row.uri);
            read(row_idx, out)
        });
        let rejects = mapped.rejects.into_iter().map(|(row_idx, reject)| {
            let row = row(row_idx);
            self.me.reject_row(row.pos, row.id.to_owned(), row.uri.to_owned(), reject)
        });
        let rejects = rejects.collect::<Result<Vec<_>, _>>()?;
        let positions = mapped.passed.into_iter().map(|row_idx| row(row_idx).pos).collect();
        let empty = Batch::new(positions, Vec::new());
        let batch = Some(project(&self.me.node().spec, &[&empty], mapped.columns));
        Ok(Grain { batch, rejects, ..Grain::default() })
    }

    /// All rows have been read, or as many as are wanted.
    fn ends(&self, upto: Option<RowPos>, is_stopped: bool) {
        let shared = &self.me.shared;
        let at = upto.unwrap_or(self.start);
        let source = self.start.source as usize;
        let mut notes = shared.progress.source(source);
        if notes.end.is_some() {
            // It was complete before the run began.
            return;
        }
        let listed = notes.unpacked.or(notes.listed).filter(|_| !is_stopped).unwrap_or(Listed::Stopped);
        let (is_complete, is_all) = (listed != Listed::Stopped, listed == Listed::All);
        let rows = notes.rows_at(at);
        notes.end = Some(SourceEnd { at, rows, is_complete, is_all });
        if !is_complete {
            shared.stats.listed[source].store(rows, Ordering::Relaxed);
            shared.stats.stopped_early.store(true, Ordering::Relaxed);
        }
    }
}

/// Reads items that are rows.
pub(super) struct FetchTask {
    reader: Reader,
    fetch: Arc<dyn Fetch>,
    /// Whether it is noted what items were when they were read.
    keeps_stamps: bool,
}

impl FetchTask {
    pub(super) fn new(reader: Reader, fetch: Arc<dyn Fetch>) -> Self {
        let keeps_stamps = reader.me.shared.progress.source(reader.start.source as usize).stamps.is_some();
        FetchTask { reader, fetch, keeps_stamps }
    }
}

impl Task for FetchTask {
    type Input = Items;

    fn run(&self, input: &Items, range: Range<usize>, at: &At) -> Result<Grain, Fault> {
        let (start, n_rows) = (range.start, range.len());
        let row = |row_idx: usize| {
            let item = &input.items[start + row_idx];
            Row { pos: input.upto(start + row_idx), id: item.id.as_deref().unwrap_or(&item.uri), uri: &item.uri }
        };
        let mut stamps = vec![Stamp::NONE; if self.keeps_stamps { n_rows } else { 0 }];
        let grain = self.reader.rows(n_rows, at, row, |row_idx, out| {
            let (pos, item) = (row(row_idx).pos, &input.items[start + row_idx]);
            let number = pos.index + self.reader.offset;
            self.reader.me.shared.killer.listed(pos, number, item);
            let fetched = self.fetch.fetch(number, item, out);
            if self.keeps_stamps {
                stamps[row_idx] = match &fetched {
                    Ok(stamp) => *stamp,
                    Err(reject) => self.fetch.stamp_of_rejected(item, reject),
                };
            }
            fetched.map(drop)
        })?;
        Ok(Grain { stamps, ..grain })
    }

    fn is_stopped(&self) -> bool {
        self.reader.me.shared.cancel.is_draining()
    }

    fn leaves(&self, grain: &Grain) {
        if self.keeps_stamps {
            self.reader.me.shared.progress.stamp(self.reader.start.source, &grain.stamps);
        }
    }

    fn ends(&self, upto: Option<RowPos>, is_stopped: bool) {
        self.reader.ends(upto, is_stopped);
    }

    fn describe(&self, input: &Items, row_idx: usize) -> Described {
        let item = input.items.get(row_idx);
        item.map_or_else(|| Described::new("reading"), |item| describe(&self.reader.me, "reading", item))
    }
}

/// Reads rows of items that hold many.
pub(super) struct UnpackTask {
    pub(super) reader: Reader,
    pub(super) unpack: Arc<dyn Unpack>,
}

impl Task for UnpackTask {
    type Input = Unpacked;

    fn run(&self, input: &Unpacked, range: Range<usize>, at: &At) -> Result<Grain, Fault> {
        let (start, n_rows) = (range.start, range.len());
        let row = |row_idx: usize| {
            let entry = &input.entries[start + row_idx];
            Row { pos: input.upto(start + row_idx), id: entry.id.as_deref().unwrap_or(&entry.uri), uri: &entry.uri }
        };
        let Container { number, item } = &*input.container;
        self.reader.rows(n_rows, at, row, |row_idx, out| {
            let entry = &input.entries[start + row_idx];
            self.reader.me.shared.killer.listed(row(row_idx).pos, *number, item);
            match &entry.content {
                Ok(_) => self.unpack.read(item, entry, out),
                Err(reject) => Err(reject.clone()),
            }
        })
    }

    fn is_stopped(&self) -> bool {
        self.reader.me.shared.cancel.is_draining()
    }

    fn ends(&self, upto: Option<RowPos>, is_stopped: bool) {
        self.reader.ends(upto, is_stopped);
    }

    fn describe(&self, input: &Unpacked, row_idx: usize) -> Described {
        let entry = input.entries.get(row_idx);
        let described =
            entry.map_or_else(|| Described::new("reading"), |entry| Described::new(format!("reading `{}`", entry.uri)));
        described.at(self.reader.me.shared.graph.base.join(&input.container.item.locator))
    }
}
