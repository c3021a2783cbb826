//! A plan that runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Instant;

use super::board::{Board, Described};
use super::committer::{Committer, Committing};
use super::crew::Crew;
use super::ending::finish;
use super::exit::Exit;
use super::fold::Folding;
use super::infer::Inferring;
use super::killer::Killer;
use super::ledger::Ledger;
use super::merge::Merging;
use super::message::Message;
use super::outlets::Outlets;
use super::parallel::{Parallel, Task, Waiting};
use super::pools::{Spawner, ThreadPools};
use super::progress::{Mark, Progress};
use super::queue::{Receiver, Sender, queue};
use super::rejects::RejectLog;
use super::report::Report;
use super::resume::Origin;
use super::row_task::RowTask;
use super::shared::{Me, Shared};
use super::sink::{Rejections, Sinking, Sunk};
use super::slicing::divide;
use super::source::{FetchTask, Lister, Lists, Reader, UnpackTask};
use super::stall::{OnStall, Stalls};
use super::stats::{RunStats, nanos};
use super::trace::{Place, Trace};
use super::trial::TryRow;
use super::unpack::Unpacker;
use super::watchdog::{STALL, Watchdog, Watched};
use super::writing::Writing;
use crate::config::Port;
use crate::data::{Alloc, HeapPool, RowPos};
use crate::graph::{Graph, GraphNode, Merge};
use crate::journal::{Journal, SinkCut, StateFolder, reject_name};
use crate::node::{BuildCx, Cancel, Counting, Fault, Padding, Reading, Role, Shard, SourceStage, Stage};
use crate::schedule::{DevicePlace, Plan};

/// What a run needs to know of the program that it runs in.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The program's version and the hash of its source: worker processes must have the same.
    pub build: String,
    /// The program that is started as a worker on the CPU; by default the one that runs.
    pub program: Option<PathBuf>,
    /// What every span of work is written to.
    pub trace: Option<Arc<Trace>>,
    /// The part of the run that this is, if it is one.
    pub shard: Option<Shard>,
    /// Who is told of nodes that do not come on.
    pub on_stall: Option<OnStall>,
    /// How a row that may have killed the process is tried.
    pub try_row: Option<TryRow>,
}

/// A run under way. Waits for nothing by itself: see [`Running::join`].
pub struct Running {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    stages: Vec<JoinHandle<(usize, Exit, Option<Sunk>)>>,
    crew: Arc<Crew>,
    committing: Committing,
    told: Vec<String>,
    redone: u64,
    /// Looks until all is done, the outputs' names included.
    watchdog: Watchdog,
    // Dropped last: stages hand their work to these threads.
    _pools: Arc<ThreadPools>,
}

/// What to do about a bug.
pub(super) const REPORT: &str = "this is a bug in flowgpu: please report it with the pipeline file";

type Edges<T> = HashMap<(usize, usize), T>;

