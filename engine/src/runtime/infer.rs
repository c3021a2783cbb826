//! Running a model on batches: jobs to an executor, results back in order.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::select;
use serde_json::json;

use super::board::{Described, Hold, Holding, Lane};
use super::crew::Crewed;
use super::exit::{Exit, Step};
use super::message::Message;
use super::outlets::Outlets;
use super::project::project;
use super::queue::{Packet, Receiver};
use super::shared::{Me, Names, rows_text};
use super::stats::NodeStats;
use super::trace::{Place, Trace};
use super::window::Window;
use crate::data::{Batch, Column, Reject, RejectRow, RowPos, Tensor, code};
use crate::node::{Fault, ModelError, Padding, SpanStage, monotonic_ns};
use crate::worker::{AtWork, Conduct, Done, Executor, Job, JobError, JobId, WorkerStats};

/// A stage that runs a model.
pub(super) struct Inferring {
    pub(super) me: Me,
    /// The columns that are the model's inputs.
    pub(super) columns: Vec<usize>,
    pub(super) padding: Padding,
    pub(super) input: Receiver<Message>,
    pub(super) outlets: Outlets,
    /// The place in the placement of each worker that the executor names.
    pub(super) places: Vec<usize>,
    /// Who knows which worker computes a job.
    pub(super) at_work: Option<Arc<dyn AtWork>>,
}

/// A batch under way: as one job, or, after that has failed, in parts.
struct UnderWay {
    batch: Batch,
    passed: Vec<Arc<RejectRow>>,
    upto: RowPos,
    /// By row: its outputs, or why it has none. `None` while its job runs.
    rows: Vec<Option<Result<Vec<Tensor>, Reject>>>,
    n_missing: usize,
}

struct Computed {
    batch: Option<Batch>,
    passed: Vec<Arc<RejectRow>>,
    rejects: Vec<Arc<RejectRow>>,
    upto: RowPos,
}

struct State {
    window: Window<Computed>,
    under_way: HashMap<u64, UnderWay>,
    lane: Arc<Lane>,
    /// Each with what it is for the watchdog.
    jobs: HashMap<JobId, (Part, Hold)>,
    next_job: u64,
    ended: bool,
}

/// What a job computes.
#[derive(Clone, Debug)]
struct Part {
    /// The number of the batch.
    batch: u64,
    rows: Range<usize>,
    /// When it was submitted, on the system's monotonic clock.
    since_ns: u64,
    /// Whether a worker has died of it before.
    crashed: Crashed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crashed {
    Never,
    Once,
}

impl Inferring {
    /// Runs until the input ends.
    pub(super) fn run(mut self, start: impl FnOnce() -> Result<Crewed, Fault>) -> Exit {
        let lane = self.me.lane(0);
        let loading = lane.hold(Arc::new(Described::new("loading the model")));
        let started = start();
        drop(loading);
        let driven = started.map_err(Exit::Faulted).and_then(|Crewed { mut executor, places }| {
            self.places = places;
            self.at_work = executor.at_work();
            self.drive(&mut *executor, lane)
        });
        match driven {
            Ok(()) => self.outlets.end(),
            Err(exit) => exit,
        }
    }

    fn drive(&mut self, executor: &mut dyn Executor, lane: Arc<Lane>) -> Step {
        let mut state = State {
            window: Window::new(),
            under_way: HashMap::new(),
            lane,
            jobs: HashMap::new(),
            next_job: 0,
            ended: false,
        };
        let completions = executor.completions().clone();
        loop {
            self.me.shared.check()?;
            while let Some(computed) = state.window.pop() {
                self.outlets.emit(computed.batch, computed.passed, computed.rejects, computed.upto)?;
            }
            if state.ended && state.window.is_empty() {
                return Ok(());
            }
            let wants_input = !state.ended && state.jobs.len() < executor.capacity();
            if state.jobs.is_empty() {
                let start = Instant::now();
                let packet = self.input.channel().recv().map_err(|_| Exit::Cancelled)?;
                NodeStats::add_time(&self.me.stats.starved, start);
                self.take(&mut state, executor, packet)?;
            } else if wants_input {
                select! {
                    recv(completions) -> done => match done {
                        Ok(done) => self.finish(&mut state, executor, done)?,
                        Err(_) => return Err(ended(executor)),
                    },
                    recv(self.input.channel()) -> packet => self.take(&mut state, executor, packet.map_err(|_| Exit::Cancelled)?)?,
                }
            } else {
                match completions.recv() {
                    Ok(done) => self.finish(&mut state, executor, done)?,
                    Err(_) => return Err(ended(executor)),
                }
            }
        }
    }

