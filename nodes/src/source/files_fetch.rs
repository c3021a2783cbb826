//! Reading one listed file, with a reject for each way in which that can fail.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use engine::data::{Reject, RowMut, code};
use engine::node::{Fetch, Item, Stamp};

use super::columns::BYTES;

/// Reads whole files of up to a number of bytes.
pub(super) struct ReadFile {
    /// The folder that locators start from.
    pub(super) base: PathBuf,
    pub(super) max_bytes: u64,
}

impl Fetch for ReadFile {
    fn fetch(&self, _index: u64, item: &Item, out: &mut RowMut<'_>) -> Result<Stamp, Reject> {
        let (bytes, stamp) = self.read(item)?;
        out.bytes(BYTES, bytes);
        Ok(stamp)
    }

    fn stamp(&self, item: &Item) -> Stamp {
        fs::metadata(self.base.join(&item.locator)).map_or(Stamp::NONE, |metadata| stamp(&metadata))
    }
}

impl ReadFile {
    fn read(&self, item: &Item) -> Result<(Bytes, Stamp), Reject> {
        let path = &self.base.join(&item.locator);
        let failed = |error: io::Error| reject(&item.uri, path, &error);
        // Looked at before it is opened: opening a pipe would wait for a writer.
        let metadata = fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() && !metadata.is_dir() {
            let message = format!("`{}` is no regular file but a pipe, a socket or a device", item.uri);
            return Err(Reject::new(code::UNSUPPORTED, message));
        }
        let file = File::open(path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(Reject::new(code::IS_DIRECTORY, format!("`{}` is a folder", item.uri)));
        }
        let too_large = |n_bytes: u64| {
            let message = format!("`{}` has {n_bytes} bytes, more than `max_file_bytes` {}", item.uri, self.max_bytes);
            Reject::new(code::TOO_LARGE, message)
        };
        if metadata.len() > self.max_bytes {
            return Err(too_large(metadata.len()));
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        file.take(self.max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        // It may have grown since it was looked at.
        if bytes.len() as u64 > self.max_bytes {
            return Err(too_large(bytes.len() as u64));
        }
        Ok((bytes.into(), stamp(&metadata)))
    }
}

/// Of a file's length and of when it was written last: what changes when its content does.
fn stamp(metadata: &Metadata) -> Stamp {
    let text = format!("{} {} {}", metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    // None is for what is not there.
    Stamp(crc32fast::hash(text.as_bytes()).max(1))
}

fn reject(uri: &str, path: &Path, error: &io::Error) -> Reject {
    match error.kind() {
        ErrorKind::NotFound if path.is_symlink() => {
            Reject::new(code::NOT_FOUND, format!("`{uri}` is a link to something that does not exist"))
        }
        ErrorKind::NotFound => Reject::new(code::NOT_FOUND, format!("`{uri}` does not exist any more")),
        ErrorKind::PermissionDenied => Reject::new(code::PERMISSION, format!("`{uri}` may not be read")),
        _ => Reject::new(code::IO, format!("cannot read `{uri}`: {error}")),
    }
}
