//! What the items of a source were when they were read: four bytes each, in the order of the listing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::durable::disk;
use crate::node::{Fault, Stamp};

const BYTES: usize = size_of::<u32>();

/// A record of stamps, open for those to come.
#[derive(Debug)]
pub struct Stamps {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

impl Stamps {
    /// Opens a record, or makes one, and cuts it back to the first `n_items`.
    ///
    /// # Errors
    /// What keeps the file from being opened.
    pub fn open(path: &Path, n_items: u64) -> Result<Stamps, Fault> {
        let failed = |error: io::Error| Fault::io("open", path, &error);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        // Longer where it is too short: those stamps are of items about which nothing is known.
        disk::cut(&file, n_items * BYTES as u64).map_err(failed)?;
        Ok(Stamps { file, path: path.to_owned(), buffer: Vec::new() })
    }

    /// Adds the stamps of the items that come next.
    pub fn push(&mut self, stamps: &[Stamp]) {
        self.buffer.extend(stamps.iter().flat_map(|stamp| stamp.0.to_le_bytes()));
    }

    /// Makes durable what was added.
    ///
    /// # Errors
    /// A full disk and the like; a failed fsync is one.
    pub fn sync(&mut self) -> Result<(), Fault> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        disk::write_all(&self.file, &self.buffer).map_err(|error| Fault::io("write", &self.path, &error))?;
        self.buffer.clear();
        disk::sync(&self.file).map_err(|error| Fault::io("sync", &self.path, &error))
    }

    /// All stamps in the record `path`.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub fn read(path: &Path) -> Result<Vec<Stamp>, Fault> {
        match fs::read(path) {
            Ok(bytes) => {
                Ok(bytes.as_chunks::<BYTES>().0.iter().map(|&bytes| Stamp(u32::from_le_bytes(bytes))).collect())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Fault::io("read", path, &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_back_in_order_from_where_they_were_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stamps");
        assert_eq!(Stamps::read(&path).unwrap(), []);
        let mut stamps = Stamps::open(&path, 0).unwrap();
        stamps.push(&[Stamp(1), Stamp(2)]);
        stamps.sync().unwrap();
        stamps.push(&[Stamp(3)]);
        stamps.sync().unwrap();
        stamps.push(&[Stamp(4)]);
        drop(stamps);
        assert_eq!(Stamps::read(&path).unwrap(), [1, 2, 3].map(Stamp));
        let mut stamps = Stamps::open(&path, 2).unwrap();
        stamps.push(&[Stamp(5)]);
        stamps.sync().unwrap();
        assert_eq!(Stamps::read(&path).unwrap(), [1, 2, 5].map(Stamp));
    }
}
