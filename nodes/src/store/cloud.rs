//! What is asked of the clouds' stores about single objects.

use std::ops::Range;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStoreExt};

use super::body::Answer;
use super::bucket::Bucket;
use super::cloud_client::Client;
use super::error::ErrorKind;
use super::failure::Failure;
use super::location::Location;
use super::meta::Head;
use super::redacted::redacted;
use super::tries::Tries;
use super::watched::seeing;

/// The key as the clients take it.
pub(super) fn key(text: &str) -> Result<Key, Failure> {
    Key::parse(text).map_err(|error| Failure::new(ErrorKind::Unsupported, redacted(&error.to_string())))
}

pub(super) fn head_of(meta: &ObjectMeta) -> Head {
    let modified = (meta.last_modified.timestamp(), i64::from(meta.last_modified.timestamp_subsec_nanos()));
    Head { size: Some(meta.size), etag: meta.e_tag.clone(), modified: Some(modified) }
}

/// Asks what is known of an object.
pub(super) async fn head(client: &dyn Client, text: &str) -> Result<Head, Failure> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    let result = client.get_opts(&key(text)?, options).await.map_err(|error| Failure::of_store(&error))?;
    Ok(head_of(&result.meta))
}

/// Asks for the bytes of an object, of the version `known` if there is one.
pub(super) async fn get(
    client: &dyn Client,
    text: &str,
    range: Option<Range<u64>>,
    known: Option<&Head>,
) -> Result<Answer, Failure> {
    let options = GetOptions {
        range: range.map(GetRange::Bounded),
        if_match: known.and_then(|known| known.etag.clone()),
        ..GetOptions::default()
    };
    let result = client.get_opts(&key(text)?, options).await.map_err(|error| Failure::of_store(&error))?;
    let (head, start) = (head_of(&result.meta), result.range.start);
    let body = result.into_stream().map_err(|error| Failure::of_store(&error)).boxed();
    Ok(Answer { head, start, body })
}

/// Takes an object away, if it is there.
pub(super) async fn remove(bucket: Arc<Bucket>, client: Arc<dyn Client>, location: Location) -> Result<(), Failure> {
    let key = key(&location.key())?;
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let request = async { client.delete(&key).await.map_err(|error| Failure::of_store(&error)) };
        let result = match seeing(bucket.timely(0, request)).await {
            Err(failure) if failure.kind == ErrorKind::NotFound => Ok(()),
            result => result,
        };
        if let Some(ended) = tries.end(permit, result).await {
            return ended;
        }
    }
}
