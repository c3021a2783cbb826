//! Sources: a thread that lists, and fetches as parallel work.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::board::{At, Described, Holding};
use super::exit::{Exit, Step};
use super::pace::GRAIN_ROWS;
use super::parallel::{Chunk, Grain, Task};
use super::project::project;
use super::queue::Sender;
use super::row_task::map_rows;
use super::shared::Me;
use crate::data::{Alloc, Batch, ColumnType, RejectRow, RowPos};
use crate::graph::render::figures::grouped;
use crate::node::{Counting, Fault, Fetch, Item, List};

/// Items that a source has listed, one after the other.
pub(super) struct Listed {
    first: RowPos,
    items: Vec<Item>,
}

impl Chunk for Listed {
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
    pub(super) limit: u64,
    pub(super) output: Sender<Listed>,
}

impl Lister {
    /// Runs until the listing ends.
    pub(super) fn run(mut self) -> Exit {
        match self.drive() {
            Ok(()) if self.me.shared.cancel.is_aborted() => Exit::Cancelled,
            Ok(()) => self.output.end().map_or(Exit::DownstreamClosed, |()| Exit::Finished),
            Err(exit) => exit,
        }
    }

    fn drive(&mut self) -> Step {
        let shared = self.me.shared.clone();
        let number = self.me.node().source.expect("a source has a number");
        let listed = &shared.stats.listed[number as usize];
        let (lane, listing) = (self.me.lane(1), Arc::new(Listing::default()));
        let mut index = 0;
        // A first small chunk, so that work begins at once.
        let mut max = 16;
        while index < self.limit {
            if shared.cancel.is_draining() {
                shared.stats.stopped_early.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let wanted = (self.limit - index).min(max) as usize;
            let mut items = Vec::with_capacity(wanted);
            let hold = lane.hold(listing.clone());
            self.list.next_items(wanted, &mut items)?;
            drop(hold);
            if items.is_empty() {
                break;
            }
            listing.came_to(&self.me, items.last());
            let first = RowPos::new(number, index);
            index += items.len() as u64;
            listed.store(index, Ordering::Relaxed);
            let bytes = items.iter().map(|item| size_of::<Item>() + item.uri.len() + item.locator.len()).sum();
            self.output.send(Listed { first, items }, bytes).map_err(|_| Exit::DownstreamClosed)?;
            max = (max * 4).min(GRAIN_ROWS as u64);
        }
        shared.stats.totals[number as usize].store(index, Ordering::Relaxed);
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
}

impl FetchTask {
    pub(super) fn new(me: Me, fetch: Arc<dyn Fetch>, alloc: Arc<dyn Alloc>) -> Self {
        let types = me.node().spec.new_types();
        FetchTask { me, fetch, types, alloc }
    }
}

impl Task for FetchTask {
    type Input = Listed;

    fn run(&self, input: &Listed, range: Range<usize>, at: &At) -> Result<Grain, Fault> {
        let (start, n_rows) = (range.start, range.len());
        let row = |row_idx: usize| {
            let item = &input.items[start + row_idx];
            (input.upto(start + row_idx), item, item.id.as_deref().unwrap_or(&item.uri))
        };
        let mapped = map_rows(n_rows, "reading this", &self.types, &*self.alloc, at, |row_idx, out| {
            let (pos, item, id) = row(row_idx);
            self.me.shared.killer.listed(pos, item);
            out.text(0, id);
            out.text(1, &item.uri);
            self.fetch.fetch(pos.index, item, out).map(drop)
        });
        let rejects = mapped.rejects.into_iter().map(|(row_idx, reject)| {
            let (pos, item, id) = row(row_idx);
            self.me.reject_row(pos, id.to_owned(), item.uri.clone(), reject)
        });
        let rejects = rejects.collect::<Result<Vec<_>, _>>()?;
        let positions = mapped.passed.into_iter().map(|row_idx| row(row_idx).0).collect();
        let empty = Batch::new(positions, Vec::new());
        Ok(Grain { batch: Some(project(&self.me.node().spec, &[&empty], mapped.columns)), rejects })
    }

    fn describe(&self, input: &Listed, row_idx: usize) -> Described {
        input.items.get(row_idx).map_or_else(|| Described::new("reading"), |item| describe(&self.me, "reading", item))
    }
}
