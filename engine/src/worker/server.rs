//! A worker process: opens its device, loads models, computes what the coordinator sends.
//!
//! The thread that calls [`serve`] reads frames. Each model is loaded on a thread of its own, all at once, and then
//! served there by its lane, so models run side by side. Inputs are looked at where they lie; outputs are copied once,
//! into the memory that the job names.
//!
//! Promises: a job is answered once, by its result or by a reason; what a frame says about memory is checked before
//! anything is touched; a panic of a model costs its job; when the coordinator goes, the process goes at once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::{io, process};

use crossbeam_channel::{Sender, unbounded};
use rayon::ThreadPool;

use super::arena::{InputMapping, MappedArena};
use super::frame::{
    Access, ArenaFrame, DoneFrame, FailReason, FromWorker, Hello, JobFailed, Load, LoadFailed, PROTOCOL, Ready,
    Refusal, Run, TensorAt, ToWorker,
};
use super::gate::Gate;
use super::lane::Lane;
use super::link::{FrameReader, LinkError, write_frame};
use super::{Conduct, Done, Job, JobError, JobId, panic_text};
use crate::data::{BufferMut, HeapPool, SharedAt, Tensor};
use crate::node::{BuildCx, Device, Fault, FileStamp, Model, ModelError, Registry, SpecCx, Stage};

/// What outputs are aligned to within their memory.
const OUTPUT_ALIGN: u64 = 64;
/// Bytes of a message that are told: a frame has little room, and models may say anything.
const MESSAGE: usize = 4096;

/// Why a worker leaves before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot open its device, which it has told.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The link failed, or the coordinator said what cannot be.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// An arena cannot be mapped.
    #[error("cannot map memory: {0}")]
    Arena(String),
    /// The device does not answer any more, which it has told.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
    /// The system has no thread or descriptor left.
    #[error("cannot start: {0}")]
    System(String),
}

/// Serves the coordinator at the other end of `socket` with the device of the kind `device`, until it says that nothing
/// more will come or is gone. `build` names the program: see [`Hello`].
///
/// Threads may still be at work when this returns, on a device that hangs or for nobody: the process should end.
///
/// # Errors
/// See [`ServeError`].
pub fn serve(socket: UnixStream, registry: &Registry, device: &str, build: &str) -> Result<(), ServeError> {
    let system = |error: io::Error| ServeError::System(error.to_string());
    let link = socket.try_clone().map_err(system)?;
    let device = match open(registry, device) {
        Ok(device) => device,
        Err(refusal) => {
            write_frame(&link, &FromWorker::Refused(refusal.clone()), None)?;
            return Err(ServeError::Refused(refusal));
        }
    };
    let hello =
        Hello { protocol: PROTOCOL, build: build.to_owned(), pid: process::id(), device: device.info().clone() };
    write_frame(&link, &FromWorker::Hello(hello), None)?;
    // As many threads as RAYON_NUM_THREADS says: that is how the coordinator divides the cores.
    let pool = rayon::ThreadPoolBuilder::new().thread_name(|number| format!("model/{number}")).build();
    let pool = pool.map_err(|error| ServeError::System(error.to_string()))?;
    let worker = Worker {
        device,
        registry: registry.clone(),
        pool: Arc::new(pool),
        gate: Gate::default(),
        link: Mutex::new(link),
        leaving: Mutex::new(None),
        models: Mutex::new(Some(HashMap::new())),
    };
    Reader { worker: Arc::new(worker), arenas: HashMap::new(), loaded: HashSet::new(), lanes: Vec::new() }
        .run(FrameReader::new(socket))
}

