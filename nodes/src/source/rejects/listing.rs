//! Reject files as items: rows of one file that follow one another are one item.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::sync::Arc;

use engine::node::{Cancel, Counting, Fault, Item, List};

use super::lines::{Numbered, RejectLine, RejectLines};
use super::place::{Places, Target};
use super::wanted::{Row, Wanted};
use crate::source::listing::{Listed, Locators};

/// Files that are one item: few, so that shards and threads share them evenly.
const MAX_FILES: usize = 32;
/// Names of rows that one item has: a file with more is opened again for the next ones.
const MAX_ITEM_BYTES: usize = 256 << 10;
/// Items that are given at once have so many bytes.
const MAX_LISTED_BYTES: usize = 1 << 20;

/// Which rejects are wanted: all, where nothing is said.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    pub(super) codes: Option<Arc<[String]>>,
    pub(super) nodes: Option<Arc<[String]>>,
}

impl Filter {
    pub(super) fn takes(&self, line: &RejectLine) -> bool {
        let has = |words: &Option<Arc<[String]>>, word: &str| {
            words.as_ref().is_none_or(|words| words.iter().any(|other| other == word))
        };
        has(&self.codes, &line.code) && has(&self.nodes, &line.node)
    }
}

/// Lists what is to be run again.
pub(super) struct Rejected {
    files: Listed,
    locators: Locators,
    filter: Filter,
    places: Places,
    cancel: Cancel,
    /// The reject file that is being read.
    reading: Option<(Item, RejectLines)>,
    /// Hashes of the uris that were there, of 16 bytes each: no two are equal by chance.
    seen: HashSet<u128>,
    /// The item in the making, with the file whose rows are meant, and its bytes.
    making: Option<(String, Wanted)>,
    n_bytes: usize,
    is_ended: bool,
    /// Items that are ready, in order: two at most.
    ready: Vec<Item>,
}

impl Rejected {
    pub(super) fn new(files: Listed, locators: Locators, filter: Filter, places: Places, cancel: Cancel) -> Self {
        let (seen, ready) = (HashSet::new(), Vec::new());
        Rejected {
            files,
            locators,
            filter,
            places,
            cancel,
            reading: None,
            seen,
            making: None,
            n_bytes: 0,
            is_ended: false,
            ready,
        }
    }

    /// How many rows are wanted; `None` where whole files are, or where it is not to be known any more.
    pub(super) fn count(mut self, counting: &Counting) -> Option<u64> {
        let mut n_rows = 0;
        while let Some(item) = self.next_item().ok()? {
            n_rows += match Wanted::of(&item).ok()?.1 {
                Wanted::Files(rows) | Wanted::Rows(rows) => rows.len() as u64,
                Wanted::All | Wanted::Group(_) => return None,
            };
            counting.came_to(n_rows);
            if counting.cancel.is_draining() {
                return None;
            }
        }
        Some(n_rows)
    }

    fn next_item(&mut self) -> Result<Option<Item>, Fault> {
        loop {
            if !self.ready.is_empty() {
                return Ok(Some(self.ready.remove(0)));
            }
            if self.is_ended {
                return Ok(None);
            }
            match self.next_line()? {
                Some((file, Numbered { number, line })) => self.add(&file, number, line),
                // Asked to stop, files end early: what is in the making would be another item than the next time.
                None if self.cancel.is_draining() => return Ok(None),
                None => {
                    self.is_ended = true;
                    self.finish();
                }
            }
        }
    }

    /// The next line of any file, with the file's uri.
    fn next_line(&mut self) -> Result<Option<(String, Numbered)>, Fault> {
        loop {
            let Some((file, lines)) = &mut self.reading else {
                let mut files = Vec::new();
                self.files.next_items(1, &mut files)?;
                let Some(file) = files.pop() else { return Ok(None) };
                let location = self.locators.location(&file).map_err(|reject| Fault::permanent(reject.message))?;
                let lines = RejectLines::open(&self.locators.stores, &location)
                    .map_err(|error| Fault::from(error).help("it is a reject file that `path` names"))?;
                self.reading = Some((file, lines));
                continue;
            };
            let next = lines.next_line().map_err(|error| {
                let reason = engine::node::reason(&error);
                Fault::transient(format!("cannot read `{}` behind line {}: {reason}", file.uri, lines.number()))
            })?;
            match next {
                Some(line) => return Ok(Some((file.uri.clone(), line))),
                None => self.reading = None,
            }
        }
    }

    fn add(&mut self, file: &str, number: u64, line: Result<RejectLine, String>) {
        let line = match line {
            Ok(line) if !self.filter.takes(&line) => return,
            Ok(line) => line,
            Err(why) => {
                let wrong = Some(format!("`{file}`, line {number}: it is no reject: {why}"));
                return self.add_file(Row { name: format!("{file}#{number}"), id: None, wrong });
            }
        };
        if !self.seen.insert(hash(&line.uri)) {
            return;
        }
        let RejectLine { id, uri, .. } = line;
        let id = id.filter(|id| *id != uri);
        match self.places.target(&uri) {
            Target::File => self.add_file(Row { name: uri, id, wrong: None }),
            Target::Whole => self.alone(&uri, &Wanted::All),
            Target::Group { container, number } => self.alone(container, &Wanted::Group(number)),
            Target::Row { container, name } => {
                let row = Row { name: name.to_owned(), id, wrong: None };
                if !matches!(&self.making, Some((uri, Wanted::Rows(_))) if uri == container) || self.is_full(&row) {
                    self.finish();
                    self.making = Some((container.to_owned(), Wanted::Rows(Vec::new())));
                }
                self.push(row);
            }
        }
    }

    fn add_file(&mut self, row: Row) {
        let goes_on = matches!(&self.making, Some((_, Wanted::Files(rows))) if rows.len() < MAX_FILES);
        if !goes_on || self.is_full(&row) {
            self.finish();
            self.making = Some((row.name.clone(), Wanted::Files(Vec::new())));
        }
        self.push(row);
    }

    fn alone(&mut self, file: &str, wanted: &Wanted) {
        self.finish();
        self.ready.push(wanted.item(file));
    }

    fn push(&mut self, row: Row) {
        self.n_bytes += row.n_bytes();
        if let Some((_, Wanted::Files(rows) | Wanted::Rows(rows))) = &mut self.making {
            rows.push(row);
        }
    }

    fn is_full(&self, row: &Row) -> bool {
        self.n_bytes + row.n_bytes() > MAX_ITEM_BYTES
    }

    fn finish(&mut self) {
        self.n_bytes = 0;
        if let Some((file, wanted)) = mem::take(&mut self.making) {
            self.ready.push(wanted.item(&file));
        }
    }
}

impl List for Rejected {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let (mut n_items, mut n_bytes) = (0, 0);
        while n_items < max && n_bytes < MAX_LISTED_BYTES {
            let Some(item) = self.next_item()? else { break };
            n_items += 1;
            n_bytes += item.locator.len();
            items.push(item);
        }
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.files.seek(0)?;
        (self.reading, self.making, self.n_bytes, self.is_ended) = (None, None, 0, false);
        self.seen.clear();
        self.ready.clear();
        for _ in 0..index {
            if self.next_item()?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

fn hash(uri: &str) -> u128 {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, uri).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
