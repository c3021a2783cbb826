//! What a model needs of the device that it runs on, known before anything is loaded.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::{Devices, Fault};

/// What a model needs of a device: read from headers, without loading anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelNeed {
    /// Bytes of its weights on the device.
    pub weights: u64,
    /// Bytes that one row's activations take at their peak, inputs and outputs among them.
    pub activations_per_row: u64,
    /// Bytes of scratch memory, whatever the batch.
    pub workspace: u64,
    /// What it takes of the machine's own memory where it runs on the processor.
    pub host: HostNeed,
    /// The devices that its node allows, where it says so.
    #[serde(skip)]
    pub devices: Option<Devices>,
    /// The files that it is loaded from, as they were when the need was read.
    pub files: Vec<FileStamp>,
}

impl ModelNeed {
    /// Bytes on the device for batches of `n_rows`, the device's own overhead not counted.
    pub fn bytes(&self, n_rows: usize) -> u64 {
        self.weights
            .saturating_add(self.activations_per_row.saturating_mul(n_rows as u64))
            .saturating_add(self.workspace)
    }
}

/// What a model takes of memory on the processor; zeros where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostNeed {
    /// Bytes that the threads of a process share: weights, and what runs them.
    pub weights: u64,
    /// Bytes more for each thread that computes.
    pub per_thread: u64,
}

/// A file as it was: enough to notice that it was replaced or written since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes.
    pub len: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified_ns: u64,
}

impl FileStamp {
    /// The file as it is now; `None` if it cannot be asked.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let modified_ns = u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX);
        Some(FileStamp { path: path.to_owned(), len: metadata.len(), modified_ns })
    }

    /// Whether the file is still that one.
    ///
    /// # Errors
    /// If it was written, replaced or removed since.
    pub fn check(&self) -> Result<(), Fault> {
        if FileStamp::of(&self.path).as_ref() == Some(self) {
            return Ok(());
        }
        let message = format!("`{}` has changed since the run was planned", self.path.display());
        Err(Fault::transient(message).help("run the command again when the file is complete"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_or_removed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        std::fs::write(&path, "one").unwrap();
        let stamp = FileStamp::of(&path).unwrap();
        assert_eq!(stamp.check(), Ok(()));
        std::fs::write(&path, "three").unwrap();
        let fault = stamp.check().unwrap_err();
        assert!(fault.message.contains("weights"), "{fault}");
        std::fs::remove_file(&path).unwrap();
        assert!(stamp.check().is_err());
    }
}
