//! The worker processes of a run: started, fed, watched, replaced, stopped.
//!
//! One thread, the supervisor, starts processes and waits for those that end; one thread a process reads what it says.
//! What is decided is decided by [`Dispatch`] under one lock; frames are small and few, so they are written there too,
//! and a job takes no detour over a further thread.

mod spec;
mod supervisor;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Sender, unbounded};

pub use self::spec::{FleetSpec, ModelSpec, WorkerSpec};
use self::supervisor::supervise;
use super::arena::Arena;
use super::dispatch::{Command, Dispatch, Outcome, Phase};
use super::frame::{
    Access, ArenaFrame, DoneFrame, FailReason, FromWorker, Hello, JobFailed, Load, PROTOCOL, Refusal, Run, TensorAt,
    ToWorker,
};
use super::link::write_frame;
use super::process::Process;
use super::remote::Remote;
use super::stats::WorkerState;
use super::{Done, JobError};
use crate::data::{BufferMut, Tensor};
use crate::node::{Fault, FaultKind, ModelError};

/// Each output begins at a multiple of this.
const OUTPUT_ALIGNMENT: usize = 64;
/// What an output is taken to need a row where its shape is not known before the run; the worker says if it is more.
const UNKNOWN_ROW_BYTES: usize = 16 << 10;

/// The workers of a run. Dropping it stops them.
pub struct Fleet {
    shared: Arc<Shared>,
    supervisor: Option<JoinHandle<()>>,
}

pub(super) struct Shared {
    spec: FleetSpec,
    state: Mutex<State>,
    /// Something for the supervisor.
    called: Condvar,
    /// A model is loaded somewhere, or will not be.
    settled: Condvar,
}

pub(super) struct State {
    pub(super) dispatch: Dispatch,
    processes: Vec<Option<Live>>,
    ended: Vec<usize>,
    due: Vec<usize>,
    arenas: BTreeMap<u32, Arena>,
    outputs: Vec<Arena>,
    models: Vec<ModelState>,
    sent: HashMap<u64, Sent>,
    closing: bool,
}

struct Live {
    process: Process,
    socket: UnixStream,
    mapped: BTreeSet<u32>,
}

struct ModelState {
    done: Option<Sender<Done>>,
    fault: Option<Fault>,
    row_bytes: usize,
}

/// A job that a worker has, and the memory that its outputs go to.
struct Sent {
    model: usize,
    inputs: Vec<Tensor>,
    output: BufferMut,
}

impl Fleet {
    /// Starts the workers. They load their models on their own time: see [`Fleet::executor`].
    ///
    /// # Errors
    /// If the system has no memory to share or no thread left.
    pub fn start(spec: FleetSpec) -> Result<Fleet, Fault> {
        let models: Vec<_> = spec.workers.iter().map(|worker| worker.models.clone()).collect();
        let outputs = (0..spec.workers.len()).map(|worker| arena(worker as u32, spec.reserve));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let row_bytes = |model: &ModelSpec| {
            let bytes = model.row_bytes.iter().map(|bytes| bytes.unwrap_or(UNKNOWN_ROW_BYTES));
            bytes.sum()
        };
        let state = State {
            dispatch: Dispatch::new(&models, spec.models.len(), spec.patience, Instant::now()),
            processes: spec.workers.iter().map(|_| None).collect(),
            ended: Vec::new(),
            due: Vec::new(),
            arenas: outputs.iter().map(|arena| (arena.id(), arena.clone())).collect(),
            outputs,
            models: spec
                .models
                .iter()
                .map(|model| ModelState { done: None, fault: None, row_bytes: row_bytes(model) })
                .collect(),
            sent: HashMap::new(),
            closing: false,
        };
        let shared =
            Arc::new(Shared { spec, state: Mutex::new(state), called: Condvar::new(), settled: Condvar::new() });
        let supervised = shared.clone();
        let supervisor = std::thread::Builder::new().name("workers".to_owned()).spawn(move || supervise(&supervised));
        let supervisor = supervisor.map_err(|error| Fault::transient(format!("cannot start a thread: {error}")))?;
        Ok(Fleet { shared, supervisor: Some(supervisor) })
    }

