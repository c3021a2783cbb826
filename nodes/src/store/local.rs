//! Local paths.

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use engine::durable::disk;

use super::error::{ErrorKind, StoreError};
use super::location::Location;
use super::meta::Meta;

/// What is known of a file. Pipes, sockets and devices are refused: opening a pipe would wait for a writer.
pub(super) fn stat(path: &Path, location: &Location) -> Result<Meta, StoreError> {
    Ok(Meta::of_file(&metadata(path, location)?))
}

fn metadata(path: &Path, location: &Location) -> Result<Metadata, StoreError> {
    let metadata = fs::metadata(path).map_err(|error| StoreError::local("read", location, &error))?;
    if metadata.is_dir() {
        return Err(StoreError::new(ErrorKind::IsDirectory, format!("`{location}` is a folder")));
    }
    if !metadata.is_file() {
        let message = format!("`{location}` is no regular file but a pipe, a socket or a device");
        return Err(StoreError::new(ErrorKind::Unsupported, message));
    }
    Ok(metadata)
}

/// A whole file of up to `max_bytes`.
pub(super) fn read(path: &Path, location: &Location, max_bytes: u64) -> Result<(Bytes, Meta), StoreError> {
    let metadata = metadata(path, location)?;
    if metadata.len() > max_bytes {
        return Err(StoreError::too_large(location, metadata.len(), max_bytes));
    }
    let failed = |error| StoreError::local("read", location, &error);
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    // It may have grown since it was looked at.
    if bytes.len() as u64 > max_bytes {
        return Err(StoreError::too_large(location, bytes.len() as u64, max_bytes));
    }
    Ok((bytes.into(), Meta::of_file(&metadata)))
}

/// Some bytes of a file, which must have them.
pub(super) fn read_range(path: &Path, location: &Location, range: Range<u64>) -> Result<Bytes, StoreError> {
    let size = metadata(path, location)?.len();
    if range.end > size {
        return Err(beyond_end(location, &range, size));
    }
    let failed = |error| StoreError::local("read", location, &error);
    let mut bytes = vec![0; (range.end - range.start) as usize];
    File::open(path).and_then(|file| file.read_exact_at(&mut bytes, range.start)).map_err(failed)?;
    Ok(bytes.into())
}

pub(super) fn beyond_end(location: &Location, range: &Range<u64>, size: u64) -> StoreError {
    let message = format!("`{location}` has {size} bytes and none at {}..{}", range.start, range.end);
    StoreError::new(ErrorKind::Other, message)
}

/// A file, from byte `from` on.
pub(super) fn open(path: &Path, location: &Location, from: u64) -> Result<(File, Meta), StoreError> {
    let meta = stat(path, location)?;
    let failed = |error| StoreError::local("read", location, &error);
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    Ok((file, meta))
}

/// Writes a file that has its name only when it is complete.
pub(super) fn write(path: &Path, location: &Location, mut content: impl Read) -> Result<(), StoreError> {
    let failed = |error| StoreError::local("write", location, &error);
    let Some(name) = path.file_name() else {
        return Err(StoreError::new(ErrorKind::Config, format!("cannot write `{location}`: it is no file name")));
    };
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(".partial");
    let partial = path.with_file_name(partial);
    fs::create_dir_all(disk::folder_of(path)).map_err(failed)?;
    let mut file = File::create(&partial).map_err(failed)?;
    let written = std::io::copy(&mut content, &mut file).and_then(|_| disk::sync(&file));
    written.and_then(|()| disk::rename(&partial, path)).map_err(failed)
}

/// Takes a file away, if it is there.
pub(super) fn remove(path: &Path, location: &Location) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::local("remove", location, &error))
        }
        _ => Ok(()),
    }
}

/// The files below a folder, depth first, in the order of their paths' bytes: as object stores list. Links to folders
/// are not followed.
pub(super) struct Walk {
    /// What is still to come, the next last: each folder's entries in turn.
    open: Vec<PathBuf>,
    /// Only paths after this one, by their bytes.
    after: Option<PathBuf>,
}

impl Walk {
    /// The files whose paths begin with `prefix`: those below it if it is a folder.
    pub(super) fn new(prefix: &Path, location: &Location, after: Option<&Path>) -> Result<Self, StoreError> {
        let mut walk = Walk { open: Vec::new(), after: after.map(Path::to_owned) };
        if prefix.is_dir() {
            walk.enter(prefix, location, |_| true)?;
        } else if let (Some(folder), Some(name)) = (prefix.parent(), prefix.file_name())
            && folder.is_dir()
        {
            walk.enter(folder, location, |entry| entry.as_bytes().starts_with(name.as_bytes()))?;
        }
        Ok(walk)
    }

    fn enter(
        &mut self,
        folder: &Path,
        location: &Location,
        is_wanted: impl Fn(&std::ffi::OsStr) -> bool,
    ) -> Result<(), StoreError> {
        let failed = |error| StoreError::local("list", location, &error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if is_wanted(&entry.file_name()) {
                let mut key = entry.file_name().as_bytes().to_vec();
                if entry.file_type().map_err(failed)?.is_dir() {
                    key.push(b'/');
                }
                entries.push((key, entry.path()));
            }
        }
        entries.sort_unstable_by(|one, other| other.0.cmp(&one.0));
        self.open.extend(entries.into_iter().map(|(_, path)| path));
        Ok(())
    }

    /// The next files, up to `max`; none at the end.
    pub(super) fn next_page(&mut self, max: usize, location: &Location) -> Result<Vec<(Location, Meta)>, StoreError> {
        let mut page = Vec::new();
        while let Some(path) = self.open.pop() {
            // What went away since its folder was read is not there.
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if metadata.is_dir() {
                self.enter(&path, location, |_| true)?;
                continue;
            }
            let is_after = self.after.as_ref().is_none_or(|after| path.as_os_str() > after.as_os_str());
            let metadata = if metadata.is_symlink() { fs::metadata(&path).ok() } else { Some(metadata) };
            if let (true, Some(metadata)) = (is_after, metadata.filter(Metadata::is_file)) {
                page.push((Location::local(path), Meta::of_file(&metadata)));
                if page.len() == max {
                    break;
                }
            }
        }
        Ok(page)
    }
}
