//! Which slice a shard has read, in its own state.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::durable::disk;
use crate::node::Fault;

/// A slice of a source's listing: the items from `start` to before `end`, as they were numbered when it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// The source's node.
    pub source: String,
    /// The number of its first item.
    pub start: u64,
    /// The number of the first item of the next slice, or of all items.
    pub end: u64,
    /// Of all items.
    pub total: u64,
    /// The checksum of the boundaries that it is one of.
    pub set: u32,
}

impl Slice {
    /// How many items it had.
    pub fn n_items(&self) -> u64 {
        self.end - self.start
    }

    /// The slice noted in the file `path`, if there is one.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub fn read(path: &Path) -> Result<Option<Slice>, Fault> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Fault::io("read", path, &error)),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            Fault::permanent(format!("`{}` cannot be understood: {error}", path.display()))
                .help("run the shard with `--fresh`")
        })
    }

    /// Notes it in the file `path`, unless it is there.
    ///
    /// # Errors
    /// If another slice is noted there, or what keeps it from being written.
    pub(super) fn note(&self, path: &Path, boundaries: &Path) -> Result<(), Fault> {
        match Slice::read(path)? {
            Some(noted) if noted == *self => return Ok(()),
            Some(_) => {
                let message = format!("`{}` was divided into other shards since this one was begun", self.source);
                return Err(Fault::permanent(message)
                    .detail(format!("`{}` says where the shards begin", boundaries.display()))
                    .help("begin this shard anew with `--fresh`"));
            }
            None => {}
        }
        let text = serde_json::to_string(self).expect("numbers and text are JSON") + "\n";
        disk::replace(path, text.as_bytes())
    }
}