fn open(registry: &Registry, kind: &str) -> Result<Arc<dyn Device>, Refusal> {
    let Some(opener) = registry.device(kind) else {
        let kinds: Vec<_> = registry.device_kinds().map(|kind| format!("`{kind}`")).collect();
        let message = format!("this program cannot compute on `{kind}`: it knows {}", kinds.join(", "));
        return Err(refusal(Fault::permanent(message)));
    };
    let device = catch_unwind(AssertUnwindSafe(|| opener.open()))
        .unwrap_or_else(|panic| Err(Fault::permanent(format!("cannot open `{kind}`: {}", panic_text(&*panic)))))
        .map_err(refusal)?;
    match device.info().n_visible {
        1 => Ok(device),
        found => {
            let message = format!("the worker process sees {found} devices of the kind `{kind}`, and must see one");
            Err(refusal(Fault::permanent(message).help("check what sets `CUDA_VISIBLE_DEVICES` for its processes")))
        }
    }
}

/// What all threads of a worker share.
struct Worker {
    device: Arc<dyn Device>,
    registry: Registry,
    pool: Arc<ThreadPool>,
    gate: Gate,
    link: Mutex<UnixStream>,
    /// Why the process must leave, once it must.
    leaving: Mutex<Option<ServeError>>,
    /// Where the jobs of each loaded model go; `None` once no more come.
    models: Mutex<Option<HashMap<u32, Sender<Task>>>>,
}

/// A job, and the memory for its outputs.
struct Task {
    job: Job,
    output: BufferMut,
    at: SharedAt,
}

impl Worker {
    fn tell(&self, frame: &FromWorker) {
        let outcome = write_frame(&locked(&self.link), frame, None);
        match outcome {
            // The reading thread notices by itself that the coordinator is gone.
            Ok(()) | Err(LinkError::Closed) => {}
            Err(error) => self.leave(error.into()),
        }
    }

    /// Makes the reading thread stop. The first reason counts.
    fn leave(&self, error: ServeError) {
        locked(&self.leaving).get_or_insert(error);
        // It fails if the other side has done the same.
        let _ = locked(&self.link).shutdown(Shutdown::Read);
    }

    fn refuse_job(&self, job: u64, reason: FailReason) {
        self.tell(&FromWorker::JobFailed(JobFailed { job, reason }));
    }

    fn refuse_model(&self, model: u32, refusal: Refusal) {
        self.tell(&FromWorker::LoadFailed(LoadFailed { model, refusal }));
    }

    /// A model's life.
    fn load_and_serve(&self, load: Load) {
        let model = catch_unwind(AssertUnwindSafe(|| self.load(&load))).unwrap_or_else(|panic| {
            Err(Fault::bug(format!("`{}` panicked while it was loaded: {}", load.node, panic_text(&*panic))))
        });
        let model = match model {
            Ok(model) => model,
            Err(fault) => return self.refuse_model(load.model, refusal(fault)),
        };
        let lane = Lane::new(model, load.caps, &self.gate, self.is_on_host().then_some(&self.pool));
        let (sender, tasks) = unbounded();
        match locked(&self.models).as_mut() {
            Some(models) => models.insert(load.model, sender),
            None => return,
        };
        self.tell(&FromWorker::Ready(Ready { model: load.model, depth: lane.depth() as u32 }));
        // Results come in the order of the jobs.
        let outputs = Mutex::new(VecDeque::new());
        let next = || {
            let Task { job, output, at } = tasks.recv().ok()?;
            locked(&outputs).push_back((output, at));
            Some(job)
        };
        lane.serve(next, |done| {
            let place = locked(&outputs).pop_front();
            self.answer(done, place);
        });
    }

    fn load(&self, load: &Load) -> Result<Box<dyn Model>, Fault> {
        load.files.iter().try_for_each(FileStamp::check)?;
        let kind = self.registry.get(&load.kind);
        let kind = kind.ok_or_else(|| Fault::permanent(format!("this program has no kind `{}`", load.kind)))?;
        let with = serde_yaml::to_value(&load.with).map_err(|error| Fault::permanent(error.to_string()))?;
        let node = kind.parse(with).map_err(Fault::permanent)?;
        let inputs = std::slice::from_ref(&load.input);
        let (name, base) = (load.node.as_str(), load.base.as_path());
        let spec = node.spec(&SpecCx { name, inputs, input_names: &["input"], advice: None, base });
        let spec = spec.map_err(|error| Fault::permanent(error.message))?;
        let alloc = Arc::new(HeapPool::new());
        let stage = node.build(&BuildCx::alone(name, inputs, &spec, base, alloc))?;
        let Stage::Infer(stage) = stage else {
            return Err(Fault::permanent(format!("`{}` is no kind that runs a model", load.kind)));
        };
        let need = spec.need.unwrap_or_default();
        let load = || self.device.load(&*stage.model, &need);
        // On a device of its own a model waits for files and transfers more than it computes: not one after the other.
        if self.is_on_host() { self.pool.install(load) } else { load() }
    }

