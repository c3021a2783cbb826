//! The file that names an upload under way, and what is done about it when its process is gone.

use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::path::Path;

use engine::durable::disk;
use engine::node::Fault;
use serde::{Deserialize, Serialize};

use super::cloud;
use super::error::{ErrorKind, StoreError};
use super::location::Location;
use super::stores::Stores;
use super::upload;

/// An upload in parts that is under way.
#[derive(Serialize, Deserialize)]
pub(super) struct Record {
    /// Where to.
    to: String,
    /// The store's name for it; none if it is just being asked for.
    upload: Option<String>,
}

impl Record {
    /// An upload that is about to be asked for.
    pub(super) fn intent(to: &Location) -> Self {
        Record { to: to.to_string(), upload: None }
    }

    pub(super) fn of(to: &Location, upload: &str) -> Self {
        Record { to: to.to_string(), upload: Some(upload.to_owned()) }
    }

    /// Makes it durable.
    pub(super) fn write(&self, record: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_vec(self)
            .map_err(|error| StoreError::new(ErrorKind::Other, format!("cannot write down an upload: {error}")))?;
        let folder = disk::folder_of(record);
        fs::create_dir_all(folder).map_err(|error| StoreError::local("write", &Location::local(record), &error))?;
        disk::replace(record, &text).map_err(of_fault)
    }

    pub(super) fn remove(record: &Path) -> Result<(), StoreError> {
        disk::remove(record).map_err(of_fault)
    }
}

fn of_fault(fault: Fault) -> StoreError {
    StoreError::new(ErrorKind::Io, fault.message)
}

/// Aborts the upload that `record` names, if there is one, and takes the record away.
pub(super) fn abort(stores: &Stores, record: &Path) -> Result<(), StoreError> {
    let text = match fs::read(record) {
        Ok(text) => text,
        Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::local("read", &Location::local(record), &error)),
    };
    let bad = |what: &str| {
        let message = format!("`{}` names no upload: {what}", record.display());
        StoreError::new(ErrorKind::Config, message)
            .help("remove it, and abort unfinished uploads to the bucket by hand")
    };
    let Record { to, upload } = serde_json::from_slice(&text).map_err(|error| bad(&error.to_string()))?;
    let to = Location::parse(&to, Path::new("/"))?;
    if to.is_local() {
        return Err(bad("it is about a local path"));
    }
    let bucket = stores.object_bucket(&to)?;
    let client = bucket.cloud("write", &to)?;
    let failed = |failure: super::failure::Failure| failure.at("abort the upload of", &to);
    let key = cloud::key(&to.key()).map_err(failed)?;
    if let Some(upload) = upload {
        stores.block_on(upload::abort(bucket, client, key, upload))?.map_err(failed)?;
    }
    Record::remove(record)
}
