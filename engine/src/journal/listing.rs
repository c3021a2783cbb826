//! What a source has listed, so that a later run goes on without listing it again.
//!
//! One line an item, packed by gzip: `zcat listing.0.gz` shows them. The file is a row of gzip members, each whole or not
//! there: a torn one at the end is cut off. A line is the item's uri; where the locator is not the same, or there is an id
//! or a size, these follow behind tabs.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Take, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::{GzDecoder, MultiGzDecoder};
use flate2::write::GzEncoder;

use crate::durable::disk;
use crate::node::{Fault, Item};

/// Bytes of lines that make a member.
const MEMBER_BYTES: usize = 256 << 10;

/// A record of a listing, open for items to come.
#[derive(Debug)]
pub struct Listing {
    file: File,
    path: PathBuf,
    /// Bytes of whole members when it was opened.
    n_bytes: u64,
    n_durable: u64,
    /// Lines that are in no member yet.
    lines: Vec<u8>,
    n_lines: u64,
    is_synced: bool,
}

impl Listing {
    /// Opens a record, or makes one; what is behind its last whole member is cut off.
    ///
    /// # Errors
    /// What keeps the file from being opened or read.
    pub fn open(path: &Path) -> Result<Listing, Fault> {
        let failed = |error: io::Error| Fault::io("open", path, &error);
        let is_new = !path.exists();
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        let (n_items, n_bytes) = scan(&file).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > n_bytes {
            disk::cut(&file, n_bytes).map_err(failed)?;
        }
        if is_new {
            disk::sync_folder_of(path).map_err(failed)?;
        }
        let path = path.to_owned();
        Ok(Listing { file, path, n_bytes, n_durable: n_items, lines: Vec::new(), n_lines: 0, is_synced: true })
    }

    /// The items that it had when it was opened.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub fn items(&self) -> Result<Recorded, Fault> {
        let file = File::open(&self.path).map_err(|error| Fault::io("open", &self.path, &error))?;
        let lines = BufReader::new(MultiGzDecoder::new(BufReader::new(file.take(self.n_bytes))));
        // No bytes at all are no member either, and would be an error.
        Ok(Recorded { lines: (self.n_bytes > 0).then_some(lines), path: self.path.clone() })
    }

    /// Adds items.
    ///
    /// # Errors
    /// A full disk and the like.
    pub fn push(&mut self, items: &[Item]) -> Result<(), Fault> {
        for item in items {
            write_line(&mut self.lines, item);
            self.n_lines += 1;
        }
        if self.lines.len() >= MEMBER_BYTES { self.close_member() } else { Ok(()) }
    }

    /// Makes durable at least the first `n_items` items, as far as there are so many.
    ///
    /// # Errors
    /// A full disk and the like; a failed fsync is one.
    pub fn sync(&mut self, n_items: u64) -> Result<(), Fault> {
        if self.n_durable < n_items && self.n_lines > 0 {
            self.close_member()?;
        }
        if !self.is_synced {
            disk::sync(&self.file).map_err(|error| Fault::io("sync", &self.path, &error))?;
            self.is_synced = true;
        }
        Ok(())
    }

    fn close_member(&mut self) -> Result<(), Fault> {
        let failed = |error: io::Error| Fault::io("write", &self.path, &error);
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        member.write_all(&self.lines).map_err(failed)?;
        disk::write_all(&self.file, &member.finish().map_err(failed)?).map_err(failed)?;
        self.lines.clear();
        self.n_durable += self.n_lines;
        self.n_lines = 0;
        self.is_synced = false;
        Ok(())
    }
}

/// Items of a record, one after the other.
pub struct Recorded {
    lines: Option<BufReader<MultiGzDecoder<BufReader<Take<File>>>>>,
    path: PathBuf,
}

impl Iterator for Recorded {
    type Item = Result<Item, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.lines.as_mut()?.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(parse_line(line.strip_suffix(b"\n").unwrap_or(&line)))),
            Err(error) => Some(Err(Fault::io("read", &self.path, &error))),
        }
    }
}

/// The number of items in whole members, and the bytes of these.
fn scan(file: &File) -> io::Result<(u64, u64)> {
    let mut packed = BufReader::new(file);
    let (mut n_items, mut n_bytes) = (0, 0);
    let mut lines = Vec::new();
    while !packed.fill_buf()?.is_empty() {
        lines.clear();
        match GzDecoder::new(&mut packed).read_to_end(&mut lines) {
            Ok(_) => {}
            Err(error) if error.raw_os_error().is_some() => return Err(error),
            // Torn, or not what was written.
            Err(_) => break,
        }
        n_items += lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
        n_bytes = packed.stream_position()?;
    }
    Ok((n_items, n_bytes))
}

