//! Which rows are being decoded, in a file that outlives the process.
//!
//! One line a thread, of a fixed length, written in place when a row begins and struck out when its grain ends. What a
//! process had in flight when it died is what its lines say then; that survives the process, not the machine, since a
//! machine's death is no row's doing. A line that was being written has a checksum that does not fit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{History, InFlight};
use crate::data::RowPos;
use crate::node::Fault;

/// The bytes of a line: the node's number, the source's, the item's index, the row's number in it, a checksum, and the
/// line's end.
const LINE: usize = 4 + 1 + 10 + 1 + 20 + 1 + 10 + 1 + 8 + 1;
/// What stands before the checksum.
const TEXT: usize = LINE - 10;
/// Deaths with the same row in flight that make it suspect.
const DEATHS: usize = 2;

/// The file, open for one run.
#[derive(Debug)]
pub struct Flight {
    file: File,
    /// Where the lines begin: behind the names of the nodes.
    start: u64,
    free: Mutex<Vec<usize>>,
}

impl Flight {
    /// A new file in the place of an old one, for rows in `nodes` and `n_slots` threads.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn create(path: &Path, nodes: &[&str], n_slots: usize) -> Result<Flight, Fault> {
        let failed = |error: std::io::Error| Fault::io("write", path, &error);
        let mut text = serde_json::to_vec(nodes).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        let start = text.len() as u64;
        // All of it is written now: later writes take no further room on the disk.
        (0..n_slots).for_each(|_| text.extend_from_slice(&EMPTY));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        Ok(Flight { file, start, free: Mutex::new((0..n_slots).rev().collect()) })
    }

    /// What a process that died has left in the file; nothing if there is none, or nothing that makes sense.
    pub fn read(path: &Path) -> Vec<InFlight> {
        let Ok(bytes) = fs::read(path) else { return Vec::new() };
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Vec::new() };
        let nodes: Vec<String> = serde_json::from_slice(&bytes[..end]).unwrap_or_default();
        let rows: BTreeSet<_> = bytes[end + 1..].chunks_exact(LINE).filter_map(|line| parse(line, &nodes)).collect();
        rows.into_iter().collect()
    }

    /// A slot for the calling thread, for rows in node number `node` of those that the file was made for; `None` if more
    /// threads come than were told of.
    pub fn enter(&self, node: usize) -> Option<Slot<'_>> {
        let number = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(Slot { flight: self, node, number })
    }

    /// That a row could not be noted costs nothing but a hint.
    fn write(&self, number: usize, line: &[u8; LINE]) {
        if let Err(error) = self.file.write_all_at(line, self.start + (number * LINE) as u64) {
            tracing::debug!(%error, "a row in flight is not noted");
        }
    }
}

/// One thread's line; struck out when it is dropped.
#[derive(Debug)]
pub struct Slot<'a> {
    flight: &'a Flight,
    node: usize,
    number: usize,
}

