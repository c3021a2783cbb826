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
use crate::data::{Alloc, Batch, ColumnType, RejectRow, RowPos};
use crate::graph::render::figures::grouped;
use crate::node::{Counting, Fault, Fetch, Item, List, Stamp};

/// Items that a source has listed, one after the other.
pub(super) struct Items {
    first: RowPos,
    items: Vec<Item>,
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
            Ok(()) | Err(Exit::DownstreamClosed) if shared.cancel.is_draining() => Exit::Finished,
            Ok(()) => Exit::DownstreamClosed,
            Err(exit) => exit,
        }
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
            listed.store(index, Ordering::Relaxed);
            let bytes = items.iter().map(|item| size_of::<Item>() + item.uri.len() + item.locator.len()).sum();
            self.output.send(Items { first, items }, bytes).map_err(|_| Exit::DownstreamClosed)?;
            max = (max * 4).min(GRAIN_ROWS as u64);
        }
        if how != Listed::Stopped {
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

/// What a source does to a piece of its listing.
pub(super) struct FetchTask {
    me: Me,
    fetch: Arc<dyn Fetch>,
    types: Vec<ColumnType>,
    alloc: Arc<dyn Alloc>,
    /// The number of the source, and the index at which it starts.
    source: u32,
    start: u64,
    /// What is added to an index for the source's own: in a shard it is not the same.
    offset: u64,
    /// Whether it is noted what items were when they were read.
    keeps_stamps: bool,
}

impl FetchTask {
    pub(super) fn new(me: Me, fetch: Arc<dyn Fetch>, alloc: Arc<dyn Alloc>, start: u64, offset: u64) -> Self {
        let types = me.node().spec.new_types();
        let source = me.node().source.expect("a source has a number");
        let keeps_stamps = me.shared.progress.source(source as usize).stamps.is_some();
        FetchTask { me, fetch, types, alloc, source, start, offset, keeps_stamps }
    }
}

impl Task for FetchTask {
    type Input = Items;

    fn run(&self, input: &Items, range: Range<usize>, at: &At) -> Result<Grain, Fault> {
        let (start, n_rows) = (range.start, range.len());
        let row = |row_idx: usize| {
            let item = &input.items[start + row_idx];
            (input.upto(start + row_idx), item, item.id.as_deref().unwrap_or(&item.uri))
        };
        // By row: one that panics leaves its own out.
        let mut stamps = vec![Stamp::NONE; if self.keeps_stamps { n_rows } else { 0 }];
        let mapped = map_rows(n_rows, "reading this", &self.types, &*self.alloc, at, |row_idx, out| {
            let (pos, item, id) = row(row_idx);
            self.me.shared.killer.listed(pos, pos.index + self.offset, item);
            out.text(0, id);
            out.text(1, &item.uri);
            let fetched = self.fetch.fetch(pos.index + self.offset, item, out);
            if self.keeps_stamps {
                stamps[row_idx] = fetched.as_ref().map_or_else(|_| self.fetch.stamp(item), |stamp| *stamp);
            }
            fetched.map(drop)
        });
        let rejects = mapped.rejects.into_iter().map(|(row_idx, reject)| {
            let (pos, item, id) = row(row_idx);
            self.me.reject_row(pos, id.to_owned(), item.uri.clone(), reject)
        });
        let rejects = rejects.collect::<Result<Vec<_>, _>>()?;
        let positions = mapped.passed.into_iter().map(|row_idx| row(row_idx).0).collect();
        let empty = Batch::new(positions, Vec::new());
        Ok(Grain { batch: Some(project(&self.me.node().spec, &[&empty], mapped.columns)), rejects, stamps })
    }

    fn is_stopped(&self) -> bool {
        self.me.shared.cancel.is_draining()
    }

    fn leaves(&self, grain: &Grain) {
        if self.keeps_stamps {
            self.me.shared.progress.stamp(self.source, &grain.stamps);
        }
    }

    fn ends(&self, upto: Option<RowPos>, is_stopped: bool) {
        let shared = &self.me.shared;
        let index = upto.map_or(self.start, |upto| upto.index);
        let mut notes = shared.progress.source(self.source as usize);
        if notes.end.is_some() {
            // It was complete before the run began.
            return;
        }
        let listed = notes.listed.filter(|_| !is_stopped).unwrap_or(Listed::Stopped);
        let (is_complete, is_all) = (listed != Listed::Stopped, listed == Listed::All);
        notes.end = Some(SourceEnd { index, is_complete, is_all });
        if !is_complete {
            shared.stats.listed[self.source as usize].store(index, Ordering::Relaxed);
            shared.stats.stopped_early.store(true, Ordering::Relaxed);
        }
    }

    fn describe(&self, input: &Items, row_idx: usize) -> Described {
        input.items.get(row_idx).map_or_else(|| Described::new("reading"), |item| describe(&self.me, "reading", item))
    }
}