impl Running {
    /// Builds every node and starts its threads. With a journal it goes on where that says, and notes in it how far it has
    /// come.
    ///
    /// # Errors
    /// A node that cannot be built, or that cannot go on where it should.
    pub fn start(plan: Plan, cancel: Cancel, setup: &Setup, mut journal: Option<Journal>) -> Result<Running, Fault> {
        let plan = Arc::new(plan);
        let graph = plan.graph.clone();
        // First of all: worker processes open their devices and load models while the rest is made.
        let crew = Arc::new(Crew::start(&plan, setup)?);
        let pools = Arc::new(ThreadPools::start(plan.pools, &graph)?);
        let alloc: Arc<dyn Alloc> = Arc::new(HeapPool::new());
        // From here on: a listing may hang while its node is built.
        let (board, stalls) = (Arc::new(Board::default()), Arc::new(Stalls::new(graph.nodes.len())));
        let stall = graph.run.stall.map_or(STALL, |stall| stall.get());
        let watched = Watched { graph: graph.clone(), board: board.clone(), stalls: stalls.clone() };
        let watchdog = Watchdog::start(watched, stall, setup.on_stall.clone());
        // Sources first: a glob that matches nothing is told before any output is opened.
        let mut built = Vec::new();
        let part =
            Part { shard: setup.shard, is_resumed: journal.as_ref().is_some_and(|journal| journal.from().is_some()) };
        for &node_idx in &graph.order {
            let arena = crew.input_arena(&graph.nodes[node_idx])?;
            let alloc = arena.map_or_else(|| alloc.clone(), |arena| Arc::new(arena) as Arc<dyn Alloc>);
            let hold = board.lane(node_idx, 1).hold(Arc::new(Described::new("opening what it needs")));
            built.push((node_idx, build(&graph, node_idx, part, &alloc, &cancel)?));
            drop(hold);
        }
        let offsets = divide(&graph, part.shard, &mut built, &cancel, &board)?;
        let looking = graph
            .with_role(Role::Source)
            .next()
            .map(|source| board.lane(source, 1).hold(Arc::new(Described::new("looking at what was read before"))));
        let origin = Origin::of(&graph, journal.as_mut(), &mut built)?;
        drop(looking);
        let killer = match &mut journal {
            Some(journal) => Killer::start(&graph, plan.pools.rows, journal, setup.try_row.clone())?,
            None => Killer::default(),
        };
        let stats = Arc::new(RunStats::new(graph.nodes.len(), origin.rows.clone(), crew.stats.clone(), stalls));
        for (node_idx, sink) in graph.sinks().zip(&origin.sinks) {
            stats.nodes[node_idx].rows_out.store(sink.pos.rows, Ordering::Relaxed);
        }
        let mut counts = journal.as_ref().and_then(Journal::from).map(|cut| cut.rejects.clone()).unwrap_or_default();
        counts.bytes.resize(origin.starts.len(), 0);
        stats.rejects.store(counts.total, Ordering::Relaxed);
        let shown = reject_name(&graph, part.shard);
        let names = graph.nodes.iter().map(|node| node.name.clone()).collect();
        let path = graph.base.join(&shown);
        let log = RejectLog::open(shown, path, graph.run.max_rejects, names, counts)?;
        let mark = |cut: &SinkCut| Mark { cut: cut.clone(), durable: None };
        let lines = graph.read_by_sinks().into_iter().zip(origin.sinks.iter().map(mark)).collect();
        let ledger = Ledger::new(lines, origin.frontier());
        let Origin { starts, rows, notes, sinks, closed, redone, told } = origin;
        let progress = Progress::new(ledger, closed, notes);
        let trace = setup.trace.clone();
        let shared = Arc::new(Shared::new(graph.clone(), cancel.clone(), stats, log, progress, trace, board, killer));
        if let Some(trace) = &setup.trace {
            trace.name(Place::Here, "flowgpu");
            for (worker, stats) in shared.stats.workers.iter().enumerate() {
                trace.name(Place::Worker(worker), &format!("worker {worker} ({})", stats.device));
            }
        }
        let mut start = Start {
            plan: plan.clone(),
            shared: shared.clone(),
            pools: pools.clone(),
            crew: crew.clone(),
            alloc,
            starts,
            rows,
            offsets,
            sinks,
            senders: HashMap::new(),
            receivers: HashMap::new(),
            stages: Vec::new(),
        };
        start.connect();
        for (node_idx, stage) in built {
            start.stage(node_idx, stage)?;
        }
        let stages = start.stages;
        let committing = Committer::new(shared.clone(), journal).start()?;
        Ok(Running { plan, shared, stages, crew, committing, told, redone, watchdog, _pools: pools })
    }

    /// The plan that runs.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The figures so far.
    pub fn stats(&self) -> Arc<RunStats> {
        self.shared.stats.clone()
    }

    /// What is to be told about how an earlier run was taken up.
    pub fn told(&self) -> &[String] {
        &self.told
    }

    /// Rows that an earlier run has written and that are done again.
    pub fn redone(&self) -> u64 {
        self.redone
    }

