//! The file that names an upload under way, and what is done about it when its process is gone.

use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::path::Path;
use std::sync::Arc;

use engine::durable::disk;
use engine::node::Fault;
use serde::{Deserialize, Serialize};

use super::bucket::Bucket;
use super::cloud;
use super::error::{ErrorKind, StoreError};
use super::failure::Failure;
use super::location::Location;
use super::stores::Stores;
use super::tries::Tries;
use super::upload;
use super::watched::seeing;

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
    let failed = |failure: Failure| failure.at("abort the upload of", &to);
    let key = cloud::key(&to.key()).map_err(failed)?;
    let uploads = match upload {
        Some(upload) => vec![upload],
        // Whoever asked for it did not live to know its name.
        None => stores.block_on(uploads_of(bucket.clone(), to.key().into_owned()))?.map_err(failed)?,
    };
    for upload in uploads {
        let abort = upload::abort(bucket.clone(), client.clone(), key.clone(), upload);
        stores.block_on(abort)?.map_err(failed)?;
    }
    Record::remove(record)
}

/// The names of the uploads that are under way for a key; none where the store ends them by itself.
async fn uploads_of(bucket: Arc<Bucket>, key: String) -> Result<Vec<String>, Failure> {
    let Some(uploads) = bucket.uploads() else { return Ok(Vec::new()) };
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let result = seeing(bucket.timely(0, uploads.of_key(&key))).await;
        if let Some(ended) = tries.end(permit, result).await {
            return ended;
        }
    }
}