    /// Whether models compute with the processor itself.
    fn is_on_host(&self) -> bool {
        self.device.info().kind == "cpu"
    }

    fn answer(&self, done: Done, place: Option<(BufferMut, SharedAt)>) {
        let job = done.id.0;
        let written = done.outcome.map_err(reason).and_then(|outputs| {
            let (mut memory, at) = place.ok_or_else(|| FailReason::Malformed("a result without memory".to_owned()))?;
            // The memory is given up here: once the result is told, it is the coordinator's.
            write_outputs(&outputs, memory.bytes_mut(), at)
        });
        match written {
            Ok(outputs) => self.tell(&FromWorker::Done(DoneFrame {
                job,
                outputs,
                micros: done.micros,
                spans: done.spans,
                cap: done.cap,
            })),
            Err(FailReason::DeviceLost(message)) => {
                self.refuse_job(job, FailReason::DeviceLost(message.clone()));
                self.leave(ServeError::DeviceLost(message));
            }
            Err(reason) => self.refuse_job(job, reason),
        }
    }
}

/// Puts tensors one after the other into `memory`, which lies at `at`.
fn write_outputs(outputs: &[Tensor], memory: &mut [u8], at: SharedAt) -> Result<Vec<TensorAt>, FailReason> {
    let mut end = at.offset;
    let places = outputs.iter().map(|output| {
        let offset = end.next_multiple_of(OUTPUT_ALIGN);
        end = offset + output.bytes().len() as u64;
        TensorAt { at: SharedAt { offset, ..at }, dtype: output.dtype(), shape: output.shape().to_vec() }
    });
    let places: Vec<_> = places.collect();
    let needed = end - at.offset;
    if needed > memory.len() as u64 {
        return Err(FailReason::OutputTooLarge(needed));
    }
    for (output, place) in outputs.iter().zip(&places) {
        let start = (place.at.offset - at.offset) as usize;
        memory[start..start + output.bytes().len()].copy_from_slice(output.bytes());
    }
    Ok(places)
}

/// What the reading thread knows.
struct Reader {
    worker: Arc<Worker>,
    arenas: HashMap<u32, &'static Arc<MappedArena>>,
    loaded: HashSet<u32>,
    lanes: Vec<JoinHandle<()>>,
}

impl Reader {
    fn run(mut self, mut frames: FrameReader) -> Result<(), ServeError> {
        loop {
            let frame = frames.read();
            if let Some(error) = locked(&self.worker.leaving).take() {
                return Err(error);
            }
            match frame? {
                Some((ToWorker::Arena(frame), fd)) => self.map(&frame, fd)?,
                Some((ToWorker::Load(load), _)) => self.load(load),
                Some((ToWorker::Run(run), _)) => self.compute(&run),
                Some((ToWorker::Stop, _)) => return self.stop(),
                None => return Ok(()),
            }
        }
    }

