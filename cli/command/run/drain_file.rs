//! A file that asks the run to stop as soon as it exists: how notices of a machine's end are often given.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// How often it is looked for.
const PERIOD: Duration = Duration::from_millis(500);

/// Looks for a file until this is dropped.
///
/// It does so on a thread of its own, which nobody waits for: a folder on a share that hangs keeps only that thread.
pub(super) struct DrainFile {
    _stop: Sender<()>,
}

impl DrainFile {
    /// Calls `found` once the file is there.
    pub(super) fn watch(path: PathBuf, found: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let look = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(PERIOD) {
                // What cannot be asked now may be asked later: a share comes back.
                if is_there(&path).unwrap_or(false) {
                    return found();
                }
            }
        };
        thread::Builder::new().name("drain-file".to_owned()).spawn(look)?;
        Ok(DrainFile { _stop: stop })
    }
}

/// Whether the file is there.
///
/// # Errors
/// What keeps it from being seen, other than that it is not there.
pub(super) fn is_there(path: &Path) -> io::Result<bool> {
    path.try_exists()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_appears_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stop");
        let (found, told) = mpsc::channel();
        let _watching = DrainFile::watch(path.clone(), move || found.send(()).unwrap()).unwrap();
        assert!(!is_there(&path).unwrap());
        fs::write(&path, "").unwrap();
        told.recv().unwrap();
        assert!(told.recv().is_err(), "its thread has ended");
    }
}
