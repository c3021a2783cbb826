//! `--report`: the run's figures as a file that is complete or not there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use engine::runtime::Report;

use crate::failure::{Failure, reason};

/// A report to be written. It is opened before the run, so that a wrong path is told before hours of work.
pub(super) struct ReportFile {
    path: PathBuf,
    /// The name until it is complete; none for pipes and devices, which are written to as they are.
    partial: Option<PathBuf>,
    file: File,
}

impl ReportFile {
    /// Opens a temporary file beside `path`, and makes the folder that it is in.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::usage(format!("cannot write the report `{}`: {}", path.display(), reason(&error)))
        };
        let no_name = || Failure::usage(format!("the report `{}` is a folder: add a file name", path.display()));
        if path.is_dir() {
            return Err(no_name());
        }
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(ReportFile { path: path.to_owned(), partial: None, file });
        }
        // A link to a file keeps being a link.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(name) = path.file_name() else { return Err(no_name()) };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut partial_name = OsString::from(".");
        partial_name.push(name);
        partial_name.push(".partial");
        let partial = path.with_file_name(partial_name);
        let file = File::create(&partial).map_err(failed)?;
        Ok(ReportFile { path: path.to_owned(), partial: Some(partial), file })
    }

    /// Writes it, and gives it its name.
    pub(super) fn finish(mut self, report: &Report) -> Result<(), Failure> {
        self.write(report).map_err(|error| {
            Failure::fault(format!("cannot write the report `{}`: {}", self.path.display(), reason(&error)))
        })
    }

    fn write(&mut self, report: &Report) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(report)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        let Some(partial) = &self.partial else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(partial, &self.path)?;
        self.partial = None;
        Ok(())
    }
}

/// A report that was not finished leaves nothing behind.
impl Drop for ReportFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Nothing depends on it: the next run overwrites what stays.
            let _ = fs::remove_file(partial);
        }
    }
}
