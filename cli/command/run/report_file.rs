//! `--report`: the run's figures as a file that is complete or not there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use engine::runtime::Report;

use crate::failure::{Failure, reason};

/// A report to be written. It is opened before the run, so that a wrong path is told before hours of work.
pub(super) struct ReportFile {
    path: PathBuf,
    partial: PathBuf,
    file: Option<File>,
}

impl ReportFile {
    /// Opens a temporary file beside `path`, and makes the folder that it is in.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::usage(format!("cannot write the report `{}`: {}", path.display(), reason(&error)))
        };
        let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(Failure::usage(format!("the report `{}` is a folder: add a file name", path.display())));
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut partial_name = std::ffi::OsString::from(".");
        partial_name.push(name);
        partial_name.push(".partial");
        let partial = path.with_file_name(partial_name);
        let file = File::create(&partial).map_err(failed)?;
        Ok(ReportFile { path: path.to_owned(), partial, file: Some(file) })
    }

    /// Writes it, and gives it its name.
    pub(super) fn finish(mut self, report: &Report) -> Result<(), Failure> {
        let write = |mut file: File| -> io::Result<()> {
            serde_json::to_writer_pretty(&mut file, report)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&self.partial, &self.path)
        };
        match self.file.take().map(write) {
            Some(Err(error)) => {
                // It goes with the run that it is of; that it stays is no further harm.
                let _ = fs::remove_file(&self.partial);
                Err(Failure::fault(format!("cannot write the report `{}`: {}", self.path.display(), reason(&error))))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            // As above.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
