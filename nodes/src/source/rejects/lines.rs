//! The lines of reject files.

use std::io::{self, BufRead, BufReader, Read};

use serde::Deserialize;

use crate::source::stream::unpacked;
use crate::store::{Location, StoreError, Stores};

/// A longer line is no reject: names and messages are far shorter.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// A row that was rejected, as a reject file says it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RejectLine {
    /// The row's id; the uri, where there is none.
    #[serde(default)]
    pub id: Option<String>,
    /// Where the row came from.
    pub uri: String,
    /// The node that rejected it.
    #[serde(default)]
    pub node: String,
    /// The stable word.
    #[serde(default)]
    pub code: String,
    /// What happened.
    #[serde(default)]
    pub message: String,
}

/// A line that is not blank, with its number, from 1.
#[derive(Debug)]
pub struct Numbered {
    /// Its number.
    pub number: u64,
    /// What it says, or what is wrong with it.
    pub line: Result<RejectLine, String>,
}

/// Gives the lines of a reject file, one after the other, in bounded memory.
pub struct RejectLines {
    input: BufReader<Box<dyn Read + Send>>,
    number: u64,
    buffer: Vec<u8>,
}

impl RejectLines {
    /// The lines of what `reader` gives, which may be packed by gzip or zstd.
    ///
    /// # Errors
    /// If not even its beginning can be read.
    pub fn new(reader: impl Read + Send + 'static) -> io::Result<Self> {
        Ok(RejectLines { input: BufReader::with_capacity(64 << 10, unpacked(reader)?), number: 0, buffer: Vec::new() })
    }

    /// The lines of a file.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub fn open(stores: &Stores, location: &Location) -> Result<Self, StoreError> {
        let reader = stores.open(location, 0)?;
        RejectLines::new(reader).map_err(|error| StoreError::of_io(location, &error))
    }

    /// The number of the line that was given last.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not blank.
    ///
    /// # Errors
    /// What keeps the rest of the file from being read.
    pub fn next_line(&mut self) -> io::Result<Option<Numbered>> {
        loop {
            self.buffer.clear();
            let n_read = self.input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut self.buffer)?;
            if n_read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if n_read as u64 == MAX_LINE_BYTES && !self.buffer.ends_with(b"\n") {
                self.input.skip_until(b'\n')?;
                let line = Err(format!("it is longer than {MAX_LINE_BYTES} bytes"));
                return Ok(Some(Numbered { number: self.number, line }));
            }
            let text = self.buffer.trim_ascii();
            if !text.is_empty() {
                return Ok(Some(Numbered { number: self.number, line: parsed(text) }));
            }
        }
    }
}

fn parsed(text: &[u8]) -> Result<RejectLine, String> {
    let line: RejectLine = serde_json::from_slice(text).map_err(|error| {
        let what = error.to_string();
        // The line is always the first: its number is told by who knows it.
        let what = what.split(" at line ").next().unwrap_or_default();
        format!("{what} at column {}", error.column())
    })?;
    match &*line.uri {
        "" => Err("its `uri` is empty".to_owned()),
        uri if uri.contains('\0') => Err("its `uri` has a NUL in it, which no path has".to_owned()),
        _ => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use super::*;

    fn lines(content: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let mut lines = RejectLines::new(Cursor::new(content.to_vec())).unwrap();
        let next = || lines.next_line().unwrap().map(|line| (line.number, line.line.map(|line| line.uri)));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_damaged_line_costs_itself() {
        let long = format!("{{\"uri\": \"{}\"}}", "x".repeat(2 << 20));
        let content =
            format!("{{\"uri\": \"a\", \"more\": 1}}\n\n{{\"uri\"\n[]\n{{\"uri\": \"\"}}\n{long}\n{{\"uri\": \"b\"}}");
        let found = lines(content.as_bytes());
        let numbers: Vec<_> = found.iter().map(|(number, line)| (*number, line.is_ok())).collect();
        assert_eq!(numbers, [(1, true), (3, false), (4, false), (5, false), (6, false), (7, true)]);
        assert_eq!(found[5].1, Ok("b".to_owned()));
        assert!(lines(b"{\"uri\": \"a\\u0000b\"}")[0].1.is_err());
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn packed_lines_are_unpacked() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"{\"uri\": \"a\"}\n").unwrap();
        assert_eq!(lines(&gzip.finish().unwrap()), [(1, Ok("a".to_owned()))]);
        let zstd = zstd::encode_all(&b"{\"uri\": \"a\"}\n"[..], 1).unwrap();
        assert_eq!(lines(&zstd), [(1, Ok("a".to_owned()))]);
    }
}
