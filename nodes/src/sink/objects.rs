//! Outputs that are objects of a store.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use engine::node::{Fault, Objects, SpecError, is_url};
use serde::Deserialize;

use crate::store::{ErrorKind, Location, StoreError, StoreOptions, Stores};

/// The ending of a file that names an upload under way.
const RECORD: &str = "record";

/// How the store of an output is reached, and the connections to it: one set of them for a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "StoreOptions")]
pub(crate) struct SinkStore {
    options: StoreOptions,
    stores: Arc<OnceLock<Stores>>,
}

impl From<StoreOptions> for SinkStore {
    fn from(options: StoreOptions) -> Self {
        SinkStore { options, stores: Arc::default() }
    }
}

/// Whether the option `path` of a sink is an object of a store.
pub(super) fn is_object(path: &str) -> bool {
    is_url(Path::new(path))
}

impl SinkStore {
    /// The options of a sink that say how its objects are reached and not where they are, which `endpoint` does.
    pub(crate) const INCIDENTAL: &[&str] =
        &["store.region", "store.anonymous", "store.max_in_flight", "store.timeout", "store.attempts"];

    /// Finds what makes no sense in the option `path` of a sink, and in `store`.
    pub(super) fn check(&self, path: &str) -> Result<(), SpecError> {
        if !is_object(path) {
            return Ok(());
        }
        let location = Location::parse(path, Path::new("/")).map_err(|error| told(&error).at(&["path"]))?;
        if location.is_local() || !location.can_be_listed() {
            let error = SpecError::new("outputs go to files and to object stores").at(&["path"]);
            return Err(error.label("write a path, or a URL that begins with `s3://`, `gs://` or `az://`"));
        }
        if location.name().is_empty() {
            return Err(SpecError::new("the URL names no object").at(&["path"]).label("add a name"));
        }
        self.options.check().map_err(|error| told(&error).at(&["store"]))
    }

    /// What gives the outputs of a sink to `path` their place, if they are objects.
    pub(super) fn objects(&self, path: &str) -> Option<Arc<dyn Objects>> {
        is_object(path).then(|| Arc::new(StoreObjects(self.stores())) as Arc<dyn Objects>)
    }

    /// The connections.
    pub(super) fn stores(&self) -> Stores {
        self.stores.get_or_init(|| Stores::new(self.options.clone())).clone()
    }
}

fn told(error: &StoreError) -> SpecError {
    let told = SpecError::new(error.to_string());
    match error.what_to_do() {
        Some(help) => told.label(help),
        None => told,
    }
}

/// Where a URL leads, by the store's own rules.
pub(super) fn location(url: &str) -> Result<Location, Fault> {
    Ok(Location::parse(url, Path::new("/"))?)
}

struct StoreObjects(Stores);

impl Objects for StoreObjects {
    fn publish(&self, local: &Path, url: &str) -> Result<(), Fault> {
        let record = record_of(local);
        self.0.abort_leftover(&record)?;
        Ok(self.0.upload(local, &location(url)?, &record)?)
    }

    fn abandon(&self, folder: &Path) -> Result<(), Fault> {
        let failed = |error| Fault::io("read the folder", folder, &error);
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == RECORD) {
                self.0.abort_leftover(&path)?;
            }
        }
        Ok(())
    }

    fn is_there(&self, url: &str, bytes: u64) -> Result<bool, Fault> {
        match self.0.stat(&location(url)?) {
            Ok(meta) => Ok(meta.size == bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The file that names the upload of `local` while it is under way.
fn record_of(local: &Path) -> PathBuf {
    let mut name = OsString::from(local);
    name.push(".");
    name.push(RECORD);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_files_or_objects_with_names() {
        let check = |path: &str| SinkStore::default().check(path).map_err(|error| error.message);
        for good in ["out/x.jsonl", "-", "s3://bucket/x.jsonl", "gs://bucket/a/b.csv", "a:b/x"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["http://host/x", "file:///x", "s3://bucket", "s3://bucket/a/", "ftp://host/x"] {
            assert!(check(bad).is_err(), "{bad}");
        }
        let store: SinkStore = serde_yaml::from_str("{endpoint: 'ftp://x'}").unwrap();
        assert_eq!(store.check("s3://b/k").unwrap_err().option, ["store"]);
        assert_eq!(store.check("out/k"), Ok(()), "a file needs no store");
    }
}