    fn take(&self, state: &mut State, executor: &mut dyn Executor, packet: Packet<Message>) -> Step {
        let Some(message) = self.input.took(packet) else {
            state.ended = true;
            return Ok(());
        };
        self.me.stats.queue.store(self.input.len(), Ordering::Relaxed);
        let Some(batch) = message.batch else {
            state.window.pass(Computed {
                batch: None,
                passed: message.rejects,
                rejects: Vec::new(),
                upto: message.upto,
            });
            return Ok(());
        };
        let n_rows = batch.n_rows();
        self.me.stats.rows_in.fetch_add(n_rows as u64, Ordering::Relaxed);
        let number = state.window.begin();
        let part = Part { batch: number, rows: 0..n_rows, since_ns: 0, crashed: Crashed::Never };
        self.submit(state, executor, &batch, part, Conduct::Shared)?;
        let rows = (0..n_rows).map(|_| None).collect();
        let under_way = UnderWay { batch, passed: message.rejects, upto: message.upto, rows, n_missing: n_rows };
        state.under_way.insert(number, under_way);
        Ok(())
    }

    /// The model's inputs for some rows, padded to the planned number where the model needs it.
    fn inputs(&self, batch: &Batch, rows: Range<usize>, executor: &dyn Executor) -> Vec<Tensor> {
        let planned = match self.padding {
            Padding::ToPlan => self.me.node().schemas[0].batch.unwrap_or(rows.len()).max(rows.len()),
            Padding::None => rows.len(),
        };
        let inputs = self.columns.iter().map(|&column| match &batch.columns()[column] {
            Column::Dense(tensor) if rows == (0..tensor.n_rows()) => {
                tensor.padded(planned).unwrap_or_else(|| copy_padded(tensor, planned, executor))
            }
            Column::Dense(tensor) => copy_padded(&tensor.rows(rows.start, rows.len()), planned, executor),
            _ => panic!("a batch node makes tensors dense"),
        });
        inputs.collect()
    }

    fn submit(
        &self,
        state: &mut State,
        executor: &mut dyn Executor,
        batch: &Batch,
        part: Part,
        conduct: Conduct,
    ) -> Step {
        let inputs = self.inputs(batch, part.rows.clone(), executor);
        let id = JobId(state.next_job);
        state.next_job += 1;
        let computing = Computing {
            id,
            rows: rows_text(&batch.positions()[part.rows.clone()]),
            at_work: self.at_work.clone(),
            workers: self
                .places
                .iter()
                .filter_map(|&place| Some((place, self.me.shared.stats.workers.get(place)?.clone())))
                .collect(),
        };
        let hold = state.lane.hold(Arc::new(computing));
        state.jobs.insert(id, (Part { since_ns: monotonic_ns(), ..part }, hold));
        Ok(executor.submit(Job { id, inputs, conduct })?)
    }

    fn finish(&self, state: &mut State, executor: &mut dyn Executor, done: Done) -> Step {
        self.me.stats.work.fetch_add(done.micros * 1000, Ordering::Relaxed);
        let (part, hold) = state.jobs.remove(&done.id).expect("each job comes out once");
        drop(hold);
        let done = Done { worker: self.places.get(done.worker).copied().unwrap_or(done.worker), ..done };
        let mut under_way = state.under_way.remove(&part.batch).expect("a batch is under way until its last job ends");
        if let Some(worker) = self.me.shared.stats.workers.get(done.worker) {
            if done.outcome.is_ok() {
                worker.add_rows(self.me.node_idx, part.rows.len() as u64);
            }
            if let Some(cap) = &done.cap {
                worker.set_cap(self.me.node_idx, cap.clone());
            }
        }
        if let Some(trace) = &self.me.shared.trace {
            self.trace(trace, &part, &done);
        }
        match done.outcome {
            Ok(outputs) => under_way.fill(part.rows, &outputs),
            Err(JobError::Cancelled) => return Err(Exit::Cancelled),
            Err(error) => match retries(&part, &error) {
                Some((parts, conduct)) => {
                    for part in parts {
                        self.submit(state, executor, &under_way.batch, part, conduct)?;
                    }
                }
                None => part.rows.for_each(|row_idx| under_way.refuse(row_idx, &error)),
            },
        }
        if under_way.n_missing > 0 {
            state.under_way.insert(part.batch, under_way);
            return Ok(());
        }
        state.window.finish(part.batch, self.compute(under_way)?);
        Ok(())
    }

    fn trace(&self, trace: &Trace, part: &Part, done: &Done) {
        let node = &self.me.node().name;
        let args = json!({"batch": part.batch, "rows": part.rows.len(), "worker": done.worker});
        trace.flight(node, done.id.0, (part.since_ns, monotonic_ns()), args.clone());
        for span in &done.spans {
            let stage = match span.stage {
                SpanStage::Upload => "upload",
                SpanStage::Compute => "compute",
                SpanStage::Download => "download",
            };
            let (track, times) = (format!("{node} {stage}"), (span.start_ns, span.end_ns));
            trace.span(Place::Worker(done.worker), &track, stage, times, args.clone());
        }
    }

