//! The row groups of listed files, each an item of its own.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use engine::node::{Cancel, Fault, Item, List};

use super::file::ParquetFile;
use crate::source::listing::{Listed, Locators};

/// Lists row groups. A file whose footer cannot be read is one item, so that it becomes a reject.
pub(super) struct Groups {
    files: Listed,
    locators: Locators,
    cancel: Cancel,
    ready: VecDeque<Item>,
}

/// Where a row group is: its number in its file, and how many rows the file has before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) number: usize,
    pub(super) n_before: u64,
}

/// Parts the locator of a file from the row group: it is in no locator.
const MARK: &[u8] = b"\0\0";

impl Groups {
    pub(super) fn new(files: Listed, locators: Locators, cancel: Cancel) -> Self {
        Groups { files, locators, cancel, ready: VecDeque::new() }
    }

    fn add(&mut self, file: Item) {
        let metadata = self
            .locators
            .location(&file)
            .and_then(|location| ParquetFile::open(&self.locators.stores, location).and_then(|file| file.metadata()));
        let Ok(metadata) = metadata else {
            // Where the run is to end, it may be that alone: it is listed again by the next one.
            if !self.cancel.is_draining() {
                self.ready.push_back(file);
            }
            return;
        };
        let mut n_before = 0;
        for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
            let uri = format!("{}#group-{number}", file.uri);
            let locator = with_group(&file.locator, Group { number, n_before });
            self.ready.push_back(Item { uri, id: None, locator, size_hint: 0 });
            n_before += group.num_rows().unsigned_abs();
        }
    }
}

impl List for Groups {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        while self.ready.is_empty() {
            // One footer after the other: rows of the first are in work before the second is read.
            let mut files = Vec::new();
            self.files.next_items(1, &mut files)?;
            if files.is_empty() {
                return Ok(());
            }
            files.into_iter().for_each(|file| self.add(file));
        }
        items.extend(self.ready.drain(..max.min(self.ready.len())));
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.files.seek(0)?;
        self.ready.clear();
        for _ in 0..index {
            let mut items = Vec::new();
            self.next_items(1, &mut items)?;
            if items.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

fn with_group(locator: &OsStr, group: Group) -> OsString {
    let group = format!("{}+{}", group.number, group.n_before);
    OsString::from_vec([locator.as_bytes(), MARK, group.as_bytes()].concat())
}

/// The file that a row group is in, as an item, and which it is; no group for a file that could not be read.
pub(super) fn file_of(item: &Item) -> (Item, Option<Group>) {
    let bytes = item.locator.as_bytes();
    let Some(mark) = bytes.windows(2).rposition(|part| part == MARK) else { return (item.clone(), None) };
    let group = std::str::from_utf8(&bytes[mark + 2..]).ok().and_then(|text| {
        let (number, n_before) = text.split_once('+')?;
        Some(Group { number: number.parse().ok()?, n_before: n_before.parse().ok()? })
    });
    let uri = item.uri.rsplit_once("#group-").map_or(&*item.uri, |(uri, _)| uri).to_owned();
    let locator = OsString::from_vec(bytes[..mark].to_vec());
    (Item { uri, id: None, locator, size_hint: 0 }, group)
}
