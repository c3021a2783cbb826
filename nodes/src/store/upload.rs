//! Writing objects: in one request, or in parts that are completed or aborted.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::multipart::PartId;
use object_store::path::Path as Key;
use object_store::{MultipartId, PutOptions, PutPayload};
use tokio::task::JoinHandle;

use super::bucket::Bucket;
use super::cloud;
use super::cloud_client::Client;
use super::error::{ErrorKind, StoreError};
use super::failure::Failure;
use super::leftover::Record;
use super::location::Location;
use super::stores::Stores;
use super::tries::Tries;
use super::watched::seeing;

/// Up to this size an object goes in one request.
const MAX_SINGLE_BYTES: u64 = 16 << 20;
/// Bytes of a part; more if there would be too many of them. The clouds want 5 MiB and more.
const PART_BYTES: u64 = 8 << 20;
/// The clouds allow 10,000 and more.
const MAX_PARTS: u64 = 10_000;
/// Parts in flight of one upload, each held in memory.
const PARTS_IN_FLIGHT: usize = 4;

/// Writes `content` in one request.
pub(super) async fn put(
    bucket: Arc<Bucket>,
    client: Arc<dyn Client>,
    to: Location,
    content: Bytes,
) -> Result<(), Failure> {
    let key = cloud::key(&to.key())?;
    let n_bytes = content.len() as u64;
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let request = async {
            let put = client.put_opts(&key, PutPayload::from(content.clone()), PutOptions::default()).await;
            put.map(drop).map_err(|error| Failure::of_store(&error))
        };
        let result = seeing(bucket.timely(n_bytes, request)).await;
        if let Some(ended) = tries.end(permit, result).await {
            return ended;
        }
    }
}

/// Writes a local file; in parts if it is large.
pub(super) fn upload(
    stores: &Stores,
    bucket: Arc<Bucket>,
    client: Arc<dyn Client>,
    local: &Path,
    to: &Location,
    record: &Path,
) -> Result<(), StoreError> {
    let from = Location::local(local);
    let failed = |error| StoreError::local("read", &from, &error);
    let file = File::open(local).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size <= MAX_SINGLE_BYTES {
        let content = read_part(&file, &from, 0, size)?;
        let put = stores.block_on(put(bucket, client, to.clone(), content))?;
        return put.map_err(|failure| failure.at("write", to));
    }
    let key = cloud::key(&to.key()).map_err(|failure| failure.at("write", to))?;
    Record::intent(to).write(record)?;
    let created = stores.block_on(create(bucket.clone(), client.clone(), key.clone()))?;
    let id = match created {
        Ok(id) => id,
        Err(failure) => {
            // Whether there is an upload now is not known if no answer came: the record stays for that.
            if !failure.kind.is_transient() {
                Record::remove(record)?;
            }
            return Err(failure.at("write", to));
        }
    };
    let upload = Upload { stores, bucket, client, key, id, to };
    let result = Record::of(to, &upload.id).write(record).and_then(|()| upload.send(&file, &from, size));
    if result.is_err() && upload.abort().is_err() {
        // The record stays for the next run to abort it.
        return result;
    }
    Record::remove(record)?;
    result
}

/// An upload in parts under way.
struct Upload<'a> {
    stores: &'a Stores,
    bucket: Arc<Bucket>,
    client: Arc<dyn Client>,
    key: Key,
    id: MultipartId,
    to: &'a Location,
}

type PartUnderWay = JoinHandle<Result<PartId, Failure>>;