    /// Rows with outputs as a batch, the others as rejects.
    fn compute(&self, under_way: UnderWay) -> Result<Computed, Fault> {
        let names = Names::of(&self.me.node().schemas[0]);
        let n_outputs = self.me.node().spec.new_types().len();
        let (mut kept, mut rejects) = (Vec::new(), Vec::new());
        let mut outputs: Vec<Vec<Tensor>> = vec![Vec::new(); n_outputs];
        for (row_idx, row) in under_way.rows.into_iter().enumerate() {
            match row.expect("no row is missing").and_then(check_finite) {
                Ok(row) => {
                    kept.push(row_idx);
                    outputs.iter_mut().zip(row).for_each(|(output, tensor)| output.push(tensor));
                }
                Err(reject) => rejects.push(self.me.reject(&names, &under_way.batch, row_idx, reject)?),
            }
        }
        let batch = if rejects.is_empty() { under_way.batch } else { under_way.batch.take(&kept) };
        let columns = outputs.into_iter().map(|rows| Column::Ragged(crate::data::Slice::new(rows))).collect();
        let batch = project(&self.me.node().spec, &[&batch], columns);
        Ok(Computed { batch: Some(batch), passed: under_way.passed, rejects, upto: under_way.upto })
    }
}

/// A job for whoever asks what a model is at.
struct Computing {
    id: JobId,
    rows: String,
    at_work: Option<Arc<dyn AtWork>>,
    /// By the executor's numbers: places in the placement, and what is there.
    workers: Vec<(usize, Arc<WorkerStats>)>,
}

impl Computing {
    fn worker(&self) -> Option<&(usize, Arc<WorkerStats>)> {
        self.workers.get(self.at_work.as_ref()?.worker_of(self.id)?)
    }
}

impl Holding for Computing {
    fn is_waiting(&self) -> bool {
        self.at_work.is_some() && self.worker().is_none()
    }

    fn describe(&self) -> Described {
        let rows = &self.rows;
        Described::new(match self.worker() {
            Some((place, worker)) => {
                let pid = worker.pid.load(Ordering::Relaxed);
                let process = if pid == std::process::id() { String::new() } else { format!(", pid {pid}") };
                format!("worker {place} ({}{process}) computes {rows}", worker.device)
            }
            None if self.at_work.is_some() => format!("{rows} wait for a worker"),
            None => format!("computing {rows}"),
        })
    }
}

impl UnderWay {
    fn fill(&mut self, rows: Range<usize>, outputs: &[Tensor]) {
        for (place, row_idx) in rows.enumerate() {
            self.set(row_idx, Ok(outputs.iter().map(|output| output.rows(place, 1)).collect()));
        }
    }

    fn refuse(&mut self, row_idx: usize, error: &JobError) {
        let code = match error {
            JobError::Panicked(_) => code::PANIC,
            JobError::Crashed(_) => code::WORKER_CRASH,
            JobError::Model(ModelError::OutOfMemory(_)) => code::OUT_OF_MEMORY,
            JobError::Model(ModelError::Failed(_) | ModelError::DeviceLost(_))
            | JobError::Rows { .. }
            | JobError::Cancelled => code::MODEL,
        };
        self.set(row_idx, Err(Reject::new(code, error.to_string())));
    }

    fn set(&mut self, row_idx: usize, row: Result<Vec<Tensor>, Reject>) {
        self.rows[row_idx] = Some(row);
        self.n_missing -= 1;
    }
}

/// What to compute again after a job has failed, to find the rows that are to blame; nothing if that is known.
fn retries(part: &Part, error: &JobError) -> Option<(Vec<Part>, Conduct)> {
    let of = |rows: Range<usize>| Part { rows, crashed: Crashed::Never, ..part.clone() };
    let Range { start, end } = part.rows;
    match error {
        // A worker's death is dear: halves find one row of 64 in 7 deaths. One row is given a second chance, because a
        // worker may also die by accident while it computes it.
        JobError::Crashed(_) if part.rows.len() > 1 => {
            let middle = start + part.rows.len() / 2;
            Some((vec![of(start..middle), of(middle..end)], Conduct::Alone))
        }
        JobError::Crashed(_) if part.crashed == Crashed::Never => {
            Some((vec![Part { crashed: Crashed::Once, ..part.clone() }], Conduct::Alone))
        }
        // Fewer rows were tried where the model runs.
        JobError::Crashed(_) | JobError::Model(ModelError::OutOfMemory(_)) => None,
        _ if part.rows.len() > 1 => {
            Some((part.rows.clone().map(|row_idx| of(row_idx..row_idx + 1)).collect(), Conduct::Shared))
        }
        _ => None,
    }
}

fn ended(executor: &dyn Executor) -> Exit {
    Exit::Faulted(executor.fault().unwrap_or_else(|| Fault::bug("the model's executor has ended")))
}

fn check_finite(outputs: Vec<Tensor>) -> Result<Vec<Tensor>, Reject> {
    if outputs.iter().all(|output| output.view().is_finite()) {
        return Ok(outputs);
    }
    Err(Reject::new(code::NON_FINITE, "the model's output has a NaN or an infinity in it"))
}

fn copy_padded(tensor: &Tensor, planned: usize, executor: &dyn Executor) -> Tensor {
    let mut buffer = executor.alloc().alloc(planned * tensor.row_bytes());
    let (rows, tail) = buffer.bytes_mut().split_at_mut(tensor.bytes().len());
    rows.copy_from_slice(tensor.bytes());
    tail.fill(0);
    let mut shape = tensor.shape().to_vec();
    shape[0] = planned;
    Tensor::new(tensor.dtype(), shape, buffer.freeze())
}
