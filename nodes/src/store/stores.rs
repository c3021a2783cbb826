//! All stores of a node: one client and one limiter for each bucket, and the threads that their connections live on.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use engine::node::Cancel;
use futures_util::future::{Either, select};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::bucket::Bucket;
use super::cloud;
use super::environment::Environment;
use super::error::{ErrorKind, StoreError};
use super::fetch::{Wanted, fetch};
use super::leftover;
use super::limiter::Standing;
use super::local::{self, Walk};
use super::location::{Location, Place};
use super::meta::{Head, Meta};
use super::options::StoreOptions;
use super::pages::Pages;
use super::reader::Reader;
use super::tries::Tries;
use super::upload;
use super::watched::seeing;
use super::web::Ranges;
use super::wish::{Wish, tell, wished};

/// No more threads than this carry connections: they wait for sockets and decrypt.
const MAX_THREADS: usize = 4;

/// Reads, lists and writes at all kinds of [`Location`]. Cheap to clone; all clones share clients, limits and threads.
///
/// Every call blocks, and any number of threads may call at once. Threads of its own start with the first location that
/// is not local.
#[derive(Clone)]
pub struct Stores(Arc<Shared>);

struct Shared {
    options: StoreOptions,
    environment: Environment,
    /// That of the run, if there is one.
    cancel: Option<Cancel>,
    buckets: Mutex<HashMap<String, Arc<Bucket>>>,
    threads: Mutex<Option<Threads>>,
}

/// What connections live on.
struct Threads {
    runtime: Runtime,
    wish: watch::Receiver<Wish>,
}

impl Stores {
    /// Stores that are reached by `options` and by the environment of this process.
    pub fn new(options: StoreOptions) -> Self {
        Stores::with_environment(options, Environment::of_process())
    }

    /// Stores that are reached by `options` and by these variables alone.
    pub fn with_environment(options: StoreOptions, environment: Environment) -> Self {
        Stores::made(options, environment, None)
    }

    /// As [`Stores::new`], for a run: when it is aborted, whoever waits here gets an error of kind `Stopped`, and who lists
    /// when it is drained, whatever the store has asked for.
    pub fn within(options: StoreOptions, cancel: &Cancel) -> Self {
        Stores::made(options, Environment::of_process(), Some(cancel.clone()))
    }

    fn made(options: StoreOptions, environment: Environment, cancel: Option<Cancel>) -> Self {
        let (buckets, threads) = (Mutex::default(), Mutex::default());
        Stores(Arc::new(Shared { options, environment, cancel, buckets, threads }))
    }