    /// Whether all stages have ended, so that [`Running::join`] will not wait long.
    pub fn is_finished(&self) -> bool {
        self.stages.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the end, gives the outputs their final names, and says what was done.
    pub fn join(self) -> Report {
        let mut sunk = Vec::new();
        let mut unfinished = None;
        for stage in self.stages {
            match stage.join() {
                Ok((node_idx, exit, sink)) => {
                    sunk.extend(sink);
                    if exit != Exit::Finished {
                        unfinished.get_or_insert((node_idx, exit));
                    }
                }
                Err(panic) => self.shared.fail(Fault::bug(crate::worker::panic_text(&*panic))),
            }
        }
        // The echo of a fault is expected; an end without a cause would lose rows in silence.
        if let (Some((node_idx, exit)), None, false) =
            (unfinished, self.shared.fault(), self.shared.cancel.is_aborted())
        {
            let node = &self.shared.graph.nodes[node_idx].name;
            self.shared.fail(Fault::bug(format!("ended early ({exit:?})")).in_node(node).help(REPORT));
        }
        sunk.sort_by_key(|sunk| sunk.node_idx);
        // Workers leave before outputs get their names: what a finished run leaves behind is its outputs alone.
        drop(self.crew);
        let journal = self.committing.finish();
        let report = finish(&self.plan, &self.shared, sunk, journal, self.redone);
        drop(self.watchdog);
        report
    }
}

/// What nodes are told of the run that they are built for.
#[derive(Clone, Copy, Default)]
pub(super) struct Part {
    pub(super) shard: Option<Shard>,
    pub(super) is_resumed: bool,
}

/// Builds a node.
pub(super) fn build(
    graph: &Graph,
    node_idx: usize,
    part: Part,
    alloc: &Arc<dyn Alloc>,
    cancel: &Cancel,
) -> Result<Stage, Fault> {
    let node = &graph.nodes[node_idx];
    let cx = BuildCx {
        name: &node.name,
        inputs: &node.schemas,
        spec: &node.spec,
        advice: node.advice.as_ref(),
        base: &graph.base,
        alloc: alloc.clone(),
        cancel: cancel.clone(),
        shard: part.shard,
        spool: StateFolder::of(graph, part.shard).spool_of(&node.name),
        is_resumed: part.is_resumed,
    };
    node.node.build(&cx).map_err(|fault| fault.in_node(&node.name))
}

/// Everything needed while stages are started.
struct Start {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    pools: Arc<ThreadPools>,
    crew: Arc<Crew>,
    alloc: Arc<dyn Alloc>,
    /// By source: the position of the first row.
    starts: Vec<RowPos>,
    /// By source: how many rows are before it.
    rows: Vec<u64>,
    /// By source: what is added to an index for the source's own.
    offsets: Vec<u64>,
    /// By sink: where it stands.
    sinks: Vec<SinkCut>,
    /// By (reader, input): the writing end of that edge.
    senders: Edges<Sender<Message>>,
    receivers: Edges<Receiver<Message>>,
    stages: Vec<JoinHandle<(usize, Exit, Option<Sunk>)>>,
}

impl Start {
    fn connect(&mut self) {
        for (node_idx, node) in self.plan.graph.nodes.iter().enumerate() {
            let room = self.plan.rooms[node_idx];
            for input_idx in 0..node.inputs.len() {
                let (sender, receiver) = queue(room.queue_batches, room.queue_bytes);
                self.senders.insert((node_idx, input_idx), sender);
                self.receivers.insert((node_idx, input_idx), receiver);
            }
        }
    }

    fn outlets(&mut self, node_idx: usize) -> Outlets {
        let mut of = |port| {
            let readers = self.plan.graph.readers(node_idx, port);
            readers.iter().filter_map(|edge| self.senders.remove(edge)).collect()
        };
        let (rows, rejects) = (of(Port::Rows), of(Port::Rejects));
        Outlets::new(rows, rejects, self.shared.stats.nodes[node_idx].clone())
    }

    /// The one input of a node: what several are merged into.
    fn input(&mut self, node_idx: usize) -> Result<Receiver<Message>, Fault> {
        let graph = self.plan.graph.clone();
        let node = &graph.nodes[node_idx];
        if node.merge == Merge::Single {
            return Ok(self.receivers.remove(&(node_idx, 0)).expect("each edge is taken once"));
        }
        let room = self.plan.rooms[node_idx];
        let (sender, receiver) = queue(room.queue_batches, room.queue_bytes);
        // The merge's own waiting is not the node's: it is counted nowhere.
        let outlets = Outlets::new(vec![sender], Vec::new(), Arc::default());
        self.merge(node_idx, outlets, Arc::default())?;
        Ok(receiver)
    }

