//! Outputs of lines, one after the other.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::bytes::LineCount;
use crate::durable::Partial;
use crate::node::{Fault, Sealed};

/// Bytes that are read at once.
const BLOCK_BYTES: u64 = 1 << 20;

/// The longest header that is believed.
const MAX_HEADER_BYTES: u64 = 1 << 24;

/// What a shard has written of an output.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) rows: u64,
    /// Where the rows of each source end, if there are several sources: these follow each other in the whole output too.
    pub(super) ends: Vec<u64>,
}

/// Whether parts begin with a line that is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    None,
    /// The first one stays.
    First,
    /// There is none, nor are there lines: it is compressed.
    Compressed,
}

/// Writes all rows of the first source, then all of the second, and so on, and makes them durable under the temporary
/// name of `path`, which is `shown` to people.
///
/// # Errors
/// If a part is not what its shard has left; a full disk and the like.
pub(super) fn join(shown: &str, path: &Path, parts: &[Part], header: Header) -> Result<Sealed, Fault> {
    let mut out = Partial::open(shown, path)?;
    let mut first_header: Option<Vec<u8>> = None;
    let mut ranges = Vec::with_capacity(parts.len());
    for part in parts {
        let start = match header {
            Header::None | Header::Compressed => 0,
            Header::First => {
                let found = read_header(part)?;
                match &first_header {
                    None => out.buffer().extend_from_slice(&found),
                    Some(first) if *first == found => {}
                    Some(_) => return Err(damaged(part, "it has other columns than the others")),
                }
                first_header.get_or_insert(found).len() as u64
            }
        };
        ranges.push(ranges_of(part, start)?);
    }
    let n_sources = ranges.iter().map(Vec::len).max().unwrap_or(0);
    let new_count = || match header {
        Header::None | Header::Compressed => LineCount::Plain { n_lines: 0 },
        Header::First => LineCount::Quoted { n_lines: 0, is_open: false },
    };
    let mut counts: Vec<_> = parts.iter().map(|_| new_count()).collect();
    for source in 0..n_sources {
        for ((part, ranges), count) in parts.iter().zip(&ranges).zip(&mut counts) {
            let Some(&(start, end)) = ranges.get(source).filter(|(start, end)| start < end) else { continue };
            copy(&mut out, part, start, end, count)?;
        }
    }
    for (part, count) in parts.iter().zip(&counts) {
        if header != Header::Compressed && count.n_lines() != part.rows {
            return Err(damaged(part, &format!("it has {} rows, and {} were written", count.n_lines(), part.rows)));
        }
    }
    out.seal(parts.iter().map(|part| part.rows).sum())
}

/// Where the rows of each source are in a part.
fn ranges_of(part: &Part, start: u64) -> Result<Vec<(u64, u64)>, Fault> {
    let mut ranges = Vec::with_capacity(part.ends.len().max(1));
    let mut from = start;
    // A header that is written at the very end is not in the ends.
    for end in part.ends.iter().map(|end| *end.max(&start)) {
        if end < from || end > part.bytes {
            return Err(damaged(part, "its journal does not say where its rows end"));
        }
        ranges.push((from, end));
        from = end;
    }
    if from < part.bytes {
        ranges.push((from, part.bytes));
    }
    Ok(ranges)
}

fn read_header(part: &Part) -> Result<Vec<u8>, Fault> {
    let mut header = Vec::new();
    let mut is_open = false;
    let file = open(part)?;
    for byte in io::BufReader::new(file.take(MAX_HEADER_BYTES.min(part.bytes))).bytes() {
        let byte = byte.map_err(|error| Fault::io("read", &part.path, &error))?;
        header.push(byte);
        is_open ^= byte == b'"';
        if byte == b'\n' && !is_open {
            return Ok(header);
        }
    }
    Err(damaged(part, "it has no header"))
}

fn copy(out: &mut Partial, part: &Part, start: u64, end: u64, count: &mut LineCount) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::io("read", &part.path, &error);
    let mut file = open(part)?;
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut left = end - start;
    while left > 0 {
        let buffer = out.buffer();
        let before = buffer.len();
        let n_bytes = (&mut file).take(left.min(BLOCK_BYTES)).read_to_end(buffer).map_err(failed)?;
        if n_bytes == 0 {
            return Err(damaged(part, "it became shorter while it was read"));
        }
        count.add(&buffer[before..]);
        left -= n_bytes as u64;
        out.spill()?;
    }
    Ok(())
}

