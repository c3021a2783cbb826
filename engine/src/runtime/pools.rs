//! The threads that work: for reading, for rows, for models.

use std::sync::Arc;

use crossbeam_channel::{Sender, unbounded};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::node::Fault;
use crate::schedule::Pools;

type Work = Box<dyn FnOnce() + Send>;

/// Where a stage's work runs.
#[derive(Clone)]
pub(super) enum Spawner {
    /// The threads for reading, which mostly wait.
    Io(Sender<Work>),
    /// The threads for rows, which compute.
    Rows(Arc<ThreadPool>),
}

impl Spawner {
    /// Runs `work` on a thread of the pool, soon. Work must not wait for queues: those who would make room may need
    /// this very thread.
    pub(super) fn spawn(&self, work: Work) {
        match self {
            // The pool ends after all stages: it is open while one of them runs.
            Spawner::Io(sender) => sender.send(work).expect("the pool outlives the stages"),
            Spawner::Rows(pool) => pool.spawn_fifo(work),
        }
    }
}

/// The three pools of a run.
pub(super) struct ThreadPools {
    pub(super) io: Spawner,
    pub(super) rows: Spawner,
    pub(super) model: Arc<ThreadPool>,
}

impl ThreadPools {
    pub(super) fn start(sizes: Pools) -> Result<Self, Fault> {
        let pool = |name: &'static str, threads: usize| {
            ThreadPoolBuilder::new()
                // 0 would mean all cores, and a pool that nobody needs may be as small as can be.
                .num_threads(threads.max(1))
                .thread_name(move |index| format!("{name}/{index}"))
                // Without a handler a panic in spawned work ends the process. The stage misses the result and says so.
                .panic_handler(|_| {})
                .build()
                .map(Arc::new)
                .map_err(|error| Fault::transient(format!("cannot start {threads} threads: {error}")))
        };
        Ok(ThreadPools {
            io: io_pool(sizes.io)?,
            rows: Spawner::Rows(pool("rows", sizes.rows)?),
            model: pool("model", sizes.model)?,
        })
    }
}

/// Plain threads: reads block, and rayon's would not be given back meanwhile. They end when the last sender is dropped.
fn io_pool(threads: usize) -> Result<Spawner, Fault> {
    let (sender, receiver) = unbounded::<Work>();
    for index in 0..threads {
        let receiver = receiver.clone();
        std::thread::Builder::new()
            .name(format!("io/{index}"))
            .spawn(move || receiver.iter().for_each(|work| work()))
            .map_err(|error| Fault::transient(format!("cannot start {threads} threads for reading: {error}")))?;
    }
    Ok(Spawner::Io(sender))
}