    fn map(&mut self, frame: &ArenaFrame, fd: Option<OwnedFd>) -> Result<(), ServeError> {
        let fd = fd.ok_or_else(|| ServeError::Arena(format!("arena {} came without its descriptor", frame.id)))?;
        // Devices with memory of their own want to page-lock what they upload from.
        let inputs = if self.worker.is_on_host() { InputMapping::Readable } else { InputMapping::PageLockable };
        let arena = MappedArena::map(frame, fd, inputs).map_err(|error| ServeError::Arena(error.to_string()))?;
        // For as long as the process lives: a device may have locked the memory, and would read from addresses that are
        // something else if it were unmapped before the device is closed. There are few arenas, and none ends earlier.
        let arena: &'static Arc<MappedArena> = Box::leak(Box::new(arena));
        if self.arenas.insert(frame.id, arena).is_some() {
            return Err(ServeError::Arena(format!("arena {} is mapped already", frame.id)));
        }
        if frame.access == Access::Read {
            self.register(arena);
        }
        Ok(())
    }

    fn register(&self, arena: &'static Arc<MappedArena>) {
        if let Some(memory) = arena.grown() {
            self.worker.device.register(memory);
        }
    }

    fn load(&mut self, load: Load) {
        let (worker, model) = (self.worker.clone(), load.model);
        if !self.loaded.insert(model) {
            let fault = Fault::permanent(format!("there is a model {model} already"));
            return worker.refuse_model(model, refusal(fault));
        }
        let name = load.node.replace('\0', "");
        match thread::Builder::new().name(name).spawn(move || worker.load_and_serve(load)) {
            Ok(lane) => self.lanes.push(lane),
            Err(error) => {
                let fault = Fault::transient(format!("the worker process can start no thread: {error}"));
                self.worker.refuse_model(model, refusal(fault));
            }
        }
    }

    fn compute(&self, run: &Run) {
        if let Err(message) = self.submit(run) {
            self.worker.refuse_job(run.job, FailReason::Malformed(cut(message)));
        }
    }

    fn submit(&self, run: &Run) -> Result<(), String> {
        let inputs = run.inputs.iter().map(|input| {
            let arena = self.arena(input.at)?;
            let tensor = arena.tensor(input)?;
            self.register(arena);
            Ok(tensor)
        });
        let inputs = inputs.collect::<Result<Vec<_>, String>>()?;
        let output = self.arena(run.output)?.output(run.output, run.output_len)?;
        let models = locked(&self.worker.models);
        let no_model = || format!("there is no model {}", run.model);
        let lane = models.as_ref().and_then(|models| models.get(&run.model)).ok_or_else(no_model)?;
        let job = Job { id: JobId(run.job), inputs, conduct: Conduct::Shared };
        lane.send(Task { job, output, at: run.output }).map_err(|_| no_model())
    }

    fn arena(&self, at: SharedAt) -> Result<&'static Arc<MappedArena>, String> {
        self.arenas.get(&at.arena).copied().ok_or_else(|| format!("there is no arena {}", at.arena))
    }

    /// Lets the lanes finish what they have.
    fn stop(self) -> Result<(), ServeError> {
        *locked(&self.worker.models) = None;
        for lane in self.lanes {
            if let Err(panic) = lane.join() {
                tracing::error!(message = panic_text(&*panic), "a model's thread panicked");
            }
        }
        locked(&self.worker.leaving).take().map_or(Ok(()), Err)
    }
}

fn reason(error: JobError) -> FailReason {
    match error {
        JobError::Model(ModelError::OutOfMemory(message)) => FailReason::OutOfMemory(cut(message)),
        JobError::Model(ModelError::Failed(message)) => FailReason::Failed(cut(message)),
        JobError::Model(ModelError::DeviceLost(message)) => FailReason::DeviceLost(cut(message)),
        JobError::Panicked(message) => FailReason::Panicked(cut(message)),
        JobError::Rows { wanted, found } => FailReason::Rows { wanted, found },
        error @ (JobError::Crashed(_) | JobError::Cancelled) => FailReason::Failed(error.to_string()),
    }
}

fn refusal(fault: Fault) -> Refusal {
    Refusal { kind: fault.kind, message: cut(fault.message), help: fault.help.map(cut) }
}

fn cut(mut text: String) -> String {
    if text.len() > MESSAGE {
        text.truncate((0..=MESSAGE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        text.push('…');
    }
    text
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
