//! A Parquet file: its footer, and its bytes on demand.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use engine::data::{Reject, code};
use engine::node::Stamp;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::store::{Location, Meta, Stores};

/// A larger footer is none: a million row groups of ten columns have a tenth of this.
const MAX_FOOTER_BYTES: u64 = 256 << 20;
/// Of a store so much is asked for at once.
const BLOCK_BYTES: u64 = 4 << 20;
/// Blocks that are kept: each column is read at a place of its own.
const MAX_BLOCKS: usize = 8;

/// A Parquet file that is open. Clones share what they hold.
#[derive(Clone)]
pub(super) struct ParquetFile(Arc<Shared>);

struct Shared {
    stores: Stores,
    location: Location,
    local: Option<File>,
    size: u64,
    /// What it was when it was opened: of an object no other version is read.
    meta: Meta,
    /// Why it could not be read: the reader of the format passes on no more than a text.
    failed: Mutex<Option<Reject>>,
    /// Of an object, what was read last, each with where it starts.
    blocks: Mutex<VecDeque<(u64, Bytes)>>,
}

impl ParquetFile {
    /// Opens a file.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub(super) fn open(stores: &Stores, location: Location) -> Result<Self, Reject> {
        let meta = stores.stat(&location)?;
        let local = location.local_path().map(File::open).transpose();
        let local = local.map_err(|error| {
            Reject::new(code::IO, format!("cannot read `{location}`: {}", engine::node::reason(&error)))
        })?;
        let (stores, failed, blocks) = (stores.clone(), Mutex::default(), Mutex::default());
        let shared = Shared { stores, location, local, size: meta.size, meta, failed, blocks };
        Ok(ParquetFile(Arc::new(shared)))
    }

    /// What the file was when it was opened.
    pub(super) fn stamp(&self) -> Stamp {
        self.0.meta.stamp()
    }

    /// Why the file could not be read, if it was that and not what is in it.
    pub(super) fn failed(&self) -> Option<Reject> {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What its footer says, where that can be true.
    ///
    /// # Errors
    /// If it is no Parquet file, or one that contradicts itself.
    pub(super) fn metadata(&self) -> Result<ArrowReaderMetadata, Reject> {
        let Shared { location, size, .. } = &*self.0;
        let reject = |code: &'static str, what: &str| Reject::new(code, format!("`{location}` {what}"));
        if *size == 0 {
            return Err(reject(code::EMPTY, "has no bytes"));
        }
        let begins = self.0.bytes(0, size.min(&4).to_owned() as usize)?;
        if !matches!(&begins[..], b"PAR1" | b"PARE") {
            return Err(reject(code::UNSUPPORTED, "is no Parquet file"));
        }
        if *size < 12 {
            return Err(reject(code::TRUNCATED, "ends early: its footer is missing"));
        }
        let tail = self.0.bytes(size - 8, 8)?;
        match &tail[4..] {
            b"PAR1" => {}
            b"PARE" => return Err(reject(code::UNSUPPORTED, "is encrypted")),
            _ => return Err(reject(code::TRUNCATED, "ends early: its footer is missing")),
        }
        let n_footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if n_footer > size - 12 {
            return Err(reject(code::CORRUPT, &format!("says that its footer has {n_footer} bytes, more than it has")));
        }
        if n_footer > MAX_FOOTER_BYTES {
            return Err(reject(code::TOO_LARGE, &format!("has a footer of {n_footer} bytes")));
        }
        let loaded = catch_unwind(AssertUnwindSafe(|| ArrowReaderMetadata::load(self, ArrowReaderOptions::new())));
        let metadata = match loaded {
            Ok(Ok(metadata)) => metadata,
            Ok(Err(error)) => {
                let corrupt = || reject(code::CORRUPT, &format!("cannot be read: {error}"));
                return Err(self.failed().unwrap_or_else(corrupt));
            }
            Err(_) => return Err(reject(code::CORRUPT, "cannot be read: its footer makes no sense")),
        };
        let mut n_rows = Some(0_i64);
        for group in metadata.metadata().row_groups() {
            n_rows = n_rows.filter(|_| group.num_rows() >= 0).and_then(|sum| sum.checked_add(group.num_rows()));
            let is_inside = |start: i64, n_bytes: i64| {
                start >= 0 && n_bytes >= 0 && start.checked_add(n_bytes).is_some_and(|end| end as u64 <= *size)
            };
            let is_right = group.columns().iter().all(|column| {
                let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
                is_inside(start, column.compressed_size()) && is_inside(column.data_page_offset(), 0)
            });
            if !is_right {
                return Err(reject(code::CORRUPT, "says that its columns lie where the file has no bytes"));
            }
            if n_rows.is_none() {
                return Err(reject(code::CORRUPT, "says that it has fewer rows than none, or more than there can be"));
            }
        }
        Ok(metadata)
    }
}

impl Shared {
    fn bytes(&self, start: u64, n_bytes: usize) -> Result<Bytes, Reject> {
        let bytes = self.read(start, n_bytes);
        if let Err(reject) = &bytes
            && reject.code != code::CORRUPT
        {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(reject.clone());
        }
        bytes
    }

    fn read(&self, start: u64, n_bytes: usize) -> Result<Bytes, Reject> {
        let end = start.checked_add(n_bytes as u64).filter(|end| *end <= self.size);
        let Some(end) = end else {
            let message = format!("`{}` has no {n_bytes} bytes at {start}", self.location);
            return Err(Reject::new(code::CORRUPT, message));
        };
        if let Some(file) = &self.local {
            let mut bytes = vec![0; n_bytes];
            file.read_exact_at(&mut bytes, start).map_err(|error| {
                let message = format!("cannot read `{}`: {}", self.location, engine::node::reason(&error));
                Reject::new(code::IO, message)
            })?;
            return Ok(bytes.into());
        }
        let cut = |(first, block): &(u64, Bytes)| {
            let from = usize::try_from(start.checked_sub(*first)?).ok()?;
            let upto = from.checked_add(n_bytes)?;
            (upto <= block.len()).then(|| block.slice(from..upto))
        };
        let blocks = || self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = blocks().iter().find_map(cut) {
            return Ok(bytes);
        }
        let wanted = start..end.max(start.saturating_add(BLOCK_BYTES).min(self.size));
        let block = self.stores.read_range_of(&self.location, wanted, &self.meta)?;
        let bytes = block.slice(..n_bytes);
        let mut blocks = blocks();
        if blocks.len() == MAX_BLOCKS {
            blocks.pop_front();
        }
        blocks.push_back((start, block));
        Ok(bytes)
    }
}

impl Length for ParquetFile {
    fn len(&self) -> u64 {
        self.0.size
    }
}

impl ChunkReader for ParquetFile {
    type T = From;

    fn get_read(&self, start: u64) -> Result<From, ParquetError> {
        Ok(From { file: self.clone(), at: start, buffer: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.bytes(start, length).map_err(|reject| ParquetError::General(reject.message))
    }
}

/// Reads from a place on: headers of pages, which are small.
pub(super) struct From {
    file: ParquetFile,
    at: u64,
    buffer: Bytes,
}

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.buffer.is_empty() {
            let n_bytes = self.file.0.size.saturating_sub(self.at).min(16 << 10) as usize;
            let bytes = self.file.0.bytes(self.at, n_bytes);
            self.buffer = bytes.map_err(|reject| io::Error::other(reject.message))?;
            self.at += n_bytes as u64;
        }
        let n_bytes = self.buffer.len().min(into.len());
        into[..n_bytes].copy_from_slice(&self.buffer.split_to(n_bytes));
        Ok(n_bytes)
    }
}