    fn merge(&mut self, node_idx: usize, outlets: Outlets, stats: Arc<super::stats::NodeStats>) -> Result<(), Fault> {
        let graph = self.plan.graph.clone();
        let node = &graph.nodes[node_idx];
        let inputs = node.inputs.iter().enumerate().map(|(input_idx, edge)| {
            let receiver = self.receivers.remove(&(node_idx, input_idx)).expect("each edge is taken once");
            (receiver, graph.sources_of(edge.from).first().copied().unwrap_or(0))
        });
        let inputs = inputs.collect();
        let me = Me { node_idx, shared: self.shared.clone(), stats };
        let merging = Merging::new(me, node.merge, inputs, outlets);
        self.spawn(node_idx, &format!("{}/merge", node.name), move || (merging.run(), None))
    }

    fn stage(&mut self, node_idx: usize, stage: Stage) -> Result<(), Fault> {
        let graph = self.plan.graph.clone();
        let node = &graph.nodes[node_idx];
        let me = Me::new(node_idx, &self.shared);
        match stage {
            Stage::Source(source) => self.source(me, node, source),
            Stage::Pass if node.merge == Merge::Join => {
                let outlets = self.outlets(node_idx);
                self.merge(node_idx, outlets, me.stats)
            }
            Stage::Pass => self.rows(me, node, None),
            Stage::Rows(map) => self.rows(me, node, Some(map)),
            Stage::Fold(fold) => {
                let (input, outlets) = (self.input(node_idx)?, self.outlets(node_idx));
                let lane = me.lane(1);
                let folding = Folding { me, fold, input, outlets, lane };
                self.spawn(node_idx, &node.name, move || (folding.run(), None))
            }
            Stage::Infer(infer) => {
                let (input, outlets) = (self.input(node_idx)?, self.outlets(node_idx));
                let inferring = Inferring {
                    me,
                    columns: infer.inputs.clone(),
                    padding: padding(&self.plan, node_idx, infer.padding),
                    input,
                    outlets,
                    places: Vec::new(),
                    at_work: None,
                };
                let (plan, crew, pool) = (self.plan.clone(), self.crew.clone(), self.pools.model.clone());
                let start = move || crew.executor(&plan, node_idx, &infer, &pool);
                self.spawn(node_idx, &node.name, move || (inferring.run(start), None))
            }
            Stage::Sink(sink) => {
                let input = self.input(node_idx)?;
                let number = graph.sinks().position(|sink| sink == node_idx).expect("it is a sink");
                let cut = &self.sinks[number];
                let writing = Writing::new(&self.shared, node_idx, "writing");
                let sinking = Sinking {
                    writing,
                    me,
                    sink,
                    input,
                    number,
                    reads_several: graph.sources_of(node_idx).len() > 1,
                    rejected: Rejections::after(cut.rejected),
                    ends: cut.ends.clone(),
                    start: cut.clone(),
                };
                self.spawn(node_idx, &node.name, move || {
                    let (exit, sunk) = sinking.run();
                    (exit, Some(sunk))
                })
            }
        }
    }

    fn source(&mut self, me: Me, node: &GraphNode, source: SourceStage) -> Result<(), Fault> {
        let node_idx = me.node_idx;
        let room = self.plan.rooms[node_idx];
        let (sender, receiver) = queue(room.queue_batches, room.queue_bytes);
        let limit = self.plan.graph.run.limit.unwrap_or(u64::MAX);
        let number = node.source.expect("a source has a number") as usize;
        let start = self.starts[number];
        let is_closed = self.shared.progress.source(number).end.is_some();
        let (lists, listed) = match &source.reading {
            Reading::Rows(_) => (Lists::Rows, limit),
            // The limit is of rows: it is kept where they are.
            Reading::Unpacked(_) => (Lists::Containers, u64::MAX),
        };
        let lister = Lister {
            me: me.clone(),
            list: source.list,
            lists,
            start: start.index,
            limit: if is_closed { start.index } else { listed },
            output: sender,
        };
        self.spawn(node_idx, &format!("{}/list", node.name), move || (lister.run(), None))?;
        if let Some(count) = source.count {
            self.count(&me, limit, count)?;
        }
        let offset = self.offsets[number];
        let reader = Reader::new(me.clone(), self.alloc.clone(), start, offset);
        let (spawner, threads) = (self.pools.io.clone(), self.plan.pools.io);
        match source.reading {
            Reading::Rows(fetch) => {
                self.parallel(me, node, FetchTask::new(reader, fetch), receiver, spawner, threads, Waiting::Work)
            }
            Reading::Unpacked(unpack) => {
                let (output, rows) = queue(room.queue_batches, room.queue_bytes);
                let unpacker = Unpacker {
                    me: me.clone(),
                    unpack: unpack.clone(),
                    input: receiver,
                    output,
                    start,
                    n_before: self.rows[number],
                    limit,
                    offset,
                };
                self.spawn(node_idx, &format!("{}/open", node.name), move || (unpacker.run(), None))?;
                self.parallel(me, node, UnpackTask { reader, unpack }, rows, spawner, threads, Waiting::Work)
            }
        }
    }

