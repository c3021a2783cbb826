//! The rows of an item, one after the other: only those that are wanted.

use std::path::Path;
use std::vec;

use engine::data::{Reject, code};
use engine::node::{Entries, Entry, Item, Stamp};
use indexmap::IndexMap;

use super::form::Form;
use super::place;
use super::wanted::Row;
use crate::source::picking::Container;

/// What an entry's content is made of.
pub(super) enum Given {
    /// A file.
    File(Item),
    /// A row of a file, as what opened it gave it.
    Row(Form, Entry),
}

/// Files that are rows.
pub(super) struct Files {
    rows: vec::IntoIter<Row>,
    base: std::path::PathBuf,
    stamp: Stamp,
}

impl Files {
    pub(super) fn new(mut rows: Vec<Row>, skip: u32, base: &Path, stamp: Stamp) -> Self {
        rows.drain(..rows.len().min(skip as usize));
        Files { rows: rows.into_iter(), base: base.to_owned(), stamp }
    }
}

impl Entries for Files {
    fn next_entry(&mut self) -> Option<Entry> {
        let Row { name, id, wrong } = self.rows.next()?;
        let content = match wrong {
            Some(why) => Err(Reject::new(code::CORRUPT, why)),
            None => place::item(&name, &self.base).map(|item| Box::new(Given::File(item)) as _),
        };
        Some(Entry { uri: name, id, bytes: 0, content })
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }
}

/// A file that holds rows, and is open.
pub(super) struct Opened {
    pub(super) form: Form,
    pub(super) rows: Box<dyn Container>,
}

/// All rows.
pub(super) struct All(pub(super) Opened);

impl Entries for All {
    fn next_entry(&mut self) -> Option<Entry> {
        let entry = self.0.rows.next_entry()?;
        let id = entry.id.clone();
        Some(given(self.0.form, entry, id))
    }

    fn stamp(&self) -> Stamp {
        self.0.rows.stamp()
    }
}

/// Some rows, each once. Those that do not come are rejects, behind the others.
pub(super) struct Picked {
    uri: String,
    /// None when it cannot be read any further, or need not.
    opened: Option<Opened>,
    stamp: Stamp,
    /// By name; the value is the id, where that is not the uri, and whether the row has come.
    wanted: IndexMap<String, (Option<String>, bool)>,
    n_left: usize,
    /// How many of `wanted` have been looked at for rows that did not come.
    n_looked_at: usize,
    /// Why the others do not come, if that is known.
    broken: Option<Reject>,
}

impl Picked {
    /// The rows `wanted` of what is open, or could not be opened, from number `skip` of them on.
    pub(super) fn new(uri: &str, opened: Result<Opened, Reject>, wanted: Vec<Row>, skip: u32) -> Self {
        let wanted: IndexMap<_, _> = wanted.into_iter().map(|row| (row.name, (row.id, false))).collect();
        let (opened, broken) = match opened {
            Ok(opened) => (Some(opened), None),
            Err(reject) => (None, Some(reject)),
        };
        let stamp = opened.as_ref().map_or(Stamp::NONE, |opened| opened.rows.stamp());
        let n_left = wanted.len();
        let mut picked = Picked { uri: uri.to_owned(), opened, stamp, wanted, n_left, n_looked_at: 0, broken };
        for _ in 0..skip {
            picked.next_entry();
        }
        picked
    }

    fn next_that_is_there(&mut self) -> Option<Entry> {
        while self.n_left > 0 {
            let opened = self.opened.as_mut()?;
            let Some(entry) = opened.rows.next_entry() else {
                self.broken = opened.rows.broken().cloned();
                break;
            };
            let name = entry.uri.strip_prefix(&*self.uri).and_then(|behind| behind.strip_prefix('#'));
            let Some((id, has_come)) = name.and_then(|name| self.wanted.get_mut(name)).filter(|(_, come)| !come) else {
                continue;
            };
            *has_come = true;
            self.n_left -= 1;
            let id = id.take();
            return Some(given(opened.form, entry, id));
        }
        self.opened = None;
        None
    }

    fn next_that_is_not(&mut self) -> Option<Entry> {
        while let Some((name, (id, has_come))) = self.wanted.get_index_mut(self.n_looked_at) {
            self.n_looked_at += 1;
            if *has_come {
                continue;
            }
            let uri = format!("{}#{name}", self.uri);
            let reject = self.broken.clone().unwrap_or_else(|| {
                Reject::new(code::NOT_FOUND, format!("`{uri}` is not there any more: `{}` has no such row", self.uri))
            });
            return Some(Entry { uri, id: id.take(), bytes: 0, content: Err(reject) });
        }
        None
    }
}

impl Entries for Picked {
    fn next_entry(&mut self) -> Option<Entry> {
        self.next_that_is_there().or_else(|| self.next_that_is_not())
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }
}

fn given(form: Form, entry: Entry, id: Option<String>) -> Entry {
    let (uri, bytes) = (entry.uri.clone(), entry.bytes);
    match entry.content {
        Err(reject) => Entry { uri, id, bytes, content: Err(reject) },
        Ok(_) => Entry { uri, id, bytes, content: Ok(Box::new(Given::Row(form, entry))) },
    }
}