    /// Memory for inputs that all workers can read.
    ///
    /// # Errors
    /// If the system has no memory to share.
    pub fn input_arena(&self) -> Result<Arena, Fault> {
        let mut state = self.shared.lock();
        let id = state.arenas.keys().next_back().map_or(0, |last| last + 1);
        let arena = arena(id, self.shared.spec.reserve)?;
        state.arenas.insert(id, arena.clone());
        Ok(arena)
    }

    /// The executor of model `model`: waits until a worker has it.
    ///
    /// # Errors
    /// If no worker can load it.
    pub fn executor(&self, model: usize) -> Result<Remote, Fault> {
        let staging = self.input_arena()?;
        let (sender, done) = unbounded();
        let mut state = self.shared.lock();
        state.models[model].done = Some(sender);
        while !state.dispatch.is_ready(model) {
            if let Some(fault) = &state.models[model].fault {
                return Err(fault.clone());
            }
            state = self.shared.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        Ok(Remote::new(self.shared.clone(), model, done, staging))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.called.notify_all();
        if let Some(supervisor) = self.supervisor.take() {
            // A panic of it was told by the hook, and its processes end with their sockets.
            let _ = supervisor.join();
        }
    }
}

fn arena(id: u32, reserve: u64) -> Result<Arena, Fault> {
    Arena::create(id, reserve).map_err(|error| {
        Fault::transient(format!("cannot share memory with workers: {error}"))
            .help("the system may be out of memory, address space or open files (`ulimit -a`)")
    })
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn knows(&self, arena: u32) -> bool {
        self.lock().arenas.contains_key(&arena)
    }

    /// Changes the state, and does what has to be done then.
    pub(super) fn change(&self, change: impl FnOnce(&mut State, Instant)) {
        let mut state = self.lock();
        change(&mut state, Instant::now());
        self.apply(&mut state);
    }

    fn apply(&self, state: &mut State) {
        // Carrying one out may bring others: there was no memory for a job, and so it is finished.
        let mut commands = VecDeque::from(state.dispatch.take_commands());
        while let Some(command) = commands.pop_front() {
            match command {
                Command::Start { worker } => state.due.push(worker),
                Command::Run { worker, model, number, inputs } => self.run(state, worker, model, number, inputs),
                Command::Kill { worker } => {
                    if let Some(live) = &state.processes[worker] {
                        live.process.kill();
                    }
                }
                Command::Finish { model, done } => self.finish(state, model, done),
                Command::Fail { model, fault } => {
                    state.models[model].fault = Some(fault);
                    state.models[model].done = None;
                    self.settled.notify_all();
                }
            }
            commands.extend(state.dispatch.take_commands());
        }
        for (worker, spec) in self.spec.workers.iter().enumerate() {
            spec.stats.set_state(match state.dispatch.phase(worker) {
                Phase::Lost => WorkerState::Lost,
                _ if state.dispatch.is_quarantine(worker) => WorkerState::Quarantine,
                Phase::Serving => WorkerState::Serving,
                Phase::Due(_) | Phase::Starting(_) => WorkerState::Starting,
            });
        }
        // Not at every job: whoever waits for nothing else would be woken for each.
        if !state.due.is_empty() {
            self.called.notify_all();
        }
    }

    fn finish(&self, state: &mut State, model: usize, done: Done) {
        if let Some(sender) = &state.models[model].done {
            // A submitter that has left wants no results.
            let _ = sender.send(done);
        }
    }

    /// Sends a job; a worker that does not take it is about to be found dead.
    fn run(&self, state: &mut State, worker: usize, model: usize, number: u64, inputs: Vec<Tensor>) {
        let n_rows = inputs.first().map_or(0, Tensor::n_rows);
        let n_outputs = self.spec.models[model].row_bytes.len().max(1);
        let len = n_rows * state.models[model].row_bytes + n_outputs * OUTPUT_ALIGNMENT;
        self.run_with_room(state, worker, model, inputs, (number, len));
    }

    /// Sends a job with room for so many bytes of outputs.
    fn run_with_room(
        &self,
        state: &mut State,
        worker: usize,
        model: usize,
        inputs: Vec<Tensor>,
        (number, len): (u64, usize),
    ) {
        let Some(output) = state.outputs[worker].try_alloc(len) else {
            let error = ModelError::Failed(format!("there is no shared memory for {len} bytes of outputs"));
            let outcome = Outcome { result: Err(JobError::Model(error)), micros: 0, spans: Vec::new(), cap: None };
            return state.dispatch.finished(worker, number, outcome, Instant::now());
        };
        let at = output.shared().expect("an arena's memory is shared");
        let tensors: Vec<_> = inputs
            .iter()
            .map(|input| TensorAt::of(input).expect("inputs were put into an arena when they were submitted"))
            .collect();
        let run = Run { job: number, model: model as u32, inputs: tensors, output: at, output_len: len as u64 };
        let State { processes, arenas, sent: all_sent, .. } = state;
        all_sent.insert(number, Sent { model, inputs, output });
        let Some(live) = &mut processes[worker] else { return };
        let wanted = run.inputs.iter().map(|input| (input.at.arena, Access::Read)).chain([(at.arena, Access::Write)]);
        for (id, access) in wanted {
            let Some(arena) = arenas.get(&id).filter(|_| live.mapped.insert(id)) else { continue };
            let frame = ArenaFrame { id, reserve: arena.reserve(), access };
            live.write(&ToWorker::Arena(frame), Some(arena));
        }
        live.write(&ToWorker::Run(run), None);
    }

    /// What a worker said.
    fn heard(&self, worker: usize, frame: FromWorker) {
        match frame {
            FromWorker::Hello(hello) => self.greet(worker, hello),
            FromWorker::Refused(refusal) => {
                let fault = fault(refusal);
                // What may be otherwise next time counts as a death.
                if fault.kind == FaultKind::Permanent {
                    self.refuse(worker, &fault);
                } else {
                    self.change(|state, _| state.dispatch.leaving(worker, &fault));
                }
            }
            FromWorker::Ready(ready) => self.change(|state, now| {
                state.dispatch.ready(worker, ready.model as usize, ready.depth as usize, now);
                self.settled.notify_all();
            }),
            FromWorker::LoadFailed(failed) => {
                let (model, fault) = (failed.model as usize, fault(failed.refusal));
                if let Some(spec) = self.spec.models.get(model) {
                    let trouble = format!("could not load `{}`: {}", spec.load.node, fault.message);
                    self.spec.workers[worker].stats.set_trouble(trouble);
                }
                self.change(|state, now| state.dispatch.load_failed(worker, model, fault, now));
            }
            FromWorker::Done(done) => self.done(worker, done),
            FromWorker::JobFailed(failed) => self.job_failed(worker, failed),
        }
    }

    /// Gives up a worker that will never be of use.
    fn refuse(&self, worker: usize, fault: &Fault) {
        self.spec.workers[worker].stats.set_trouble(format!("could not be used: {}", fault.message));
        self.change(|state, now| state.dispatch.refused(worker, fault, now));
    }

    fn greet(&self, worker: usize, hello: Hello) {
        let spec = &self.spec.workers[worker];
        if let Some(fault) = self.stranger(spec, &hello) {
            return self.refuse(worker, &fault);
        }
        spec.stats.set_opened(hello.device);
        self.change(|state, now| {
            state.dispatch.opened(worker, now);
            let Some(live) = &mut state.processes[worker] else { return };
            for &model in &spec.models {
                let node_idx = self.spec.models[model].node_idx;
                let caps = spec.stats.caps().into_iter().filter(|(of, _)| *of == node_idx).map(|(_, cap)| cap);
                let load = Load { model: model as u32, caps: caps.collect(), ..self.spec.models[model].load.clone() };
                live.write(&ToWorker::Load(load), None);
            }
        });
    }

    /// Why a worker cannot be used, if it cannot.
    fn stranger(&self, spec: &WorkerSpec, hello: &Hello) -> Option<Fault> {
        let program = spec.program.display();
        if (hello.protocol, &hello.build) != (PROTOCOL, &self.spec.build) {
            let message =
                format!("the worker `{program}` is of another build: {}, and this is {}", hello.build, self.spec.build);
            return Some(Fault::permanent(message).help("build both from one source (`scripts/cuda-build.sh`)"));
        }
        let device = &hello.device;
        if device.n_visible != 1 {
            let message = format!("the worker for `{}` sees {} devices, not one", spec.stats.device, device.n_visible);
            return Some(Fault::permanent(message).help("look at `flowgpu devices` and at CUDA_VISIBLE_DEVICES"));
        }
        // A part of a GPU may be told by its own UUID or by the GPU's.
        let comparable = |uuid: &&String| uuid.starts_with("GPU-");
        let (wanted, found) = (spec.uuid.as_ref().filter(comparable)?, device.uuid.as_ref().filter(comparable)?);
        (wanted != found).then(|| {
            let name = &spec.stats.device;
            Fault::permanent(format!("the worker for `{name}` ({wanted}) has opened another GPU: {found}"))
        })
    }

    fn done(&self, worker: usize, done: DoneFrame) {
        let mut state = self.lock();
        let Some(sent) = state.sent.remove(&done.job) else { return };
        let outputs = outputs(sent, &done.outputs);
        let result =
            outputs.map_err(|why| JobError::Model(ModelError::Failed(format!("the worker has written {why}"))));
        let outcome = Outcome { result, micros: done.micros, spans: done.spans, cap: done.cap };
        state.dispatch.finished(worker, done.job, outcome, Instant::now());
        self.apply(&mut state);
    }

    fn job_failed(&self, worker: usize, failed: JobFailed) {
        let mut state = self.lock();
        let Some(sent) = state.sent.remove(&failed.job) else { return };
        if let FailReason::OutputTooLarge(len) = failed.reason {
            let n_rows = sent.inputs.first().map_or(0, Tensor::n_rows).max(1);
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let model = &mut state.models[sent.model];
            model.row_bytes = model.row_bytes.max(len.div_ceil(n_rows));
            self.run_with_room(&mut state, worker, sent.model, sent.inputs, (failed.job, len));
            return self.apply(&mut state);
        }
        let error = match failed.reason {
            FailReason::OutOfMemory(why) => JobError::Model(ModelError::OutOfMemory(why)),
            FailReason::Failed(why) | FailReason::Malformed(why) => JobError::Model(ModelError::Failed(why)),
            FailReason::DeviceLost(why) => JobError::Model(ModelError::DeviceLost(why)),
            FailReason::Panicked(why) => JobError::Panicked(why),
            FailReason::Rows { wanted, found } => JobError::Rows { wanted, found },
            FailReason::OutputTooLarge(_) => unreachable!("it was handled above"),
        };
        let outcome = Outcome { result: Err(error), micros: 0, spans: Vec::new(), cap: None };
        state.dispatch.finished(worker, failed.job, outcome, Instant::now());
        self.apply(&mut state);
    }
}

impl State {
    /// Why no job of a model will be computed any more.
    pub(super) fn fault(&self, model: usize) -> Option<Fault> {
        self.models[model].fault.clone()
    }
}

impl Live {
    /// Writes a frame. A failure is not told: the socket's end says the same, once, to the supervisor.
    fn write(&mut self, frame: &ToWorker, arena: Option<&Arena>) {
        if let Err(error) = write_frame(&self.socket, frame, arena.map(Arena::fd)) {
            tracing::debug!(%error, "a worker does not listen");
            self.process.kill();
        }
    }
}

fn outputs(sent: Sent, at: &[TensorAt]) -> Result<Vec<Tensor>, String> {
    let slot = sent.output.freeze();
    at.iter().map(|tensor| tensor.within(&slot)).collect()
}

fn fault(refusal: Refusal) -> Fault {
    Fault { kind: refusal.kind, help: refusal.help, ..Fault::transient(refusal.message) }
}
