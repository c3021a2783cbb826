//! A log of lines that only grows. Each line has its checksum before it, so that an end torn off by a crash is seen.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::disk;
use crate::node::Fault;

/// `1c291ca3 `: the CRC-32 of the line, in hexadecimal digits, and a space.
const PREFIX: usize = 9;

/// A log that is open for lines to come.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    n_bytes: u64,
    /// A line could not be written: what lies there now is not known.
    is_broken: bool,
}

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The lines, up to the first that is not whole.
    pub lines: Vec<String>,
    /// Bytes of these.
    pub n_bytes: u64,
    /// Bytes behind them.
    pub n_torn: u64,
}

impl Log {
    /// Opens a log, or makes one; what is behind its last whole line is cut off.
    ///
    /// # Errors
    /// What keeps the file from being opened.
    pub fn open(path: &Path) -> Result<(Log, Lines), Fault> {
        let failed = |error: io::Error| Fault::io("open", path, &error);
        let is_new = !path.exists();
        let lines = Lines::read(path)?;
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        if lines.n_torn > 0 {
            disk::cut(&file, lines.n_bytes).map_err(failed)?;
        }
        if is_new {
            disk::sync_folder_of(path).map_err(failed)?;
        }
        let log = Log { file, path: path.to_owned(), n_bytes: lines.n_bytes, is_broken: false };
        Ok((log, lines))
    }

    /// Adds a line, and makes it durable together with all before it.
    ///
    /// # Errors
    /// A full disk and the like. Then no further line is taken.
    pub fn append(&mut self, line: &str) -> Result<(), Fault> {
        debug_assert!(!line.contains('\n'), "a line has no end inside it");
        if self.is_broken {
            return Err(Fault::transient(format!("`{}` could not be written to before", self.path.display())));
        }
        let text = format!("{:08x} {line}\n", crc32fast::hash(line.as_bytes()));
        let written = disk::append(&self.file, text.as_bytes()).and_then(|()| disk::sync(&self.file));
        if let Err(error) = written {
            self.is_broken = true;
            // Should that fail too, the checksum shows where the log ends.
            let _ = self.file.set_len(self.n_bytes);
            return Err(Fault::io("write", &self.path, &error));
        }
        self.n_bytes += text.len() as u64;
        Ok(())
    }
}

impl Lines {
    /// The lines of the log `path`; none if there is no such file.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub fn read(path: &Path) -> Result<Lines, Fault> {
        match fs::read(path) {
            Ok(bytes) => Ok(Lines::parse(&bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Lines::default()),
            Err(error) => Err(Fault::io("read", path, &error)),
        }
    }

    fn parse(bytes: &[u8]) -> Lines {
        let mut found = Lines::default();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let Some(line) = whole(&rest[..end]) else { break };
            found.lines.push(line.to_owned());
            rest = &rest[end + 1..];
        }
        found.n_torn = rest.len() as u64;
        found.n_bytes = bytes.len() as u64 - found.n_torn;
        found
    }
}

/// The text behind a checksum that fits.
fn whole(line: &[u8]) -> Option<&str> {
    let (sum, text) = line.split_at_checked(PREFIX)?;
    let sum = std::str::from_utf8(sum).ok()?.strip_suffix(' ')?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    (sum == crc32fast::hash(text)).then(|| std::str::from_utf8(text).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_end_is_cut_off_wherever_it_is_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (mut log, lines) = Log::open(&path).unwrap();
        assert_eq!(lines, Lines::default());
        log.append("one").unwrap();
        log.append(r#"{"two":2}"#).unwrap();
        let whole = fs::read(&path).unwrap();
        let first = PREFIX + "one\n".len();
        for n_bytes in 0..=whole.len() {
            fs::write(&path, &whole[..n_bytes]).unwrap();
            let (mut log, lines) = Log::open(&path).unwrap();
            let expected = usize::from(n_bytes >= first) + usize::from(n_bytes == whole.len());
            assert_eq!(lines.lines.len(), expected, "torn after {n_bytes} bytes");
            log.append("three").unwrap();
            assert_eq!(Lines::read(&path).unwrap().lines[expected], "three");
        }
    }

    #[test]
    fn a_line_whose_bytes_have_changed_ends_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (mut log, _) = Log::open(&path).unwrap();
        ["one", "two", "three"].iter().for_each(|line| log.append(line).unwrap());
        let mut bytes = fs::read(&path).unwrap();
        let two = bytes.windows(3).position(|window| window == b"two").unwrap();
        bytes[two] = b'T';
        fs::write(&path, bytes).unwrap();
        assert_eq!(Lines::read(&path).unwrap().lines, ["one"]);
        fs::write(&path, b"\xff\n\n1 x\n").unwrap();
        assert_eq!(Lines::read(&path).unwrap(), Lines { lines: vec![], n_bytes: 0, n_torn: 7 });
    }
}