impl Upload<'_> {
    fn send(&self, file: &File, from: &Location, size: u64) -> Result<(), StoreError> {
        let mut under_way = VecDeque::new();
        let sent = self.send_parts(file, from, size, &mut under_way);
        for part in &under_way {
            part.abort();
        }
        // A part that arrives after the upload was aborted would stay.
        for part in under_way {
            let _ = self.stores.block_on(part)?;
        }
        let parts = sent?;
        let n_parts = parts.len();
        let completed = complete(self.bucket.clone(), self.client.clone(), self.key.clone(), self.id.clone(), parts);
        match self.stores.block_on(completed)? {
            Ok(()) => Ok(()),
            // It was completed and the answer got lost: there is no such upload any more, but the object.
            Err(failure) if failure.kind == ErrorKind::NotFound && self.is_there(size, n_parts) => Ok(()),
            Err(failure) => Err(failure.at("write", self.to)),
        }
    }

    fn send_parts(
        &self,
        file: &File,
        from: &Location,
        size: u64,
        under_way: &mut VecDeque<PartUnderWay>,
    ) -> Result<Vec<PartId>, StoreError> {
        let part_bytes = PART_BYTES.max(size.div_ceil(MAX_PARTS));
        let mut parts = Vec::new();
        for (part_idx, start) in (0..size).step_by(part_bytes as usize).enumerate() {
            if under_way.len() == PARTS_IN_FLIGHT {
                parts.extend(self.first_of(under_way)?);
            }
            let content = read_part(file, from, start, part_bytes.min(size - start))?;
            let (bucket, client) = (self.bucket.clone(), self.client.clone());
            let part = put_part(bucket, client, self.key.clone(), self.id.clone(), part_idx, content);
            under_way.push_back(self.stores.spawn(part)?);
        }
        while let Some(part) = self.first_of(under_way)? {
            parts.push(part);
        }
        Ok(parts)
    }

    /// Waits for the first of the parts under way.
    fn first_of(&self, under_way: &mut VecDeque<PartUnderWay>) -> Result<Option<PartId>, StoreError> {
        let Some(part) = under_way.pop_front() else { return Ok(None) };
        match self.stores.block_on(part)? {
            Ok(Ok(part)) => Ok(Some(part)),
            Ok(Err(failure)) => Err(failure.at("write", self.to)),
            Err(_) => Err(StoreError::new(ErrorKind::Other, format!("writing `{}` panicked", self.to))),
        }
    }

    fn is_there(&self, size: u64, n_parts: usize) -> bool {
        let meta = self.stores.stat(self.to);
        // Of an object in parts, the tag ends in their number.
        meta.is_ok_and(|meta| {
            let etag = meta.etag.unwrap_or_default();
            meta.size == size && (!etag.contains('-') || etag.trim_matches('"').ends_with(&format!("-{n_parts}")))
        })
    }

    fn abort(&self) -> Result<(), StoreError> {
        let aborted = abort(self.bucket.clone(), self.client.clone(), self.key.clone(), self.id.clone());
        self.stores.block_on(aborted)?.map_err(|failure| failure.at("abort the upload of", self.to))
    }
}

fn read_part(file: &File, from: &Location, start: u64, n_bytes: u64) -> Result<Bytes, StoreError> {
    let mut content = vec![0; n_bytes as usize];
    file.read_exact_at(&mut content, start).map_err(|error| StoreError::local("read", from, &error))?;
    Ok(content.into())
}

async fn create(bucket: Arc<Bucket>, client: Arc<dyn Client>, key: Key) -> Result<MultipartId, Failure> {
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let request = async { client.create_multipart(&key).await.map_err(|error| Failure::of_store(&error)) };
        let result = seeing(bucket.timely(0, request)).await;
        if let Some(ended) = tries.end(permit, result).await {
            return ended;
        }
    }
}

async fn put_part(
    bucket: Arc<Bucket>,
    client: Arc<dyn Client>,
    key: Key,
    id: MultipartId,
    part_idx: usize,
    content: Bytes,
) -> Result<PartId, Failure> {
    let n_bytes = content.len() as u64;
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let request = async {
            let put = client.put_part(&key, &id, part_idx, PutPayload::from(content.clone())).await;
            put.map_err(|error| Failure::of_store(&error))
        };
        let result = seeing(bucket.timely(n_bytes, request)).await;
        if let Some(ended) = tries.end(permit, result).await {
            return ended;
        }
    }
}

async fn complete(
    bucket: Arc<Bucket>,
    client: Arc<dyn Client>,
    key: Key,
    id: MultipartId,
    parts: Vec<PartId>,
) -> Result<(), Failure> {
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let request = async {
            let completed = client.complete_multipart(&key, &id, parts.clone()).await;
            completed.map(drop).map_err(|error| Failure::of_store(&error))
        };
        // The clouds take their time to put many parts together.
        let result = seeing(bucket.timely(PART_BYTES * parts.len() as u64, request)).await;
        if let Some(ended) = tries.end(permit, result).await {
            return ended;
        }
    }
}

/// Aborts an upload; one that is not there is aborted.
pub(super) async fn abort(
    bucket: Arc<Bucket>,
    client: Arc<dyn Client>,
    key: Key,
    id: MultipartId,
) -> Result<(), Failure> {
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let request = async { client.abort_multipart(&key, &id).await.map_err(|error| Failure::of_store(&error)) };
        let result = match seeing(bucket.timely(0, request)).await {
            Err(failure) if failure.kind == ErrorKind::NotFound => Ok(()),
            result => result,
        };
        if let Some(ended) = tries.end(permit, result).await {
            return ended;
        }
    }
}
