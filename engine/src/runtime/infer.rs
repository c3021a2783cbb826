//! Running a model on batches: jobs to an executor, results back in order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::select;

use super::exit::{Exit, Step};
use super::message::Message;
use super::outlets::Outlets;
use super::project::project;
use super::queue::{Packet, Receiver};
use super::shared::{Me, Names};
use super::stats::NodeStats;
use super::window::Window;
use crate::data::{Batch, Column, Reject, RejectRow, RowPos, Tensor, code};
use crate::node::{Fault, ModelError, Padding};
use crate::worker::{Conduct, Done, Executor, Job, JobError, JobId};

/// A stage that runs a model.
pub(super) struct Inferring {
    pub(super) me: Me,
    /// The columns that are the model's inputs.
    pub(super) columns: Vec<usize>,
    pub(super) padding: Padding,
    pub(super) input: Receiver<Message>,
    pub(super) outlets: Outlets,
}

/// A batch under way: as one job, or, after that has failed, as one job for each row.
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
    /// The batch and the row (or all of them) that each job computes.
    jobs: HashMap<JobId, (u64, Option<usize>)>,
    next_job: u64,
    ended: bool,
}

impl Inferring {
    /// Runs until the input ends.
    pub(super) fn run(mut self, start: impl FnOnce() -> Result<Box<dyn Executor>, Fault>) -> Exit {
        match start().map_err(Exit::Faulted).and_then(|mut executor| self.drive(&mut *executor)) {
            Ok(()) => self.outlets.end(),
            Err(exit) => exit,
        }
    }

    fn drive(&mut self, executor: &mut dyn Executor) -> Step {
        let mut state =
            State { window: Window::new(), under_way: HashMap::new(), jobs: HashMap::new(), next_job: 0, ended: false };
        let completions = executor.completions().clone();
        loop {
            while let Some(computed) = state.window.pop() {
                self.outlets.emit(computed.batch, computed.passed, computed.rejects, computed.upto)?;
            }
            if state.ended && state.window.is_empty() {
                return Ok(());
            }
            let wants_input = !state.ended && state.jobs.len() < executor.capacity();
            let died = || Exit::Faulted(Fault::bug("the model's executor has ended"));
            if state.jobs.is_empty() {
                let start = Instant::now();
                let packet = self.input.channel().recv().map_err(|_| Exit::Cancelled)?;
                NodeStats::add_time(&self.me.stats.starved, start);
                self.take(&mut state, executor, packet)?;
            } else if wants_input {
                select! {
                    recv(completions) -> done => self.finish(&mut state, executor, done.map_err(|_| died())?)?,
                    recv(self.input.channel()) -> packet => self.take(&mut state, executor, packet.map_err(|_| Exit::Cancelled)?)?,
                }
            } else {
                let done = completions.recv().map_err(|_| died())?;
                self.finish(&mut state, executor, done)?;
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
        let inputs = self.inputs(&batch, 0..n_rows, executor);
        state.submit(executor, inputs, number, None)?;
        let rows = (0..n_rows).map(|_| None).collect();
        let under_way = UnderWay { batch, passed: message.rejects, upto: message.upto, rows, n_missing: n_rows };
        state.under_way.insert(number, under_way);
        Ok(())
    }

    /// The model's inputs for some rows, padded to the planned number where the model needs it.
    fn inputs(&self, batch: &Batch, rows: std::ops::Range<usize>, executor: &dyn Executor) -> Vec<Tensor> {
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

    fn finish(&self, state: &mut State, executor: &mut dyn Executor, done: Done) -> Step {
        self.me.stats.work.fetch_add(done.micros * 1000, Ordering::Relaxed);
        let (number, row) = state.jobs.remove(&done.id).expect("each job comes out once");
        let mut under_way = state.under_way.remove(&number).expect("a batch is under way until its last job ends");
        match (done.outcome, row) {
            (Ok(outputs), row) => under_way.fill(row, &outputs),
            (Err(JobError::Cancelled), _) => return Err(Exit::Cancelled),
            // Which row is to blame is found by computing each alone.
            (Err(_), None) if under_way.rows.len() > 1 => {
                for row_idx in 0..under_way.rows.len() {
                    let inputs = self.inputs(&under_way.batch, row_idx..row_idx + 1, executor);
                    state.submit(executor, inputs, number, Some(row_idx))?;
                }
            }
            (Err(error), row) => under_way.refuse(row.unwrap_or(0), &error),
        }
        if under_way.n_missing > 0 {
            state.under_way.insert(number, under_way);
            return Ok(());
        }
        state.window.finish(number, self.compute(under_way)?);
        Ok(())
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

impl State {
    fn submit(&mut self, executor: &mut dyn Executor, inputs: Vec<Tensor>, number: u64, row: Option<usize>) -> Step {
        let id = JobId(self.next_job);
        self.next_job += 1;
        self.jobs.insert(id, (number, row));
        Ok(executor.submit(Job { id, inputs, conduct: Conduct::Shared })?)
    }
}

impl UnderWay {
    fn fill(&mut self, row: Option<usize>, outputs: &[Tensor]) {
        match row {
            Some(row_idx) => self.set(row_idx, Ok(outputs.iter().map(|output| output.rows(0, 1)).collect())),
            None => (0..self.rows.len()).for_each(|row_idx| {
                self.set(row_idx, Ok(outputs.iter().map(|output| output.rows(row_idx, 1)).collect()));
            }),
        }
    }

    fn refuse(&mut self, row_idx: usize, error: &JobError) {
        let code = match error {
            JobError::Panicked(_) => code::PANIC,
            JobError::Crashed(_) => code::WORKER_CRASH,
            JobError::Model(ModelError::OutOfMemory(_) | ModelError::Failed(_) | ModelError::DeviceLost(_))
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
