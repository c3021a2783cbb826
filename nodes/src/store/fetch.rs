//! Reading an object or a range of it into memory. A body that breaks is gone on with where it broke.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::bucket::Bucket;
use super::failure::Failure;
use super::location::Location;
use super::meta::Head;
use super::tries::Tries;
use super::watched::seeing;

/// Memory is taken at once up to this size, and beyond it as bytes come.
const TAKEN_AT_ONCE: u64 = 64 << 20;
/// So much of a body is progress: whoever breaks it off each time sooner is not asked for ever.
const PROGRESS: usize = 1 << 20;

/// What is read.
pub(super) struct Wanted {
    /// A range of the object; all of it if there is none.
    pub(super) range: Option<Range<u64>>,
    /// What is known of the object: another version is a failure.
    pub(super) known: Option<Head>,
    /// The most bytes that are taken.
    pub(super) max_bytes: u64,
}

/// Reads what is wanted, in as many tries as it takes.
pub(super) async fn fetch(
    bucket: Arc<Bucket>,
    location: Location,
    mut wanted: Wanted,
) -> Result<(Bytes, Head), Failure> {
    let mut tries = Tries::new(&bucket);
    let mut held = Vec::new();
    let mut n_held_before = 0;
    loop {
        let permit = tries.permit().await;
        let result = seeing(fetch_more(&bucket, &location, &mut wanted, &mut held)).await;
        if held.len() >= n_held_before + PROGRESS {
            n_held_before = held.len();
            tries.progressed();
        }
        if let Some(ended) = tries.end(permit, result).await {
            ended?;
            return Ok((held.into(), wanted.known.unwrap_or_default()));
        }
        // Nothing says whether the next answer is about the same content.
        if wanted.known.as_ref().is_some_and(|known| known.etag.is_none() && known.modified.is_none()) {
            held.clear();
        }
    }
}

/// One request for what is not held yet.
async fn fetch_more(
    bucket: &Bucket,
    location: &Location,
    wanted: &mut Wanted,
    held: &mut Vec<u8>,
) -> Result<(), Failure> {
    let base = wanted.range.as_ref().map_or(0, |range| range.start);
    let from = base + held.len() as u64;
    let known_size = wanted.known.as_ref().and_then(|known| known.size);
    let range = match (&wanted.range, known_size) {
        (Some(range), _) => Some(from..range.end),
        (None, Some(size)) if !held.is_empty() => Some(from..size),
        (None, _) => None,
    };
    if range.as_ref().is_some_and(|range| range.is_empty()) {
        return Ok(());
    }
    let answer = bucket.get(location, range, wanted.known.as_ref()).await?;
    if wanted.known.as_ref().is_some_and(|known| !known.is_same(&answer.head)) {
        return Err(Failure::changed());
    }
    let size = answer.head.size;
    let end = match (&wanted.range, size) {
        (Some(range), size) => Some(size.map_or(range.end, |size| size.min(range.end))),
        (None, size) => size,
    };
    let n_bytes = end.map_or(0, |end| end.saturating_sub(base));
    if n_bytes > wanted.max_bytes {
        return Err(Failure::too_large(n_bytes, wanted.max_bytes));
    }
    wanted.known = Some(answer.head.clone());
    let mut pieces = answer.pieces(from, end, bucket.timeout)?;
    held.reserve_exact(end.map_or(0, |end| end.saturating_sub(from).min(TAKEN_AT_ONCE)) as usize);
    while let Some(piece) = pieces.next().await? {
        let n_bytes = held.len() as u64 + piece.len() as u64;
        if n_bytes > wanted.max_bytes {
            return Err(Failure::too_large(n_bytes, wanted.max_bytes));
        }
        held.extend_from_slice(&piece);
    }
    Ok(())
}
