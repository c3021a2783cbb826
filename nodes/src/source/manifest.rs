//! A list of files in a file: one path or URL a line.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use engine::node::{Cancel, Fault, Item};

use super::files_walk::join_uri;
use super::listing::{has_secrets, secret_line, tidy, unreadable};
use super::stream::Stream;
use crate::store::{Location, Stores};

/// A longer line is no path.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Gives an item for each line that is not blank, in order.
pub(super) struct Manifest {
    stores: Stores,
    location: Location,
    /// The folder that relative paths start from.
    base: PathBuf,
    cancel: Cancel,
    stream: Option<Stream>,
    n_lines: u64,
}

impl Manifest {
    pub(super) fn new(stores: Stores, location: Location, base: &Path, cancel: &Cancel) -> Self {
        Manifest { stores, location, base: base.to_owned(), cancel: cancel.clone(), stream: None, n_lines: 0 }
    }

    /// Goes back to the first line.
    pub(super) fn restart(&mut self) {
        (self.stream, self.n_lines) = (None, 0);
    }

    /// The next item; none at the end, and where the run is to end.
    ///
    /// # Errors
    /// What keeps the list from being read.
    pub(super) fn next_item(&mut self) -> Result<Option<Item>, Fault> {
        match self.read_item() {
            Err(_) if self.cancel.is_draining() => Ok(None),
            item => item,
        }
    }

    fn read_item(&mut self) -> Result<Option<Item>, Fault> {
        let failed = |reject: engine::data::Reject| Fault::transient(reject.message).help("it is the `manifest`");
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(Stream::open(&self.stores, self.location.clone()).map_err(failed)?),
        };
        let mut line = Vec::new();
        loop {
            let start = stream.position();
            line.clear();
            let read = read_line(stream, &mut line);
            if read.map_err(|error| failed(stream.reject(&error)))? == 0 {
                return Ok(None);
            }
            self.n_lines += 1;
            if line.len() as u64 >= MAX_LINE_BYTES {
                let message = format!("`{}`: line {} is longer than a path can be", self.location, self.n_lines);
                return Err(Fault::permanent(message).help("a manifest has one path or URL a line"));
            }
            let text = line.trim_ascii_end();
            if text.trim_ascii().is_empty() {
                continue;
            }
            let place = (start, start + text.len() as u64);
            let Some(item) = item(text, place, &self.base, stream.is_packed()) else {
                let message =
                    format!("`{}`: line {} is a URL with a query string or a user", self.location, self.n_lines);
                return Err(
                    Fault::permanent(message).help("unpack the list: such a URL is found again by its place in it")
                );
            };
            return Ok(Some(item));
        }
    }
}

fn read_line(stream: &mut Stream, line: &mut Vec<u8>) -> io::Result<usize> {
    stream.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', line)
}

/// The item of a line; `None` if it has something secret in it and could not be found again.
fn item(line: &[u8], (start, end): (u64, u64), base: &Path, is_packed: bool) -> Option<Item> {
    let of = |uri: String, locator: OsString| Some(Item { uri, id: None, locator, size_hint: 0 });
    let Ok(text) = std::str::from_utf8(line) else {
        let path = OsStr::from_bytes(line);
        return of(join_uri("", path), path.to_owned());
    };
    if !Location::is_url(text.trim()) {
        let path = tidy(text);
        return of(path.clone(), path.into());
    }
    match Location::parse(text.trim(), base) {
        Ok(location) if has_secrets(&location) => {
            if is_packed {
                None
            } else {
                of(location.to_string(), secret_line(start, end))
            }
        }
        Ok(location) => of(location.to_string(), location.to_string().into()),
        Err(error) => of(crate::store::redacted(text.trim()), unreadable(&error)),
    }
}