impl Slot<'_> {
    /// The row at `pos` begins.
    pub fn note(&self, pos: RowPos) {
        self.flight.write(self.number, &line(self.node, pos));
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.flight.write(self.number, &EMPTY);
        self.flight.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

/// A line of a thread that decodes nothing.
const EMPTY: [u8; LINE] = {
    let mut line = [b' '; LINE];
    line[0] = b'-';
    line[LINE - 1] = b'\n';
    line
};

fn line(node: usize, RowPos { source, index, sub }: RowPos) -> [u8; LINE] {
    let mut line = EMPTY;
    // Numbers that are wider than their place do not fit the line, which then says nothing: there are not so many nodes.
    let mut text = &mut line[..TEXT];
    if write!(text, "{node:>4} {source:>10} {index:>20} {sub:>10}").is_ok() && text.is_empty() {
        let checksum = crc32fast::hash(&line[..TEXT]);
        let mut rest = &mut line[TEXT..];
        // Ten bytes into ten.
        let _ = writeln!(rest, " {checksum:08x}");
    }
    line
}

fn parse(line: &[u8], nodes: &[String]) -> Option<InFlight> {
    let (text, checksum) = line.split_at_checked(TEXT)?;
    let checksum = u32::from_str_radix(std::str::from_utf8(checksum).ok()?.trim(), 16).ok()?;
    if checksum != crc32fast::hash(text) {
        return None;
    }
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let node = nodes.get(numbers.next()?.parse::<usize>().ok()?)?.clone();
    let (source, index) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some(InFlight { node, source, index, sub: numbers.next()?.parse().ok()? })
}

/// The rows that may have killed the process: those that were in flight at two deaths.
///
/// `last` are those of the last death, which no session has noted yet.
pub fn suspects(history: &History, last: &[InFlight]) -> BTreeSet<InFlight> {
    let mut deaths: BTreeMap<&InFlight, usize> = BTreeMap::new();
    for in_flight in history.sessions.iter().map(|session| &session.in_flight[..]).chain([last]) {
        let rows: BTreeSet<_> = in_flight.iter().collect();
        rows.into_iter().for_each(|row| *deaths.entry(row).or_default() += 1);
    }
    deaths.into_iter().filter(|(_, n_deaths)| *n_deaths >= DEATHS).map(|(row, _)| row.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Begun, End, Fingerprint, Moment, Session};
    use super::*;

    fn row(node: &str, source: u32, index: u64) -> InFlight {
        InFlight { node: node.to_owned(), source, index, sub: 0 }
    }

    fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in-flight");
        (folder, path)
    }

    #[test]
    fn the_file_says_what_is_in_flight_and_no_more() {
        let (_folder, path) = folder();
        assert_eq!(Flight::read(&path), []);
        let flight = Flight::create(&path, &["pixels", "small"], 2).unwrap();
        assert_eq!(Flight::read(&path), []);
        let (first, second) = (flight.enter(1).unwrap(), flight.enter(0).unwrap());
        assert!(flight.enter(0).is_none());
        first.note(RowPos::new(0, 7));
        second.note(RowPos::END);
        first.note(RowPos::new(0, 8));
        assert_eq!(
            Flight::read(&path),
            [InFlight { sub: u32::MAX, ..row("pixels", u32::MAX, u64::MAX) }, row("small", 0, 8)]
        );
        drop(second);
        assert_eq!(Flight::read(&path), [row("small", 0, 8)]);
        let again = flight.enter(0).unwrap();
        again.note(RowPos::new(0, 8));
        assert_eq!(Flight::read(&path).len(), 2, "one row may be in two nodes");
        drop((first, again));
        assert_eq!(Flight::read(&path), []);
        Flight::create(&path, &["pixels"], 1).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn torn_and_foreign_lines_say_nothing() {
        let (_folder, path) = folder();
        let flight = Flight::create(&path, &["pixels"], 3).unwrap();
        let slots: Vec<_> = (0..3).map(|_| flight.enter(0).unwrap()).collect();
        slots.iter().zip(10..).for_each(|(slot, index)| slot.note(RowPos::new(0, index)));
        let whole = fs::read(&path).unwrap();
        let start = "[\"pixels\"]\n".len();
        for at in start..start + LINE {
            let mut torn = whole.clone();
            torn[at] = torn[at].wrapping_add(1);
            fs::write(&path, &torn).unwrap();
            let read = Flight::read(&path);
            // Only the line's end says nothing about the row.
            assert_eq!(read.contains(&row("pixels", 0, 10)), at == start + LINE - 1, "{at}");
            assert!(read.contains(&row("pixels", 0, 11)));
        }
        for n_bytes in 0..whole.len() {
            fs::write(&path, &whole[..n_bytes]).unwrap();
            assert_eq!(Flight::read(&path).len(), n_bytes.saturating_sub(start) / LINE);
        }
        fs::write(&path, [&b"[]\n"[..], &whole[start..]].concat()).unwrap();
        assert_eq!(Flight::read(&path), []);
    }

    #[test]
    fn rows_of_two_deaths_are_suspects() {
        let session = |in_flight: &[InFlight]| Session {
            at: Moment::default(),
            pid: 1,
            host: String::new(),
            build: String::new(),
            from: None,
            resumed: 0,
            limit: None,
            in_flight: in_flight.to_vec(),
        };
        let begun = Begun {
            version: 1,
            at: Moment::default(),
            name: "p".to_owned(),
            shard: None,
            sources: Vec::new(),
            fingerprint: Fingerprint::default(),
        };
        let mut history = History { begun, sessions: Vec::new(), cuts: Vec::new(), end: End::Open };
        let (a, b, c) = (row("pixels", 0, 1), row("pixels", 0, 2), row("small", 0, 1));
        history.sessions.push(session(&[]));
        history.sessions.push(session(&[a.clone(), b.clone(), b.clone()]));
        assert!(suspects(&history, &[]).is_empty());
        assert_eq!(suspects(&history, &[b.clone(), c.clone()]), BTreeSet::from([b.clone()]));
        history.sessions.push(session(&[c, a.clone()]));
        assert_eq!(suspects(&history, &[]), BTreeSet::from([a.clone()]));
        history.sessions.push(session(&[]));
        assert_eq!(
            suspects(&history, std::slice::from_ref(&b)),
            BTreeSet::from([a, b]),
            "deaths need not follow each other"
        );
    }
}
