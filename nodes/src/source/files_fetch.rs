//! Reading one listed file, with a reject for each way in which that can fail.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bytes::Bytes;
use engine::data::{Reject, RowMut, code};
use engine::node::{Fetch, Item, Stamp};

use super::columns::BYTES;
use super::files::LabelFrom;
use super::files_walk::join_uri;
use super::listing::Locators;
use crate::store::Location;

/// Reads whole files of up to a number of bytes.
pub(super) struct ReadFile {
    pub(super) locators: Locators,
    pub(super) max_bytes: u64,
    /// Where the column `label` comes from, if there is one.
    pub(super) label: Option<LabelFrom>,
}

impl Fetch for ReadFile {
    fn fetch(&self, _index: u64, item: &Item, out: &mut RowMut<'_>) -> Result<Stamp, Reject> {
        let location = self.locators.location(item)?;
        let (bytes, stamp) = if location.is_local() {
            self.read(item)?
        } else {
            let (bytes, meta) = self.locators.stores.read(&location, self.max_bytes)?;
            (bytes, meta.stamp())
        };
        out.bytes(BYTES, bytes);
        match self.label {
            Some(LabelFrom::Parent) => out.text(BYTES + 1, &parent(&location)),
            None => {}
        }
        Ok(stamp)
    }

    fn stamp(&self, item: &Item) -> Stamp {
        self.locators.stamp(item)
    }

    /// What a store did not give after all tries is not asked for as many times again.
    fn stamp_of_rejected(&self, item: &Item, reject: &Reject) -> Stamp {
        let is_refused = matches!(reject.code, code::NOT_FOUND | code::PERMISSION | code::IO);
        if is_refused && Location::is_url(&item.uri) { Stamp::NONE } else { self.stamp(item) }
    }

    fn stamps(&self, items: &[Item]) -> Vec<Option<Stamp>> {
        self.locators.stamps(items)
    }
}

impl ReadFile {
    fn read(&self, item: &Item) -> Result<(Bytes, Stamp), Reject> {
        let path = &self.locators.base.join(&item.locator);
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

/// The name of the folder that a file is in; empty where there is none.
fn parent(location: &Location) -> String {
    match location.local_path() {
        Some(path) => {
            let folder = path.parent().and_then(Path::file_name);
            folder.map_or_else(String::new, |name| join_uri("", name))
        }
        None => location.key().rsplit('/').nth(1).unwrap_or_default().to_owned(),
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
