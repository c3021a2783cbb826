//! `--report` and `--trace`: files that are complete when they have their name.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use engine::durable::disk::folder_of;
use engine::node::Fault;

use crate::failure::{Failure, reason};
use crate::pipeline::from_here;

/// A file to be written. It is opened before the run, so that a wrong path is told before hours of work.
pub(super) struct OutputFile {
    /// What it is: `report`, `trace`.
    what: &'static str,
    path: PathBuf,
    /// The name until it is complete; none for pipes and devices, which are written to as they are.
    partial: Option<PathBuf>,
    file: File,
}

impl OutputFile {
    /// Opens a temporary file beside `path`, and makes the folder that it is in.
    pub(super) fn create(what: &'static str, path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::usage(format!("cannot write the {what} `{}`: {}", path.display(), reason(&error)))
        };
        let no_name = || Failure::usage(format!("the {what} `{}` is a folder: add a file name", path.display()));
        if path.is_dir() {
            return Err(no_name());
        }
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(OutputFile { what, path: path.to_owned(), partial: None, file });
        }
        // A link to a file keeps being a link.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(name) = path.file_name() else { return Err(no_name()) };
        fs::create_dir_all(folder_of(path)).map_err(failed)?;
        // One name for one file, however it was written.
        let folder = fs::canonicalize(folder_of(path)).map_err(failed)?;
        let mut partial_name = OsString::from(".");
        partial_name.push(name);
        partial_name.push(".partial");
        let partial = folder.join(partial_name);
        let file = File::create(&partial).map_err(failed)?;
        Ok(OutputFile { what, path: folder.join(name), partial: Some(partial), file })
    }

    /// Another way to write to it, as long as it is not complete.
    pub(super) fn writer(&self) -> Result<File, Fault> {
        self.file.try_clone().map_err(|error| self.fault(&error))
    }

    /// Writes all of it, and gives it its name.
    pub(super) fn save(mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.file.write_all(bytes).map_err(|error| self.fault(&error))?;
        self.publish().map(drop)
    }

    /// Gives it its name, and says what that is from here.
    pub(super) fn publish(mut self) -> Result<PathBuf, Fault> {
        if let Some(partial) = &self.partial {
            let done = self.file.sync_all().and_then(|()| fs::rename(partial, &self.path));
            done.map_err(|error| self.fault(&error))?;
            self.partial = None;
        }
        Ok(from_here(&self.path))
    }

    /// Leaves what there is under its temporary name, and says where that is, if it has one.
    pub(super) fn leave(mut self) -> Option<PathBuf> {
        self.partial.take().map(|partial| from_here(&partial))
    }

    /// That it cannot be written.
    pub(super) fn fault(&self, error: &io::Error) -> Fault {
        let path = from_here(&self.path);
        Fault::transient(format!("cannot write the {} `{}`: {}", self.what, path.display(), reason(error)))
    }

    /// Whether both are one file in the end.
    pub(super) fn is_also(&self, other: &Self) -> bool {
        self.partial.is_some() && self.partial == other.partial
    }
}

/// A file that was not completed leaves nothing behind.
impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Nothing depends on it: the next run overwrites what stays.
            let _ = fs::remove_file(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_when_it_is_complete_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/t.json");
        let file = OutputFile::create("trace", &path).unwrap();
        file.writer().unwrap().write_all(b"[").unwrap();
        assert!(!path.exists());
        file.publish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"[");
        drop(OutputFile::create("trace", &path).unwrap());
        assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
    }

    #[test]
    fn one_name_written_in_two_ways_is_one_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("b")).unwrap();
        let create = |name: &str| OutputFile::create("report", &folder.path().join(name)).unwrap();
        assert!(create("a").is_also(&create("b")));
        assert!(!create("a").is_also(&create("c")));
        assert!(create("new/d").is_also(&create("new/./d")));
    }
}
