//! Where the slices of a source begin: made once, then the same for every shard.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use super::Slice;
use crate::durable::disk;
use crate::node::{Cancel, Fault, Item, List, Shard};

/// Items that are listed at once.
pub(super) const CHUNK: usize = 1024;

/// The version of the file's form.
const VERSION: u32 = 1;

/// How often a listing that changes while it is looked at is begun anew.
const TRIES: usize = 5;

/// A source's items, divided into so many slices of as many items as can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Boundaries {
    version: u32,
    /// Items of the source when they were made.
    total: u64,
    /// Slices.
    shards: u32,
    /// The names of the items that the slices begin with, from the second slice on, where items have no fixed numbers;
    /// none for a slice that begins behind the last item.
    firsts: Vec<Option<String>>,
}

impl Boundaries {
    /// Lists all of a source, and goes back to its beginning; `None` if that was cut short.
    pub(super) fn make(list: &mut dyn List, shards: u32, cancel: &Cancel) -> Result<Option<Boundaries>, Fault> {
        if list.is_fixed() {
            let total = count_fixed(list)?;
            list.seek(0)?;
            return Ok(Some(Boundaries { version: VERSION, total, shards, firsts: Vec::new() }));
        }
        for _ in 0..TRIES {
            let mut total = 0;
            each(list, |_| total += 1)?;
            let starts: Vec<_> = (1..shards).map(|shard| start(total, shards, shard)).collect();
            let mut firsts = Vec::with_capacity(starts.len());
            let mut number = 0;
            each(list, |item| {
                // Several slices can begin with one item only if all but the last of them are empty.
                while starts.get(firsts.len()) == Some(&number) {
                    firsts.push(Some(item.uri.clone()));
                }
                number += 1;
            })?;
            if cancel.is_draining() {
                return Ok(None);
            }
            list.seek(0)?;
            if number >= total {
                firsts.resize(starts.len(), None);
                return Ok(Some(Boundaries { version: VERSION, total, shards, firsts }));
            }
        }
        Err(Fault::transient(
            "items go away faster than they can be listed, so that they cannot be divided into shards",
        )
        .help("wait until nothing is removed any more"))
    }

    /// Those in the file `path`, if there is one.
    pub(super) fn read(path: &Path, shards: u32, is_fixed: bool) -> Result<Option<Boundaries>, Fault> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Fault::io("read", path, &error)),
        };
        let wrong = |why: String| {
            let message = format!("`{}`, where the shards begin, cannot be understood: {why}", path.display());
            Fault::permanent(message).help("remove it, and run every shard with `--fresh`")
        };
        let found: Boundaries = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if found.version != VERSION {
            return Err(wrong(format!("it is of version {}, and this is {VERSION}", found.version)));
        }
        if found.shards != shards {
            return Err(wrong(format!("it divides into {} shards", found.shards)));
        }
        let n_firsts = if is_fixed { 0 } else { shards as usize - 1 };
        if found.firsts.len() != n_firsts || (found.total > 0 && found.firsts.contains(&None)) {
            return Err(wrong("it does not name what each shard begins with".to_owned()));
        }
        Ok(Some(found))
    }

    /// Writes them into the file `path`, unless another shard has done so in the meantime; then returns those.
    pub(super) fn publish(self, path: &Path, is_fixed: bool) -> Result<Boundaries, Fault> {
        let failed = |error: io::Error| Fault::io("write", path, &error);
        let folder = disk::folder_of(path);
        fs::create_dir_all(folder).map_err(|error| Fault::io("create the folder", folder, &error))?;
        let (partial, file) = partial(path).map_err(failed)?;
        let written = disk::write_all(&file, self.text().as_bytes())
            .and_then(|()| disk::sync(&file))
            .and_then(|()| name_once(&partial, path))
            .and_then(|()| disk::sync_folder_of(path));
        // Its other name, if it got one; nothing depends on it.
        let _ = fs::remove_file(&partial);
        written.map_err(failed)?;
        Boundaries::read(path, self.shards, is_fixed)?
            .ok_or_else(|| Fault::transient(format!("`{}` was removed while it was written", path.display())))
    }

    /// The slice of a shard.
    pub(super) fn slice(&self, source: &str, shard: Shard) -> Slice {
        let start = |index| start(self.total, self.shards, index);
        Slice {
            source: source.to_owned(),
            start: start(shard.index),
            end: start(shard.index + 1),
            total: self.total,
            set: crc32fast::hash(self.text().as_bytes()),
        }
    }

    /// The name of the item that shard number `index` begins with; `None` if that is the first of the listing, or if there
    /// is none.
    pub(super) fn first(&self, index: u32) -> Option<&str> {
        self.firsts.get((index as usize).checked_sub(1)?)?.as_deref()
    }

    fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts are JSON") + "\n"
    }
}

/// The number of the first item of a slice.
fn start(total: u64, shards: u32, index: u32) -> u64 {
    // It is at most `total`.
    (u128::from(total) * u128::from(index) / u128::from(shards)) as u64
}

/// Lists everything.
fn each(list: &mut dyn List, mut visit: impl FnMut(&Item)) -> Result<(), Fault> {
    list.seek(0)?;
    let mut items = Vec::new();
    loop {
        items.clear();
        list.next_items(CHUNK, &mut items)?;
        if items.is_empty() {
            return Ok(());
        }
        items.iter().for_each(&mut visit);
    }
}

/// How many items there are where they have fixed numbers: found in few steps, by looking whether there is one.
fn count_fixed(list: &mut dyn List) -> Result<u64, Fault> {
    let mut is_there = |index: u64| {
        let mut items = Vec::new();
        list.seek(index)?;
        list.next_items(1, &mut items)?;
        Ok::<_, Fault>(!items.is_empty())
    };
    if !is_there(0)? {
        return Ok(0);
    }
    let (mut low, mut high) = (0, 1);
    while high < u64::MAX && is_there(high)? {
        (low, high) = (high, high.saturating_mul(2));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_there(middle)? { low = middle } else { high = middle }
    }
    Ok(high)
}

/// A new file beside `path`. Other shards may be writing theirs, also from other machines.
fn partial(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 0u32.. {
        let partial = path.with_file_name(format!(".{name}.{number}.partial"));
        match OpenOptions::new().write(true).create_new(true).open(&partial) {
            Ok(file) => return Ok((partial, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Gives a file the name `path`, unless something has it.
fn name_once(partial: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(partial, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        // Some file systems know no links.
        Err(_) => match renameat_with(CWD, partial, CWD, path, RenameFlags::NOREPLACE) {
            Err(rustix::io::Errno::EXIST) => Ok(()),
            renamed => Ok(renamed?),
        },
    }
}