    /// Counts beside the run; nobody waits for it.
    fn count(&self, me: &Me, limit: u64, count: crate::node::Count) -> Result<(), Fault> {
        let node = me.node();
        let (shared, number) = (self.shared.clone(), node.source.expect("a source has a number") as usize);
        let (lane, counting) = (me.lane(1), Arc::new(Counting::new(shared.cancel.clone())));
        let counting = move || {
            let hold = lane.hold(counting.clone());
            let total = count(&counting);
            drop(hold);
            if let Some(total) = total {
                shared.stats.totals[number].store(total.min(limit), Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name(format!("{}/count", node.name));
        thread.spawn(counting).map(drop).map_err(|error| Fault::transient(format!("cannot start a thread: {error}")))
    }

    fn rows(&mut self, me: Me, node: &GraphNode, map: Option<Arc<dyn crate::node::RowMap>>) -> Result<(), Fault> {
        let input = self.input(me.node_idx)?;
        let task = RowTask::new(me.clone(), map, self.alloc.clone());
        let (spawner, threads) = (self.pools.rows(me.node_idx), self.plan.pools.rows);
        self.parallel(me, node, task, input, spawner, threads, Waiting::Starved)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one struct")]
    fn parallel<T: Task>(
        &mut self,
        me: Me,
        node: &GraphNode,
        task: T,
        input: Receiver<T::Input>,
        spawner: Spawner,
        threads: usize,
        waiting: Waiting,
    ) -> Result<(), Fault> {
        let (outlets, room) = (self.outlets(me.node_idx), self.plan.rooms[me.node_idx]);
        let node_idx = me.node_idx;
        let parallel = Parallel { me, task: Arc::new(task), input, outlets, spawner, threads, room, waiting };
        self.spawn(node_idx, &node.name, move || (parallel.run(), None))
    }

    fn spawn(
        &mut self,
        node_idx: usize,
        name: &str,
        stage: impl FnOnce() -> (Exit, Option<Sunk>) + Send + 'static,
    ) -> Result<(), Fault> {
        let shared = self.shared.clone();
        let run = move || {
            let start = Instant::now();
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(stage));
            let (exit, sunk) =
                caught.unwrap_or_else(|panic| (Exit::Panicked(crate::worker::panic_text(&*panic)), None));
            shared.stats.nodes[node_idx].lifetime.store(nanos(start.elapsed()).max(1), Ordering::Relaxed);
            record(&shared, node_idx, exit.clone());
            (node_idx, exit, sunk)
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        self.stages.push(thread.map_err(|error| Fault::transient(format!("cannot start a thread: {error}")))?);
        Ok(())
    }
}

/// What part batches of a model need: on a GPU kernels see the whole batch, whatever the model does on the CPU.
fn padding(plan: &Plan, node_idx: usize, on_cpu: Padding) -> Padding {
    let on_gpu = plan.placement.workers_of(node_idx).any(|worker| worker.device != DevicePlace::Cpu);
    if on_gpu { Padding::ToPlan } else { on_cpu }
}

/// Tells all others of a stage that failed.
fn record(shared: &Shared, node_idx: usize, exit: Exit) {
    let node = &shared.graph.nodes[node_idx].name;
    tracing::debug!(node, ?exit, "stage ended");
    match exit {
        Exit::Finished | Exit::Cancelled | Exit::DownstreamClosed => {}
        Exit::Faulted(fault) => shared.fail(fault.in_node(node)),
        Exit::Panicked(text) => {
            let fault = Fault::bug(format!("panicked: {text}")).in_node(node);
            shared.fail(fault.help(REPORT));
        }
    }
}