    /// What is known of an object.
    ///
    /// # Errors
    /// `NotFound`, and after all tries what else is in the way. Of kind `Unsupported` if a web server does not say how
    /// large it is.
    pub fn stat(&self, location: &Location) -> Result<Meta, StoreError> {
        if let Some(path) = location.local_path() {
            return local::stat(path, location);
        }
        let (head, _) = self.head(location)?;
        match head.size {
            Some(size) => Ok(head.with_size(size)),
            None => {
                let message = format!("the server does not say how large `{location}` is");
                Err(StoreError::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// A whole object of up to `max_bytes`, with what was known of it when it was read.
    ///
    /// # Errors
    /// `TooLarge` before memory is taken for more, `NotFound`, and after all tries what else is in the way.
    pub fn read(&self, location: &Location, max_bytes: u64) -> Result<(Bytes, Meta), StoreError> {
        if let Some(path) = location.local_path() {
            return local::read(path, location, max_bytes);
        }
        let bucket = self.object_bucket(location)?;
        let wanted = Wanted { range: None, known: None, max_bytes };
        let read = self.block_on(fetch(bucket, location.clone(), wanted))?;
        let (bytes, head) = read.map_err(|failure| failure.at("read", location))?;
        let size = bytes.len() as u64;
        Ok((bytes, head.with_size(size)))
    }

    /// The bytes `range` of an object, which it must have.
    ///
    /// # Errors
    /// If it has not; otherwise as [`Stores::read`]. The caller has to bound the range.
    pub fn read_range(&self, location: &Location, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.range_of(location, range, None)
    }

    /// As [`Stores::read_range`], of the version of the object that `meta` is about.
    ///
    /// # Errors
    /// Of kind `Changed` if there is another one now; otherwise as [`Stores::read_range`].
    pub fn read_range_of(&self, location: &Location, range: Range<u64>, meta: &Meta) -> Result<Bytes, StoreError> {
        self.range_of(location, range, Some(meta.clone().into()))
    }

    fn range_of(&self, location: &Location, range: Range<u64>, known: Option<Head>) -> Result<Bytes, StoreError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        if let Some(path) = location.local_path() {
            return local::read_range(path, location, range);
        }
        let bucket = self.object_bucket(location)?;
        let n_bytes = range.end - range.start;
        let wanted = Wanted { range: Some(range.clone()), known, max_bytes: n_bytes };
        let read = self.block_on(fetch(bucket, location.clone(), wanted))?;
        let (bytes, _) = read.map_err(|failure| failure.at("read", location))?;
        match bytes.len() as u64 == n_bytes {
            true => Ok(bytes),
            false => Err(local::beyond_end(location, &range, range.start + bytes.len() as u64)),
        }
    }

    /// An object from byte `from` on, to be read without being held. Nothing is left if it has no more bytes than that.
    ///
    /// # Errors
    /// As [`Stores::stat`]; what happens later is an [`io::Error`](std::io::Error) that [`StoreError::of_io`] reads.
    pub fn open(&self, location: &Location, from: u64) -> Result<Reader, StoreError> {
        if let Some(path) = location.local_path() {
            let (file, meta) = local::open(path, location, from)?;
            return Ok(Reader::of_file(location.clone(), file, meta));
        }
        let bucket = self.object_bucket(location)?;
        let (head, ranges) = self.head(location)?;
        match (head.size, ranges) {
            (Some(size), Ranges::Known) => {
                Ok(Reader::of_parts(self.clone(), bucket, location.clone(), head.with_size(size), from))
            }
            _ => Reader::of_stream(self.clone(), bucket, location.clone(), head, from),
        }
    }

    /// The objects whose keys begin with that of `prefix`, page by page in the order of their keys. Of a local folder,
    /// the files below it. Nothing is asked for before the first page is.
    ///
    /// # Errors
    /// Of kind `Unsupported` for web servers, which have no listing.
    pub fn list(&self, prefix: &Location) -> Result<Pages, StoreError> {
        self.list_from(prefix, None)
    }

    /// As [`Stores::list`], with only what comes after `after` in the order of the keys.
    ///
    /// # Errors
    /// As [`Stores::list`].
    pub fn list_after(&self, prefix: &Location, after: &Location) -> Result<Pages, StoreError> {
        self.list_from(prefix, Some(after))
    }

    fn list_from(&self, prefix: &Location, after: Option<&Location>) -> Result<Pages, StoreError> {
        match prefix.place() {
            Place::Local(path) => {
                let after = after.and_then(Location::local_path);
                Ok(Pages::local(prefix.clone(), Walk::new(path, prefix, after)?))
            }
            Place::Object(container, _) => {
                let bucket = self.bucket(prefix)?;
                let client = bucket.cloud("list", prefix)?;
                let after = after.map(|after| after.key().into_owned());
                Ok(Pages::cloud(self.clone(), prefix.clone(), bucket, client, container.clone(), after))
            }
            Place::Web(_) => {
                let message = format!("`{prefix}` cannot be listed: a web server has no listing");
                Err(StoreError::new(ErrorKind::Unsupported, message)
                    .help("name the files: a list in braces such as `{000..099}`, or a manifest"))
            }
        }
    }

    /// Writes `content` as a whole object: it is there complete or not at all.
    ///
    /// # Errors
    /// What is in the way, after all tries.
    pub fn write(&self, to: &Location, content: Bytes) -> Result<(), StoreError> {
        if let Some(path) = to.local_path() {
            return local::write(path, to, &content[..]);
        }
        let bucket = self.object_bucket(to)?;
        let client = bucket.cloud("write", to)?;
        self.block_on(upload::put(bucket, client, to.clone(), content))?.map_err(|failure| failure.at("write", to))
    }

    /// Writes the local file `local` as a whole object: it is there complete or not at all. A large one goes in parts;
    /// while these are under way, the file `record` names the upload, so that [`Stores::abort_leftover`] can end it if
    /// this process does not live to.
    ///
    /// # Errors
    /// What is in the way, after all tries; the upload is then aborted.
    pub fn upload(&self, local: &Path, to: &Location, record: &Path) -> Result<(), StoreError> {
        if let Some(path) = to.local_path() {
            let from = Location::local(local);
            let file = File::open(local).map_err(|error| StoreError::local("read", &from, &error))?;
            return local::write(path, to, file);
        }
        let bucket = self.object_bucket(to)?;
        let client = bucket.cloud("write", to)?;
        upload::upload(self, bucket, client, local, to, record)
    }

    /// Aborts the upload that an earlier process left under way and `record` names; nothing if there is no such file.
    ///
    /// # Errors
    /// If the store does not do it, or the record cannot be read.
    pub fn abort_leftover(&self, record: &Path) -> Result<(), StoreError> {
        leftover::abort(self, record)
    }

    /// Takes an object away, if it is there.
    ///
    /// # Errors
    /// What is in the way, after all tries.
    pub fn remove(&self, location: &Location) -> Result<(), StoreError> {
        if let Some(path) = location.local_path() {
            return local::remove(path, location);
        }
        let bucket = self.object_bucket(location)?;
        let client = bucket.cloud("remove", location)?;
        let removed = self.block_on(cloud::remove(bucket, client, location.clone()))?;
        removed.map_err(|failure| failure.at("remove", location))
    }

    /// How the bucket or host of `location` is doing, if it was asked for anything yet.
    pub fn standing(&self, location: &Location) -> Option<Standing> {
        let name = Bucket::name_of(location)?;
        locked(&self.0.buckets).get(&name).map(|bucket| bucket.limiter.standing())
    }

    /// The bucket of a location that must name an object in it.
    pub(super) fn object_bucket(&self, location: &Location) -> Result<Arc<Bucket>, StoreError> {
        if let Place::Object(_, key) = location.place()
            && (key.is_empty() || key.ends_with('/'))
        {
            let what = if key.is_empty() { "a bucket" } else { "a folder" };
            return Err(StoreError::new(ErrorKind::IsDirectory, format!("`{location}` is {what}, not an object")));
        }
        self.bucket(location)
    }

    fn bucket(&self, location: &Location) -> Result<Arc<Bucket>, StoreError> {
        let name = Bucket::name_of(location).unwrap_or_default();
        let mut buckets = locked(&self.0.buckets);
        if let Some(bucket) = buckets.get(&name) {
            return Ok(bucket.clone());
        }
        let bucket = Arc::new(Bucket::of(location, &self.0.options, &self.0.environment)?);
        buckets.insert(name, bucket.clone());
        Ok(bucket)
    }

    fn head(&self, location: &Location) -> Result<(Head, Ranges), StoreError> {
        let bucket = self.object_bucket(location)?;
        let request = async {
            let mut tries = Tries::new(&bucket);
            loop {
                let permit = tries.permit().await;
                let result = seeing(bucket.head(location)).await;
                if let Some(ended) = tries.end(permit, result).await {
                    return ended;
                }
            }
        };
        self.block_on(request)?.map_err(|failure| failure.at("read", location))
    }

    /// Waits for `request` on this thread; its connections live on the threads here.
    ///
    /// # Errors
    /// Of kind `Stopped` if the run is aborted meanwhile.
    pub(super) fn block_on<T>(&self, request: impl Future<Output = T>) -> Result<T, StoreError> {
        self.block_on_until(Wish::Abort, request)
    }

    /// The same until the run is wished to end so far.
    pub(super) fn block_on_until<T>(&self, end: Wish, request: impl Future<Output = T>) -> Result<T, StoreError> {
        let (handle, wish) = self.handle()?;
        handle.block_on(async {
            let (request, end) = (std::pin::pin!(request), std::pin::pin!(wished(end, wish)));
            match select(request, end).await {
                Either::Left((done, _)) => Ok(done),
                Either::Right(_) => Err(StoreError::new(ErrorKind::Stopped, "the run is being stopped")),
            }
        })
    }

    /// Goes on with `request` while this thread does something else.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<JoinHandle<T>, StoreError> {
        Ok(self.handle()?.0.spawn(request))
    }

    fn handle(&self) -> Result<(Handle, watch::Receiver<Wish>), StoreError> {
        let mut threads = locked(&self.0.threads);
        if let Some(threads) = &*threads {
            return Ok((threads.runtime.handle().clone(), threads.wish.clone()));
        }
        let n_threads = std::thread::available_parallelism().map_or(1, |n_threads| n_threads.get().min(MAX_THREADS));
        let started = Builder::new_multi_thread().worker_threads(n_threads).thread_name("store").enable_all().build();
        let runtime = started.map_err(|error| {
            StoreError::new(ErrorKind::Io, format!("cannot start threads for stores: {}", engine::node::reason(&error)))
        })?;
        let (sender, wish) = watch::channel(Wish::GoOn);
        if let Some(cancel) = self.0.cancel.clone() {
            runtime.spawn(tell(cancel, sender));
        }
        let threads = threads.insert(Threads { runtime, wish });
        Ok((threads.runtime.handle().clone(), threads.wish.clone()))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(threads) = locked(&self.threads).take() {
            // Whoever looks up a name at this moment cannot be interrupted, and need not be waited for.
            threads.runtime.shutdown_background();
        }
    }
}
