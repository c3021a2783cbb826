//! A lock that two processes cannot hold, and that goes with the process.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::disk;
use super::holder;
use crate::node::Fault;

/// How often a lock that is held is asked for, and what lies between: whoever only looks has it for less.
const LOOKS: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// A file that is locked as long as this lives. What is written in it says who holds it.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// Who holds a lock that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its process: known if it is on this machine.
    pub pid: Option<u32>,
    /// What it wrote into the file.
    pub note: String,
}

/// Who it is, by the process's number where that is known.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, self.note.as_str()) {
            (Some(pid), _) => write!(f, "pid {pid}"),
            (None, "") => f.write_str("another process"),
            (None, note) => f.write_str(note),
        }
    }
}

impl Lock {
    /// Takes the lock `path`, and writes `note` into it; or says who has it.
    ///
    /// # Errors
    /// What keeps the file from being opened.
    pub fn take(path: &Path, note: &str) -> Result<Result<Lock, Held>, Fault> {
        let failed = |error: io::Error| Fault::io("lock", path, &error);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        let mut looks = 0;
        while let Some(held) = try_lock(&file).map_err(failed)? {
            looks += 1;
            if looks == LOOKS {
                return Ok(Err(held));
            }
            // Somebody may only be looking who has it.
            std::thread::sleep(PAUSE);
        }
        disk::cut(&file, 0).and_then(|()| disk::write_all(&file, note.as_bytes())).map_err(failed)?;
        Ok(Ok(Lock { file, path: path.to_owned() }))
    }

    /// Who holds the lock `path`; `None` if nobody does, or there is none.
    pub fn holder(path: &Path) -> Option<Held> {
        let file = File::open(path).ok()?;
        // A lock that others may share with this one: two who look do not take each other for one who works. It goes with
        // the file, at once.
        lock(&file, FlockOperation::NonBlockingLockShared).ok()?
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, open as long as the lock is held.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Locks an open file, or says who has it.
pub(super) fn try_lock(file: &File) -> io::Result<Option<Held>> {
    lock(file, FlockOperation::NonBlockingLockExclusive)
}

fn lock(file: &File, operation: FlockOperation) -> io::Result<Option<Held>> {
    match flock(file, operation) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            // A file that cannot be read tells nothing; the lock is held all the same.
            let mut note = [0; 256];
            let n_bytes = file.read_at(&mut note, 0).unwrap_or(0);
            let note = String::from_utf8_lossy(&note[..n_bytes]).trim_end().to_owned();
            Ok(Some(Held { pid: holder(file), note }))
        }
        // Some network file systems know no locks: then there is none, as before there were any.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported) || error == rustix::io::Errno::NOLCK => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_has_it_and_gets_it_when_the_first_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path, "a note\n").unwrap().unwrap();
        let held = Lock::take(&path, "another").unwrap().unwrap_err();
        assert_eq!(held, Held { pid: Some(std::process::id()), note: "a note".into() });
        assert_eq!(Lock::holder(&path), Some(held));
        drop(lock);
        assert_eq!(Lock::holder(&path), None);
        assert!(Lock::take(&path, "another").unwrap().is_ok());
    }

    #[test]
    fn who_only_looks_is_not_taken_for_a_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        drop(Lock::take(&path, "a note").unwrap().unwrap());
        let looking = File::open(&path).unwrap();
        assert_eq!(lock(&looking, FlockOperation::NonBlockingLockShared).unwrap(), None);
        assert_eq!(Lock::holder(&path), None, "two may look at once");
    }
}
