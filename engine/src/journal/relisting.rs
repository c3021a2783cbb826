//! A listing that goes on from a record of it.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};

use super::listing::{Listing, Recorded};
use crate::node::{Fault, Item, List};

/// Lists what was recorded, from a place on, and after that what a source lists and is not in the record: in the order of
/// the source, behind the rest. What is new is recorded.
pub struct Relisting {
    source: Box<dyn List>,
    record: Arc<Mutex<Listing>>,
    /// What was recorded and not listed yet.
    recorded: Option<Recorded>,
    /// What was recorded, beside what the source lists, as long as both are the same.
    beside: Option<Recorded>,
    /// What was recorded and the source has not listed yet, from where both differ on.
    missing: HashSet<u64>,
    hasher: RandomState,
}

impl Relisting {
    /// Goes on from item `start` of `record`.
    ///
    /// # Errors
    /// A record that cannot be read, or that is shorter than that.
    pub fn new(source: Box<dyn List>, record: Arc<Mutex<Listing>>, start: u64) -> Result<Self, Fault> {
        let (mut recorded, beside) = {
            let record = record.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            (record.items()?, record.items()?)
        };
        for _ in 0..start {
            if recorded.next().transpose()?.is_none() {
                return Err(Fault::permanent("the record of what was listed is shorter than what was done")
                    .help("begin anew with `--fresh`"));
            }
        }
        let (recorded, beside) = (Some(recorded), Some(beside));
        Ok(Relisting { source, record, recorded, beside, missing: HashSet::new(), hasher: RandomState::new() })
    }

    /// Whether the source's next item is new.
    fn is_new(&mut self, item: &Item) -> Result<bool, Fault> {
        if let Some(beside) = &mut self.beside {
            match beside.next().transpose()? {
                Some(recorded) if recorded.uri == item.uri => return Ok(false),
                Some(recorded) => {
                    self.missing.insert(self.hasher.hash_one(&recorded.uri));
                    for recorded in beside {
                        self.missing.insert(self.hasher.hash_one(&recorded?.uri));
                    }
                }
                None => {}
            }
            self.beside = None;
        }
        Ok(!self.missing.remove(&self.hasher.hash_one(&item.uri)))
    }
}

impl List for Relisting {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let start = items.len();
        if let Some(recorded) = &mut self.recorded {
            for item in recorded.take(max) {
                items.push(item?);
            }
            if items.len() > start {
                return Ok(());
            }
            self.recorded = None;
        }
        let mut listed = Vec::new();
        while items.len() == start {
            self.source.next_items(max, &mut listed)?;
            if listed.is_empty() {
                return Ok(());
            }
            for item in listed.drain(..) {
                if self.is_new(&item)? {
                    items.push(item);
                }
            }
        }
        self.record.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(&items[start..])
    }

    fn seek(&mut self, _index: u64) -> Result<(), Fault> {
        Err(Fault::bug("a listing that goes on from a record starts where it was told to"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Names(Vec<&'static str>, usize);

    impl List for Names {
        fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
            let end = self.0.len().min(self.1 + max);
            items.extend(self.0[self.1..end].iter().map(|name| item(name)));
            self.1 = end;
            Ok(())
        }

        fn seek(&mut self, index: u64) -> Result<(), Fault> {
            self.1 = index as usize;
            Ok(())
        }
    }

    fn item(name: &str) -> Item {
        Item { uri: name.into(), id: None, locator: name.into(), size_hint: 0 }
    }

    fn list(folder: &std::path::Path, names: &[&'static str], start: u64) -> Vec<String> {
        let record = Arc::new(Mutex::new(Listing::open(&folder.join("l.gz")).unwrap()));
        let mut list = Relisting::new(Box::new(Names(names.into(), 0)), record.clone(), start).unwrap();
        let mut items = Vec::new();
        loop {
            let before = items.len();
            list.next_items(2, &mut items).unwrap();
            if items.len() == before {
                break;
            }
        }
        record.lock().unwrap().sync(u64::MAX).unwrap();
        items.into_iter().map(|item| item.uri).collect()
    }

    #[test]
    fn what_was_recorded_comes_first_and_what_is_new_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let check = |names: &[&'static str], start, expected: &[&str]| {
            assert_eq!(list(folder.path(), names, start), expected);
        };
        check(&["b", "d", "f"], 0, &["b", "d", "f"]);
        check(&["b", "d", "f"], 1, &["d", "f"]);
        check(&["b", "d", "f"], 3, &[]);
        // One before, one between, one behind; one is gone, and listed all the same: it was before.
        check(&["a", "b", "c", "f", "g"], 1, &["d", "f", "a", "c", "g"]);
        check(&["a", "b", "c", "d", "f", "g"], 3, &["a", "c", "g"]);
        check(&["b"], 6, &[]);
    }
}
