//! Reading an object from front to back without holding it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::bucket::Bucket;
use super::error::{ErrorKind, StoreError};
use super::failure::Failure;
use super::fetch::{Wanted, fetch};
use super::location::Location;
use super::meta::{Head, Meta};
use super::stores::Stores;
use super::tries::Tries;
use super::watched::seeing;

/// Bytes of one request.
const PART_BYTES: u64 = 4 << 20;
/// Requests that are under way ahead of the reader: with the part that is being read, 20 MiB are held.
const PARTS_AHEAD: usize = 4;
/// Pieces of a body that are held where a server knows no ranges.
const PIECES_AHEAD: usize = 32;

/// Reads an object from front to back: ahead of its user, by several requests at once, each sent again if it fails. An
/// object that is replaced meanwhile is an error of kind `Changed`. [`StoreError::of_io`] gets errors back out.
pub struct Reader {
    location: Location,
    meta: Option<Meta>,
    bytes: Bytes,
    source: Source,
}

enum Source {
    File(File),
    Parts(Parts),
    Stream(Stream),
    Failed(StoreError),
}

struct Parts {
    stores: Stores,
    bucket: Arc<Bucket>,
    known: Head,
    next: u64,
    end: u64,
    under_way: VecDeque<JoinHandle<Result<(Bytes, Head), Failure>>>,
}

struct Stream {
    stores: Stores,
    pieces: mpsc::Receiver<Result<Bytes, Failure>>,
    task: JoinHandle<()>,
}

impl Reader {
    pub(super) fn of_file(location: Location, file: File, meta: Meta) -> Self {
        Reader { location, meta: Some(meta), bytes: Bytes::new(), source: Source::File(file) }
    }

    /// By requests for one range after another, of the object that `meta` is about.
    pub(super) fn of_parts(stores: Stores, bucket: Arc<Bucket>, location: Location, meta: Meta, from: u64) -> Self {
        let (next, end) = (from.min(meta.size), meta.size);
        let parts = Parts { stores, bucket, known: meta.clone().into(), next, end, under_way: VecDeque::new() };
        Reader { location, meta: Some(meta), bytes: Bytes::new(), source: Source::Parts(parts) }
    }

    /// By one request for everything, from a server that knows no ranges.
    pub(super) fn of_stream(
        stores: Stores,
        bucket: Arc<Bucket>,
        location: Location,
        head: Head,
        from: u64,
    ) -> Result<Self, StoreError> {
        let meta = head.size.map(|size| head.clone().with_size(size));
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
        let task = stores.spawn(stream(bucket, location.clone(), head, from, sender))?;
        let source = Source::Stream(Stream { stores, pieces, task });
        Ok(Reader { location, meta, bytes: Bytes::new(), source })
    }

    /// What is known of the object; nothing if a web server does not say how large it is.
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// The next bytes; none at the end.
    fn next_bytes(&mut self) -> Result<Bytes, StoreError> {
        match &mut self.source {
            Source::Parts(parts) => parts.next_bytes(&self.location),
            Source::Stream(stream) => match stream.stores.block_on(stream.pieces.recv())? {
                Some(piece) => piece.map_err(|failure| failure.at("read", &self.location)),
                None => Ok(Bytes::new()),
            },
            Source::Failed(error) => Err(error.clone()),
            Source::File(_) => Ok(Bytes::new()),
        }
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Source::File(file) = &mut self.source {
            return file.read(buffer);
        }
        if self.bytes.is_empty() && !buffer.is_empty() {
            match self.next_bytes() {
                Ok(bytes) => self.bytes = bytes,
                Err(error) => {
                    self.source = Source::Failed(error.clone());
                    return Err(error.into());
                }
            }
        }
        let n_bytes = self.bytes.len().min(buffer.len());
        self.bytes.copy_to_slice(&mut buffer[..n_bytes]);
        Ok(n_bytes)
    }
}

impl Parts {
    fn next_bytes(&mut self, location: &Location) -> Result<Bytes, StoreError> {
        while self.next < self.end && self.under_way.len() < PARTS_AHEAD {
            let range = self.next..self.end.min(self.next + PART_BYTES);
            self.next = range.end;
            let wanted = Wanted { max_bytes: PART_BYTES, range: Some(range), known: Some(self.known.clone()) };
            self.under_way.push_back(self.stores.spawn(fetch(self.bucket.clone(), location.clone(), wanted))?);
        }
        let Some(part) = self.under_way.pop_front() else { return Ok(Bytes::new()) };
        match self.stores.block_on(part)? {
            Ok(Ok((bytes, _))) => Ok(bytes),
            Ok(Err(failure)) => Err(failure.at("read", location)),
            Err(_) => Err(StoreError::new(ErrorKind::Other, format!("reading `{location}` panicked"))),
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for part in &self.under_way {
            part.abort();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends the pieces of the body from `from` on; where it breaks it is asked for again and passed over up to there.
async fn stream(
    bucket: Arc<Bucket>,
    location: Location,
    known: Head,
    mut from: u64,
    sender: mpsc::Sender<Result<Bytes, Failure>>,
) {
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let n_before = from;
        let result = seeing(send_pieces(&bucket, &location, &known, &mut from, &sender)).await;
        if from >= n_before + PART_BYTES {
            tries.progressed();
        }
        match tries.end(permit, result).await {
            Some(Ok(())) => return,
            Some(Err(failure)) => {
                // The reader may be gone.
                let _ = sender.send(Err(failure)).await;
                return;
            }
            None => {}
        }
    }
}

async fn send_pieces(
    bucket: &Bucket,
    location: &Location,
    known: &Head,
    from: &mut u64,
    sender: &mpsc::Sender<Result<Bytes, Failure>>,
) -> Result<(), Failure> {
    let answer = bucket.get(location, None, Some(known)).await?;
    if !known.is_same(&answer.head) {
        return Err(Failure::changed());
    }
    let end = answer.head.size;
    if end.is_some_and(|end| *from >= end) {
        return Ok(());
    }
    let mut pieces = answer.pieces(*from, end, bucket.timeout)?;
    while let Some(piece) = pieces.next().await? {
        *from += piece.len() as u64;
        if sender.send(Ok(piece)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
