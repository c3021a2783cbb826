//! The steps that make something durable, each of which may fail or be the last thing that a process does.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::node::Fault;

/// A step, for tests that stop at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bytes of an output go to the system.
    Write,
    /// A file is made durable.
    Sync,
    /// A file gets its final name.
    Rename,
    /// A line goes to a log.
    Append,
    /// A file is cut back.
    Cut,
}

/// Whether the step is about to be taken, or has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It has not begun.
    Before,
    /// It is done.
    After,
}

/// Writes all of `bytes`.
///
/// # Errors
/// As [`Write::write_all`].
pub fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    around(Step::Write, || file.write_all(bytes))
}

/// Writes a line to a log, in one piece.
///
/// # Errors
/// As [`Write::write_all`].
pub fn append(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    around(Step::Append, || file.write_all(bytes))
}

/// Makes a file's content durable. After an error nobody knows what is on the disk: the caller ends the run.
///
/// # Errors
/// As [`File::sync_data`].
pub fn sync(file: &File) -> io::Result<()> {
    around(Step::Sync, || file.sync_data())
}

/// Makes the names in the folder of `path` durable.
///
/// # Errors
/// As [`File::sync_all`].
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    around(Step::Sync, || File::open(folder_of(path)).and_then(|folder| folder.sync_all()))
}

/// Gives a file another name, in the place of one that has it.
///
/// # Errors
/// As [`fs::rename`].
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    around(Step::Rename, || fs::rename(from, to))
}

/// Puts a small file with the content `text` at `path`, in the place of one that is there, whole or not at all.
///
/// # Errors
/// A full disk and the like.
pub fn replace(path: &Path, text: &[u8]) -> Result<(), Fault> {
    let folder = folder_of(path);
    fs::create_dir_all(folder).map_err(|error| Fault::io("create the folder", folder, &error))?;
    let partial = path.with_extension("partial");
    let replaced = File::create(&partial).and_then(|file| {
        write_all(&file, text)?;
        sync(&file)?;
        rename(&partial, path)?;
        sync_folder_of(path)
    });
    replaced.map_err(|error| Fault::io("write", path, &error))
}

/// Removes a file, if there is one.
///
/// # Errors
/// If it may not be removed.
pub fn remove(path: &Path) -> Result<(), Fault> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Fault::io("remove", path, &error)),
        _ => Ok(()),
    }
}

/// Cuts a file back to its first `n_bytes` bytes.
///
/// # Errors
/// As [`File::set_len`].
pub fn cut(file: &File, n_bytes: u64) -> io::Result<()> {
    around(Step::Cut, || file.set_len(n_bytes))
}

/// The folder of a path; the current folder has no name, and cannot be opened by none.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn around(step: Step, run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    point(step, When::Before)?;
    run()?;
    point(step, When::After)
}

#[cfg(not(feature = "testing"))]
fn point(_step: Step, _when: When) -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "testing")]
use super::point::point;