fn open(part: &Part) -> Result<File, Fault> {
    File::open(&part.path).map_err(|error| Fault::io("open", &part.path, &error))
}

fn damaged(part: &Part, why: &str) -> Fault {
    let message = format!("`{}` is not as its shard has left it: {why}", part.path.display());
    Fault::transient(message).help("remove it, run its shard again, and merge then")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::durable::publish;

    fn part(folder: &Path, name: &str, text: &str, rows: u64, ends: &[u64]) -> Part {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        Part { path, bytes: text.len() as u64, rows, ends: ends.into() }
    }

    fn joined(folder: &Path, parts: &[Part], header: Header) -> Result<String, Fault> {
        let sealed = join("o", &folder.join("o"), parts, header)?;
        assert_eq!(sealed.rows, parts.iter().map(|part| part.rows).sum::<u64>());
        publish(folder, &[sealed]).unwrap();
        Ok(fs::read_to_string(folder.join("o")).unwrap())
    }

    #[test]
    fn the_rows_of_each_source_follow_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let parts = [
            part(folder, "0", "a\nb\nx\n", 3, &[4, 6]),
            part(folder, "1", "", 0, &[0, 0]),
            part(folder, "2", "y\n", 1, &[0, 2]),
            part(folder, "3", "c\n", 1, &[2]),
            part(folder, "4", "d\nz\n", 2, &[2]),
        ];
        assert_eq!(joined(folder, &parts, Header::None).unwrap(), "a\nb\nc\nd\nx\ny\nz\n");
        let parts = [part(folder, "0", "a\nb\n", 2, &[]), part(folder, "1", "c\n", 1, &[])];
        assert_eq!(joined(folder, &parts, Header::None).unwrap(), "a\nb\nc\n");
    }

    #[test]
    fn of_headers_the_first_stays() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let parts = [
            part(folder, "0", "\"u\n1\",v\n", 0, &[0, 0]),
            part(folder, "1", "\"u\n1\",v\na,\"1\n2\"\nx,3\n", 2, &[16, 20]),
            part(folder, "2", "\"u\n1\",v\nb,\"\"\"\"\n", 1, &[15]),
        ];
        assert_eq!(joined(folder, &parts, Header::First).unwrap(), "\"u\n1\",v\na,\"1\n2\"\nb,\"\"\"\"\nx,3\n");
        let parts = [part(folder, "0", "u\n", 0, &[]), part(folder, "1", "v\n", 0, &[])];
        let fault = joined(folder, &parts, Header::First).unwrap_err();
        assert!(fault.message.contains("it has other columns than the others"), "{fault}");
    }

    #[test]
    fn compressed_pieces_are_copied_whatever_is_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let parts = [part(folder, "0", "no\nlines|x", 5, &[9, 10]), part(folder, "1", "z", 1, &[0, 1])];
        assert_eq!(joined(folder, &parts, Header::Compressed).unwrap(), "no\nlines|xz");
    }

    #[test]
    fn what_is_larger_than_a_block_is_copied_whole() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let text = "0123456\n".repeat(400_000);
        let parts = [part(folder, "0", &text, 400_000, &[]), part(folder, "1", "x\n", 1, &[])];
        assert_eq!(joined(folder, &parts, Header::None).unwrap(), text + "x\n");
    }

    #[test]
    fn a_part_that_is_not_what_was_written_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let check = |part: Part, header, why: &str| {
            let fault = joined(folder, &[part], header).unwrap_err();
            assert!(fault.message.contains(why), "{fault}");
            assert!(!folder.join("o").exists());
        };
        check(part(folder, "0", "a\nb\n", 3, &[]), Header::None, "it has 2 rows, and 3 were written");
        check(part(folder, "0", "a\nb\n", 2, &[9]), Header::None, "does not say where its rows end");
        check(part(folder, "0", "a\nb\n", 2, &[3, 2]), Header::None, "does not say where its rows end");
        check(part(folder, "0", "no line", 0, &[]), Header::First, "it has no header");
        let mut short = part(folder, "0", "a\n", 2, &[]);
        short.bytes = 4;
        check(short, Header::None, "it became shorter");
    }
}
