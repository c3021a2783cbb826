//! A slice of a listing that may change: from the item of one name to before the item of another.

use std::path::{Path, PathBuf};

use super::boundaries::{Boundaries, CHUNK};
use crate::node::{Cancel, Fault, Item, List, Shard};

/// The items from one name to before another, whatever is listed between them. A name stands for one item of a listing.
pub(super) struct ByName {
    list: Box<dyn List>,
    shard: Shard,
    /// For messages.
    boundaries: PathBuf,
    cancel: Cancel,
    /// The item that it begins with; none if that is whatever is listed first.
    first: Option<String>,
    /// Where that was when it was last seen.
    first_at: u64,
    /// The item that ends it; none for whatever is listed last.
    next: Option<String>,
    place: Place,
    /// Items that were listed already and are given out next.
    ahead: Vec<Item>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The listing may stand anywhere.
    Anywhere,
    /// It stands in the slice.
    Inside,
    /// The slice is over.
    Behind,
    /// There is nothing in it, nor will there be.
    Empty,
}

impl ByName {
    pub(super) fn new(
        list: Box<dyn List>,
        boundaries: &Boundaries,
        shard: Shard,
        folder: &Path,
        cancel: Cancel,
    ) -> Self {
        let slice = boundaries.slice("", shard);
        let is_last = shard.index + 1 == shard.of;
        // What is listed behind the last item later on belongs to the last slice, even if it was empty.
        let place = if slice.n_items() == 0 && !is_last { Place::Empty } else { Place::Anywhere };
        let first = if slice.start == 0 { None } else { boundaries.first(shard.index) };
        let next = if is_last { None } else { boundaries.first(shard.index + 1) };
        ByName {
            list,
            shard,
            boundaries: folder.to_owned(),
            cancel,
            first: first.map(str::to_owned),
            first_at: slice.start,
            next: next.map(str::to_owned),
            place,
            ahead: Vec::new(),
        }
    }

    /// Goes to the first item: it is looked for where it was, and if it is not there from the beginning on.
    fn begin(&mut self) -> Result<(), Fault> {
        self.ahead.clear();
        let Some(first) = &self.first else {
            self.place = Place::Inside;
            return self.list.seek(0);
        };
        self.list.seek(self.first_at)?;
        self.list.next_items(1, &mut self.ahead)?;
        if self.ahead.first().is_some_and(|item| item.uri == *first) {
            self.place = Place::Inside;
            return Ok(());
        }
        self.list.seek(0)?;
        let mut n_before = 0;
        loop {
            self.ahead.clear();
            self.list.next_items(CHUNK, &mut self.ahead)?;
            if self.ahead.is_empty() {
                return self.end_of_listing(first.clone(), self.shard.index);
            }
            if let Some(found) = self.ahead.iter().position(|item| item.uri == *first) {
                self.first_at = n_before + found as u64;
                self.ahead.drain(..found);
                self.place = Place::Inside;
                return Ok(());
            }
            n_before += self.ahead.len() as u64;
        }
    }

    /// The listing is at its end, and `wanted`, with which shard `index` begins, was not in it. One that is asked to stop
    /// ends too.
    fn end_of_listing(&mut self, wanted: String, index: u32) -> Result<(), Fault> {
        self.place = Place::Behind;
        if self.cancel.is_draining() {
            return Ok(());
        }
        let message = format!("`{wanted}`, with which shard {index} of {} begins, is gone", self.shard.of);
        Err(Fault::permanent(message)
            .help(format!("put it back, or remove `{}` and run every shard with `--fresh`", self.boundaries.display())))
    }
}

impl List for ByName {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        if self.place == Place::Anywhere {
            self.begin()?;
        }
        if self.place != Place::Inside {
            return Ok(());
        }
        let before = items.len();
        if self.ahead.is_empty() {
            self.list.next_items(max, items)?;
        } else {
            items.extend(self.ahead.drain(..max.min(self.ahead.len())));
        }
        let Some(next) = &self.next else { return Ok(()) };
        if items.len() == before {
            return self.end_of_listing(next.clone(), self.shard.index + 1);
        }
        if let Some(found) = items[before..].iter().position(|item| item.uri == *next) {
            items.truncate(before + found);
            self.place = Place::Behind;
        }
        Ok(())
    }

    /// Counts from the first item on: where the slice ends is known by a name alone.
    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        if self.place == Place::Empty {
            return Ok(());
        }
        self.place = Place::Anywhere;
        let (mut left, mut passed) = (index, Vec::new());
        while left > 0 {
            passed.clear();
            self.next_items(left.min(CHUNK as u64) as usize, &mut passed)?;
            if passed.is_empty() {
                break;
            }
            left -= passed.len() as u64;
        }
        Ok(())
    }
}
