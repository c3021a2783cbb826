//! A file mapped into memory, read-only: the one place in this crate where mapping happens.
//!
//! Weights are mapped and not read, so that a header costs a page and several devices share one copy. The file must not
//! be changed while it is mapped: cutting it short then would end the process with a bus error, as with every program
//! that maps its weights.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use super::error::{WeightsError, WeightsFault};

/// The bytes of one weight file.
#[derive(Debug)]
pub(crate) struct Mapped {
    path: PathBuf,
    bytes: Mmap,
}

impl Mapped {
    /// Maps a regular file of at least one byte.
    pub fn open(path: &Path) -> Result<Self, WeightsError> {
        let fail = |fault| WeightsError::new(path, fault);
        // Asked of the path before opening: opening a named pipe would wait for its writer.
        let metadata = path.metadata().map_err(|error| fail(error.into()))?;
        if !metadata.is_file() {
            return Err(fail(WeightsFault::NotAFile));
        }
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        if file.metadata().map_err(|error| fail(error.into()))?.len() == 0 {
            return Err(fail(WeightsFault::Empty));
        }
        // SAFETY: the mapping is read-only and private to this value, and the slices given out borrow from it. What the
        // compiler cannot check is that nobody changes the file meanwhile; the module's documentation asks for that. No
        // check made on the bytes is relied upon for memory safety: every later access is bounds-checked again.
        let bytes = unsafe { Mmap::map(&file) }.map_err(|error| fail(error.into()))?;
        Ok(Self { path: path.to_path_buf(), bytes })
    }

    /// Says that this part of the bytes has been read, so that its pages need not stay in this process.
    pub fn release(&self, part: Range<usize>) {
        #[cfg(unix)]
        if part.start <= part.end && part.end <= self.bytes.len() {
            // SAFETY: the mapping is of a file and is never written through, so pages that are let go come back from the file, with the
            // same bytes, when they are looked at again. A refusal costs memory and nothing else.
            let _ = unsafe { self.bytes.unchecked_advise_range(UncheckedAdvice::DontNeed, part.start, part.len()) };
        }
        #[cfg(not(unix))]
        let _ = part;
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
