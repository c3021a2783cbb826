//! The threads that work: for reading, for rows, for models.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Sender, unbounded};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::graph::Graph;
use crate::node::{Fault, Role};
use crate::schedule::Pools;

type Work = Box<dyn FnOnce() + Send>;

/// Where a stage's work runs.
#[derive(Clone)]
pub(super) enum Spawner {
    /// The threads for reading, which mostly wait.
    Io(Sender<Work>),
    /// The threads for rows, which compute, for one node.
    Rows { pool: Arc<ThreadPool>, backlog: Arc<Backlog>, rank: usize },
}

/// Work that waits for a thread: that of the highest rank first, so that what is nearly done does not wait behind what has just
/// come in; that of one rank as it came.
#[derive(Default)]
pub(super) struct Backlog(Mutex<Works>);

#[derive(Default)]
struct Works {
    by_turn: BTreeMap<(Reverse<usize>, u64), Work>,
    n_taken: u64,
}

impl Backlog {
    fn add(&self, rank: usize, work: Work) {
        let mut works = self.lock();
        let turn = (Reverse(rank), works.n_taken);
        works.by_turn.insert(turn, work);
        works.n_taken += 1;
    }

    fn next(&self) -> Option<Work> {
        self.lock().by_turn.pop_first().map(|(_, work)| work)
    }

    fn lock(&self) -> MutexGuard<'_, Works> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spawner {
    /// Runs `work` on a thread of the pool, soon. Work must not wait for queues: those who would make room may need
    /// this very thread.
    pub(super) fn spawn(&self, work: Work) {
        match self {
            // The pool ends after all stages: it is open while one of them runs.
            Spawner::Io(sender) => sender.send(work).expect("the pool outlives the stages"),
            Spawner::Rows { pool, backlog, rank } => {
                backlog.add(*rank, work);
                let backlog = backlog.clone();
                pool.spawn_fifo(move || {
                    let work = backlog.next().expect("as many threads ask as there is work");
                    work();
                });
            }
        }
    }
}

/// The three pools of a run.
pub(super) struct ThreadPools {
    pub(super) io: Spawner,
    pub(super) model: Arc<ThreadPool>,
    rows: Arc<ThreadPool>,
    backlog: Arc<Backlog>,
    /// By node.
    ranks: Vec<usize>,
}

impl ThreadPools {
    pub(super) fn start(sizes: Pools, graph: &Graph) -> Result<Self, Fault> {
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
            model: pool("model", sizes.model)?,
            rows: pool("rows", sizes.rows)?,
            backlog: Arc::default(),
            ranks: ranks(graph),
        })
    }

    /// The threads for rows, as that node is to use them.
    pub(super) fn rows(&self, node_idx: usize) -> Spawner {
        Spawner::Rows { pool: self.rows.clone(), backlog: self.backlog.clone(), rank: self.ranks[node_idx] }
    }
}

/// By node: how many of the nodes before it, one behind the other, use the threads for rows.
///
/// Nodes of one rank wait for each other's work alone, whatever else is before them. If all nodes counted, one branch with a
/// source of its own would wait until another, whose first node is further down, has ended.
fn ranks(graph: &Graph) -> Vec<usize> {
    let mut ranks = vec![0; graph.nodes.len()];
    for &node_idx in &graph.order {
        let inputs = graph.nodes[node_idx].inputs.iter().map(|edge| edge.from);
        let after = inputs.map(|from| ranks[from] + usize::from(pool_of(graph, from) == Some("rows")));
        ranks[node_idx] = after.max().unwrap_or(0);
    }
    ranks
}

/// The pool of computing threads that a node shares with others.
pub(super) fn pool_of(graph: &Graph, node_idx: usize) -> Option<&'static str> {
    match graph.nodes[node_idx].kind.role() {
        Role::Decode | Role::Transform => Some("rows"),
        Role::Infer => Some("model"),
        Role::Source | Role::Batch | Role::Sink => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_the_highest_rank_goes_first() {
        let done = Arc::new(Mutex::new(Vec::new()));
        let backlog = Backlog::default();
        for (rank, name) in
            [(1, "decode 0"), (1, "decode 1"), (3, "labels 0"), (1, "decode 2"), (2, "crop 0"), (3, "labels 1")]
        {
            let done = done.clone();
            backlog.add(rank, Box::new(move || done.lock().unwrap().push(name)));
        }
        while let Some(work) = backlog.next() {
            work();
        }
        let expected = ["labels 0", "labels 1", "crop 0", "decode 0", "decode 1", "decode 2"];
        assert_eq!(*done.lock().unwrap(), expected);
    }
}
