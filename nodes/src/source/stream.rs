//! A file from its first byte to its last, unpacked if it is packed, wherever it is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use engine::data::{Reject, code};
use engine::node::Stamp;

use super::gzip::Gzip;
use crate::store::{Location, StoreError, Stores};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// What may follow behind the last thing of interest in a packed file and is looked at for the packing's own sake.
const MAX_REST_BYTES: u64 = 64 << 20;

/// A file that is read from front to back.
pub(super) struct Stream {
    input: Input,
    location: Location,
    stamp: Stamp,
    is_packed: bool,
    /// Bytes read or passed over, of what is unpacked.
    position: u64,
}

enum Input {
    /// A local file as it is, in which one can go on without reading. Its size is what it was when it was opened.
    File(BufReader<File>, u64),
    Other(BufReader<Box<dyn Read + Send>>),
}

impl Stream {
    /// Opens a file. Whether it is packed by gzip or zstd is told by its first bytes.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub(super) fn open(stores: &Stores, location: Location) -> Result<Self, Reject> {
        let mut reader = stores.open(&location, 0)?;
        let stamp = reader.meta().map_or(Stamp::NONE, |meta| meta.stamp());
        let failed = |error: io::Error| Reject::from(StoreError::of_io(&location, &error));
        let mut start = Vec::with_capacity(4);
        reader.by_ref().take(4).read_to_end(&mut start).map_err(failed)?;
        let packing = Packing::of(&start);
        let input = match (location.local_path(), packing) {
            (Some(path), Packing::None) => {
                let file = File::open(path).map_err(failed)?;
                let size = file.metadata().map_err(failed)?.len();
                Input::File(BufReader::with_capacity(BUFFER_BYTES, file), size)
            }
            _ => {
                let unpacked = packing.unpack(Cursor::new(start).chain(reader)).map_err(failed)?;
                Input::Other(BufReader::with_capacity(BUFFER_BYTES, unpacked))
            }
        };
        Ok(Stream { input, location, stamp, is_packed: packing != Packing::None, position: 0 })
    }

    /// What the file was when it was opened.
    pub(super) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Whether it was packed.
    pub(super) fn is_packed(&self) -> bool {
        self.is_packed
    }

    /// Bytes read or passed over so far, of what is unpacked.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Fills `buffer` as far as there are bytes: how many these were.
    ///
    /// # Errors
    /// What keeps the file from being read.
    pub(super) fn read_up_to(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut n_read = 0;
        while n_read < buffer.len() {
            match self.read(&mut buffer[n_read..]) {
                Ok(0) => break,
                Ok(n_more) => n_read += n_more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(n_read)
    }

    /// Passes over `n_bytes`: how many there were.
    ///
    /// # Errors
    /// What keeps the file from being read.
    pub(super) fn skip(&mut self, n_bytes: u64) -> io::Result<u64> {
        let Input::File(file, size) = &mut self.input else {
            return io::copy(&mut self.by_ref().take(n_bytes), &mut io::sink());
        };
        let n_bytes = n_bytes.min(size.saturating_sub(self.position));
        // A file is never larger than this.
        file.seek_relative(i64::try_from(n_bytes).unwrap_or(i64::MAX))?;
        self.position += n_bytes;
        Ok(n_bytes)
    }

    /// Reads on to the end of a packed file of which all that matters has been read, so that its checksum is looked at too: up
    /// to 64 MiB.
    ///
    /// # Errors
    /// What is wrong with the packing, or keeps the file from being read.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.is_packed {
            io::copy(&mut self.by_ref().take(MAX_REST_BYTES), &mut io::sink())?;
        }
        Ok(())
    }

    /// Why reading failed: what the store or the disk says, or else what is wrong with the packing.
    pub(super) fn reject(&self, error: &io::Error) -> Reject {
        let reject = Reject::from(StoreError::of_io(&self.location, error));
        match error.kind() {
            _ if reject.code != code::IO || error.raw_os_error().is_some() => reject,
            io::ErrorKind::UnexpectedEof => {
                Reject::new(code::TRUNCATED, format!("`{}` ends within its packed bytes", self.location))
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other if !is_of_store(error) => {
                Reject::new(code::CORRUPT, format!("`{}` cannot be unpacked: {error}", self.location))
            }
            _ => reject,
        }
    }
}

fn is_of_store(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<StoreError>())
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = match &mut self.input {
            Input::File(file, _) => file.read(buffer)?,
            Input::Other(reader) => reader.read(buffer)?,
        };
        self.position += n_read as u64;
        Ok(n_read)
    }
}

impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.input {
            Input::File(file, _) => file.fill_buf(),
            Input::Other(reader) => reader.fill_buf(),
        }
    }

    fn consume(&mut self, n_bytes: usize) {
        match &mut self.input {
            Input::File(file, _) => file.consume(n_bytes),
            Input::Other(reader) => reader.consume(n_bytes),
        }
        self.position += n_bytes as u64;
    }
}

/// What `reader` gives, unpacked if it is packed by gzip or zstd.
///
/// # Errors
/// If not even its beginning can be read.
pub(super) fn unpacked(mut reader: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::with_capacity(4);
    reader.by_ref().take(4).read_to_end(&mut start)?;
    Packing::of(&start).unpack(Cursor::new(start).chain(reader))
}

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(start: &[u8]) -> Packing {
        match start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            // A frame, or one of those that are passed over.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Packing::Zstd,
            _ => Packing::None,
        }
    }

    fn unpack(self, whole: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Packing::None => Box::new(whole),
            Packing::Gzip => Box::new(Gzip::new(BufReader::with_capacity(BUFFER_BYTES, whole))),
            Packing::Zstd => Box::new(zstd::Decoder::new(whole)?),
        })
    }
}
