//! The pages of a row group, looked at before the library takes memory for them.
//!
//! The library believes what a page says of itself: how large it is when unpacked, and how many values it has. Gzip and brotli
//! it unpacks to the end, whatever was said. So each page's header is read here first, as it passes by, without a further
//! read; gzip that could grow beyond the limit, and all brotli, is unpacked once for nothing but its size. The older LZ4 cannot
//! be unpacked here: pages of it that could grow too large are refused.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use engine::data::{Reject, code};
use flate2::read::MultiGzDecoder;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::{Compression, Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::file::ParquetFile;
use super::page_header::PageHeader;

/// A longer header is none: the longest part of one are the smallest and the largest value of a page.
const MAX_HEADER_BYTES: usize = 1 << 20;
/// So much of a header is looked at first.
const HEADER_BYTES: usize = 16 << 10;
/// Deflate does not pack better than 1:1032, LZ4 not better than 1:255; a little is added for what stands around it.
const MOST_BY_DEFLATE: u64 = 1040;
const MOST_BY_LZ4: u64 = 260;
/// Bytes that brotli's unpacking passes on at once.
const BROTLI_BUFFER: usize = 64 << 10;

/// A Parquet file of which the pages of some row groups are read. Clones share what they hold.
#[derive(Clone)]
pub(super) struct Pages(Arc<Shared>);

struct Shared {
    file: ParquetFile,
    uri: String,
    chunks: Vec<Chunk>,
    max_page_bytes: u64,
    /// Values of lists in pages since rows were asked for last.
    list_values: AtomicU64,
    refused: Mutex<Option<Reject>>,
}

/// Where the pages of a column lie.
struct Chunk {
    start: u64,
    end: u64,
    compression: Compression,
    /// Whether a row may have any number of values.
    is_list: bool,
}

impl Pages {
    /// The pages of row groups.
    ///
    /// # Errors
    /// If a column has values of a size that is larger than a page may be.
    pub(super) fn new(
        file: ParquetFile,
        metadata: &ArrowReaderMetadata,
        groups: &[usize],
        uri: &str,
        max_page_bytes: u64,
    ) -> Result<Self, Reject> {
        let columns = groups.iter().flat_map(|group| metadata.metadata().row_group(*group).columns());
        for column in columns.clone() {
            let description = column.column_descr();
            let size = description.type_length();
            if description.physical_type() == Type::FIXED_LEN_BYTE_ARRAY
                && !u64::try_from(size).is_ok_and(|size| size <= max_page_bytes)
            {
                let message = format!("`{uri}` has values of {size} bytes in `{}`", description.path());
                return Err(Reject::new(code::CORRUPT, message));
            }
        }
        let chunks = columns.map(|column| {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            // Both were looked at when the footer was read.
            let (start, n_bytes) = (start.unsigned_abs(), column.compressed_size().unsigned_abs());
            let is_list = column.column_descr().max_rep_level() > 0;
            Chunk { start, end: start.saturating_add(n_bytes), compression: column.compression(), is_list }
        });
        let (chunks, uri) = (chunks.collect(), uri.to_owned());
        let (list_values, refused) = (AtomicU64::new(0), Mutex::default());
        Ok(Pages(Arc::new(Shared { file, uri, chunks, max_page_bytes, list_values, refused })))
    }

    /// Says that the next few rows will be asked for: what their lists may hold is counted anew.
    pub(super) fn next_rows(&self) {
        self.0.list_values.store(0, Ordering::Relaxed);
    }

    /// Why a page was refused, if that is what the library's error comes from.
    pub(super) fn take_refused(&self) -> Option<Reject> {
        self.0.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Shared {
    /// The chunk that a place is in. Where several are, which no writer makes, the first.
    fn chunk(&self, at: u64) -> Result<&Chunk, ParquetError> {
        let chunk = self.chunks.iter().find(|chunk| (chunk.start..chunk.end).contains(&at));
        chunk.ok_or_else(|| self.refuse(code::CORRUPT, format!("has a page at {at}, which is in none of its columns")))
    }

    fn refuse(&self, code: &'static str, what: String) -> ParquetError {
        let message = format!("`{}` {what}", self.uri);
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get_or_insert(Reject::new(code, message.clone()));
        ParquetError::General(message)
    }

    fn too_large(&self, what: String) -> ParquetError {
        self.refuse(
            code::TOO_LARGE,
            format!("has a page of {what}, more than `max_page_bytes` {}", self.max_page_bytes),
        )
    }

    /// Looks at the header at `at`.
    fn check(&self, at: u64) -> Result<(), ParquetError> {
        let chunk = self.chunk(at)?;
        let left = usize::try_from(chunk.end - at).unwrap_or(usize::MAX);
        let read = |n_bytes: usize| self.file.get_bytes(at, left.min(n_bytes)).map(|bytes| PageHeader::parse(&bytes));
        let header = match read(HEADER_BYTES)? {
            None if left > HEADER_BYTES => read(MAX_HEADER_BYTES)?,
            header => header,
        };
        let Some(header) = header else {
            return Err(self.refuse(code::CORRUPT, format!("has no header of a page at {at}")));
        };
        let unpacked = u64::try_from(header.unpacked).unwrap_or(0);
        if unpacked > self.max_page_bytes {
            return Err(self.too_large(format!("{unpacked} bytes")));
        }
        // The library takes memory for these before it reads any: each has a byte at least.
        if header.dictionary_values > header.unpacked.max(0) {
            let what = format!("has a dictionary of {} values in {unpacked} bytes", header.dictionary_values);
            return Err(self.refuse(code::CORRUPT, what));
        }
        if chunk.is_list {
            // Some bits can say that a value is there a million times.
            let values = u64::try_from(header.values).unwrap_or(0);
            let all = self.list_values.fetch_add(values, Ordering::Relaxed).saturating_add(values);
            if all.saturating_mul(4) > self.max_page_bytes {
                return Err(self.too_large(format!("lists with {all} values")));
            }
        }
        Ok(())
    }

    /// Looks at a page before it is unpacked.
    fn check_page(&self, chunk: &Chunk, page: &Bytes) -> Result<(), ParquetError> {
        let n_bytes = page.len() as u64;
        let may_grow = |times: u64| n_bytes.saturating_mul(times) > self.max_page_bytes;
        match chunk.compression {
            Compression::GZIP(_) if may_grow(MOST_BY_DEFLATE) => self.count(MultiGzDecoder::new(&page[..])),
            Compression::BROTLI(_) => self.count(brotli_decompressor::Decompressor::new(&page[..], BROTLI_BUFFER)),
            Compression::LZ4 if may_grow(MOST_BY_LZ4) => Err(self.too_large(format!("{n_bytes} packed bytes"))),
            _ => Ok(()),
        }
    }

    /// Unpacks a page for nothing but its size.
    fn count(&self, unpacked: impl Read) -> Result<(), ParquetError> {
        match io::copy(&mut unpacked.take(self.max_page_bytes + 1), &mut io::sink()) {
            Ok(n_bytes) if n_bytes > self.max_page_bytes => Err(self.refuse(
                code::TOO_LARGE,
                format!("has a page that unpacks to more than `max_page_bytes` {}", self.max_page_bytes),
            )),
            // What is not packed like that is told by the library, in the same words as ever.
            _ => Ok(()),
        }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.0.file.len()
    }
}

impl ChunkReader for Pages {
    type T = From;

    fn get_read(&self, start: u64) -> Result<From, ParquetError> {
        Ok(From { pages: self.clone(), at: start, buffer: Bytes::new(), is_checked: false })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let shared = &*self.0;
        // A page without bytes may stand at the very end.
        let chunk = if length > 0 { Some(shared.chunk(start)?) } else { None };
        let page = shared.file.get_bytes(start, length)?;
        if let Some(chunk) = chunk {
            shared.check_page(chunk, &page)?;
        }
        Ok(page)
    }
}

/// Reads the header of a page. The library asks for one more often than it reads it.
pub(super) struct From {
    pages: Pages,
    at: u64,
    buffer: Bytes,
    is_checked: bool,
}

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let shared = &*self.pages.0;
        if !self.is_checked {
            shared.check(self.at).map_err(io::Error::other)?;
            self.is_checked = true;
        }
        if self.buffer.is_empty() {
            let n_bytes = shared.file.len().saturating_sub(self.at).min(HEADER_BYTES as u64) as usize;
            self.buffer = shared.file.get_bytes(self.at, n_bytes).map_err(io::Error::other)?;
            self.at += n_bytes as u64;
        }
        let n_bytes = self.buffer.len().min(into.len());
        into[..n_bytes].copy_from_slice(&self.buffer.split_to(n_bytes));
        Ok(n_bytes)
    }
}