fn write_line(lines: &mut Vec<u8>, item: &Item) {
    escape(lines, item.uri.as_bytes());
    let is_plain = item.id.is_none() && item.size_hint == 0;
    if !is_plain || item.locator.as_bytes() != item.uri.as_bytes() {
        lines.push(b'\t');
        escape(lines, item.locator.as_bytes());
    }
    if !is_plain {
        lines.extend_from_slice(format!("\t{}\t", item.size_hint).as_bytes());
        if let Some(id) = &item.id {
            lines.push(b'=');
            escape(lines, id.as_bytes());
        }
    }
    lines.push(b'\n');
}

fn parse_line(line: &[u8]) -> Item {
    let mut fields = line.split(|&byte| byte == b'\t');
    let text = |bytes: &[u8]| String::from_utf8_lossy(&unescape(bytes)).into_owned();
    let uri = text(fields.next().unwrap_or_default());
    let locator = fields.next().map_or_else(|| OsString::from(&uri), |locator| OsString::from_vec(unescape(locator)));
    let size_hint = fields.next().and_then(|size| std::str::from_utf8(size).ok()?.parse().ok()).unwrap_or(0);
    let id = fields.next().and_then(|id| id.strip_prefix(b"=")).map(text);
    Item { uri, id, locator, size_hint }
}

/// Takes line ends and tabs out of a field.
fn escape(line: &mut Vec<u8>, field: &[u8]) {
    for &byte in field {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\\' => line.extend_from_slice(b"\\\\"),
            byte => line.push(byte),
        }
    }
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match (byte, byte == b'\\') {
            (_, true) => match rest.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(&other) => other,
                None => b'\\',
            },
            (byte, false) => byte,
        });
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;

    use super::*;

    fn item(uri: &str) -> Item {
        Item { uri: uri.into(), id: None, locator: uri.into(), size_hint: 0 }
    }

    fn odd_items() -> Vec<Item> {
        vec![
            item("photos/a.jpg"),
            item("a\tb\nc\\n d.jpg"),
            Item { locator: OsStr::from_bytes(b"\xff\n\t").into(), ..item("%FF") },
            Item { id: Some("".into()), ..item("x") },
            Item { id: Some("i\nd".into()), locator: OsString::new(), size_hint: 7, ..item("y") },
            Item { size_hint: u64::MAX, ..item("z") },
        ]
    }

    fn items(listing: &Listing) -> Vec<Item> {
        listing.items().unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn items_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("listing.gz");
        let mut listing = Listing::open(&path).unwrap();
        assert_eq!(items(&listing), []);
        listing.push(&odd_items()).unwrap();
        listing.sync(1).unwrap();
        listing.push(&[item("later")]).unwrap();
        drop(listing);
        let mut listing = Listing::open(&path).unwrap();
        assert_eq!(items(&listing), odd_items(), "what was not synced is gone");
        listing.push(&[item("later")]).unwrap();
        listing.sync(7).unwrap();
        assert_eq!(items(&Listing::open(&path).unwrap()).len(), 7);
    }

    #[test]
    fn a_torn_member_is_cut_off_wherever_it_is_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("listing.gz");
        let mut listing = Listing::open(&path).unwrap();
        listing.push(&[item("a"), item("b")]).unwrap();
        listing.sync(2).unwrap();
        let first = fs::metadata(&path).unwrap().len() as usize;
        listing.push(&[item("c")]).unwrap();
        listing.sync(3).unwrap();
        let whole = fs::read(&path).unwrap();
        for n_bytes in 0..=whole.len() {
            fs::write(&path, &whole[..n_bytes]).unwrap();
            let expected = 2 * usize::from(n_bytes >= first) + usize::from(n_bytes == whole.len());
            let mut listing = Listing::open(&path).unwrap();
            assert_eq!(items(&listing).len(), expected, "torn after {n_bytes} bytes");
            listing.push(&[item("d")]).unwrap();
            listing.sync(u64::MAX).unwrap();
            assert_eq!(items(&Listing::open(&path).unwrap()).last(), Some(&item("d")));
        }
    }

    #[test]
    fn a_million_names_take_few_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("listing.gz");
        let mut listing = Listing::open(&path).unwrap();
        let name = |n: u32| item(&format!("photos/n{:08}/n{:08}_{}.JPEG", n / 1300, n / 1300, n * 7));
        for first in (0..100_000).step_by(1000) {
            listing.push(&(first..first + 1000).map(name).collect::<Vec<_>>()).unwrap();
        }
        listing.sync(u64::MAX).unwrap();
        let n_bytes = fs::metadata(&path).unwrap().len();
        assert!(n_bytes < 10 * 100_000, "{n_bytes} bytes for 100,000 names");
    }
}
