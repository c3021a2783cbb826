//! The one loop that serves a loaded model, in a thread of the coordinator as in a worker process.
//!
//! It keeps as many batches under way as the model has slots, catches panics, and deals with a device that is out of
//! memory: the same rows are computed again, first alone and then in smaller and smaller pieces, and what fits is
//! remembered. So the lack of memory costs time and never a row, as long as a single row fits.
//!
//! It knows nothing of where jobs come from or where results go.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{iter, thread};

use crossbeam_channel::{Sender, bounded};
use rayon::ThreadPool;

use super::caps::Caps;
use super::frame::Cap;
use super::gate::{Entered, Gate};
use super::gathered::Gathered;
use super::{Done, Job, JobError, execute};
use crate::data::{HeapPool, Tensor};
use crate::node::{Computed, Model, ModelError, Pending};

/// Jobs without trouble after which a slot that was given up is used again.
const PATIENCE: u32 = 64;

/// A loaded model and what serves it.
pub(super) struct Lane {
    /// Locked for as long as a batch is started, and handed over to the pieces' finisher for as long as it recovers from
    /// a lack of memory. Whoever holds it may wait at the gate, never the other way round.
    model: Mutex<Box<dyn Model>>,
    slots: usize,
    caps: Mutex<Caps>,
    gate: Gate,
    /// Absent for a device of its own.
    pool: Option<Arc<ThreadPool>>,
    alloc: HeapPool,
}

impl Lane {
    /// Serves `model`. Those that share a device share `gate`. A model that computes on the host does so on `pool`, which
    /// bounds the cores; one with a device of its own has none: it would only keep the pool's threads, and the models
    /// that want them, waiting for the device. `caps` is what is known of the device's memory.
    pub(super) fn new(model: Box<dyn Model>, caps: Vec<Cap>, gate: &Gate, pool: Option<&Arc<ThreadPool>>) -> Self {
        Lane {
            slots: model.slots().max(1),
            model: Mutex::new(model),
            caps: Mutex::new(Caps::new(caps)),
            gate: gate.clone(),
            pool: pool.cloned(),
            alloc: HeapPool::new(),
        }
    }

    /// Jobs worth having before the first is done: one for each slot, and one to start next.
    pub(super) fn depth(&self) -> usize {
        self.slots + 1
    }

    /// Computes what `next` gives until it gives nothing more, and tells of each result, in the same order.
    pub(super) fn serve(self, next: impl FnMut() -> Option<Job>, tell: impl FnMut(Done) + Send) {
        if self.slots == 1 {
            self.serve_inline(next, tell);
        } else {
            self.serve_overlapped(next, tell);
        }
    }

    fn serve_inline(&self, next: impl FnMut() -> Option<Job>, tell: impl FnMut(Done)) {
        let mut finisher = Finisher::new(self, tell);
        for piece in iter::from_fn(next).flat_map(|job| self.pieces(job)) {
            let started = self.start(&mut **self.model(), piece, None);
            finisher.take(started, &mut || None);
        }
    }

    /// One thread starts pieces, another waits for them: the device has the next one while it computes the one before.
    fn serve_overlapped(&self, next: impl FnMut() -> Option<Job>, tell: impl FnMut(Done) + Send) {
        let (give_back, slots) = bounded(self.slots);
        (0..self.slots).try_for_each(|_| give_back.send(())).expect("the receiver is here");
        let (sender, started) = bounded(self.slots);
        // All is moved in, so that the other thread ends even if this one panics.
        thread::scope(move |scope| {
            let finish = move || {
                let mut finisher = Finisher::new(self, tell);
                while let Ok(piece) = started.recv() {
                    finisher.take(piece, &mut || started.try_recv().ok());
                }
            };
            let name = format!("{}/wait", thread::current().name().unwrap_or_default());
            thread::Builder::new().name(name).spawn_scoped(scope, finish).expect("a thread can be started");
            for piece in iter::from_fn(next).flat_map(|job| self.pieces(job)) {
                let Ok(()) = slots.recv() else { return };
                let slot = SlotUsed(give_back.clone());
                let mut model = self.model();
                let piece = self.start(&mut **model, piece, Some(slot));
                // Still with the model locked: whoever has it next finds every piece that is under way. There is room,
                // since each piece has a slot.
                if sender.send(piece).is_err() {
                    return;
                }
                drop(model);
            }
            drop(sender);
        });
    }

    /// A job cut into pieces that are known to fit. What happens to the first ones decides over the later ones.
    fn pieces(&self, job: Job) -> impl Iterator<Item = Piece> + use<'_> {
        let (n_rows, shape) = (job.n_rows(), Caps::shape(&job.inputs));
        let job = Arc::new(job);
        let mut next = Some(0);
        iter::from_fn(move || {
            let start = next?;
            let end = start + self.caps().rows(&shape, n_rows - start);
            next = (end < n_rows).then_some(end);
            Some(Piece { job: job.clone(), rows: start..end, is_last: end == n_rows })
        })
    }

    fn start(&self, model: &mut dyn Model, piece: Piece, slot: Option<SlotUsed>) -> Started {
        let entered = self.gate.enter();
        let since = Instant::now();
        let pending = piece.inputs().and_then(|inputs| self.on_host(|| execute::start(model, &inputs)));
        Started { piece, slot, since, under_way: pending.map(|pending| (pending, entered)) }
    }

    /// Computes `inputs` while nothing else is under way.
    fn compute(&self, model: &mut dyn Model, inputs: &[Tensor]) -> Result<Computed, JobError> {
        let pending = self.on_host(|| execute::start(model, inputs))?;
        execute::wait(pending, inputs.first().map_or(0, Tensor::n_rows))
    }

    fn on_host<T: Send>(&self, call: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(call),
            None => call(),
        }
    }

    fn model(&self) -> MutexGuard<'_, Box<dyn Model>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn caps(&self) -> MutexGuard<'_, Caps> {
        self.caps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Some rows of a job.
struct Piece {
    job: Arc<Job>,
    rows: Range<usize>,
    is_last: bool,
}

impl Piece {
    fn inputs(&self) -> Result<Vec<Tensor>, JobError> {
        let n_rows = self.job.n_rows();
        if let Some(other) = self.job.inputs.iter().find(|input| input.n_rows() != n_rows) {
            let message = format!("inputs of {n_rows} and of {} rows", other.n_rows());
            return Err(ModelError::Failed(message).into());
        }
        if self.rows == (0..n_rows) {
            return Ok(self.job.inputs.clone());
        }
        Ok(self.job.inputs.iter().map(|input| input.rows(self.rows.start, self.rows.len())).collect())
    }
}

/// A slot of the model, free again when this is dropped.
struct SlotUsed(Sender<()>);

impl Drop for SlotUsed {
    fn drop(&mut self) {
        // Nobody is there to take it when the lane ends.
        let _ = self.0.send(());
    }
}

/// A piece under way, or one that could not be started.
struct Started {
    piece: Piece,
    slot: Option<SlotUsed>,
    since: Instant,
    under_way: Result<(Box<dyn Pending>, Entered), JobError>,
}

/// A piece that is no longer under way.
struct Settled {
    piece: Piece,
    slot: Option<SlotUsed>,
    micros: u64,
    outcome: Result<Computed, JobError>,
}

impl Started {
    fn settle(self) -> Settled {
        let Started { piece, slot, since, under_way } = self;
        let outcome = under_way.and_then(|(pending, entered)| {
            let outcome = execute::wait(pending, piece.rows.len());
            drop(entered);
            outcome
        });
        Settled { piece, slot, micros: since.elapsed().as_micros() as u64, outcome }
    }
}

/// Takes pieces in the order in which they were started, and makes results of them.
struct Finisher<'a, T> {
    lane: &'a Lane,
    tell: T,
    gathered: Gathered,
    /// Whether the job being gathered ran out of memory.
    was_short: bool,
    /// Slots that are not used, because as many batches at once were too much.
    given_up: VecDeque<SlotUsed>,
    /// Jobs without trouble.
    quiet: u32,
}

impl<'a, T: FnMut(Done)> Finisher<'a, T> {
    fn new(lane: &'a Lane, tell: T) -> Self {
        let gathered = Gathered::default();
        Finisher { lane, tell, gathered, was_short: false, given_up: VecDeque::new(), quiet: 0 }
    }

    /// Waits for a piece; `later` gives those that were started after it.
    fn take(&mut self, started: Started, later: &mut dyn FnMut() -> Option<Started>) {
        let settled = started.settle();
        if is_short(&settled.outcome) {
            self.recover(settled, later);
        } else {
            self.gather(settled);
        }
    }

    /// Computes what found no memory again, once nothing is under way.
    fn recover(&mut self, first: Settled, later: &mut dyn FnMut() -> Option<Started>) {
        // Their slots are kept, so there are not many. Twice: the other thread may be at the gate with the model locked,
        // and gets through it only if what is under way here ends.
        let mut settled = vec![first];
        settled.extend(iter::from_fn(&mut *later).map(Started::settle));
        let mut model = self.lane.model();
        settled.extend(iter::from_fn(&mut *later).map(Started::settle));
        let _alone = self.lane.gate.alone();
        for piece in settled {
            if is_short(&piece.outcome) {
                self.again(&mut **model, piece);
            } else {
                self.gather(piece);
            }
        }
    }

    fn again(&mut self, model: &mut dyn Model, mut settled: Settled) {
        self.was_short = true;
        self.quiet = 0;
        let piece = &settled.piece;
        let n_rows = piece.rows.len();
        let (mut at_once, mut done) = (n_rows, 0);
        let failed = loop {
            let end = (done + at_once).min(n_rows);
            let rows = piece.rows.start + done..piece.rows.start + end;
            let part = Piece { job: piece.job.clone(), rows, is_last: false };
            let since = Instant::now();
            match part.inputs().and_then(|inputs| self.lane.compute(model, &inputs)) {
                Ok(computed) => {
                    self.gathered.add(end - done, computed, since.elapsed().as_micros() as u64);
                    done = end;
                    if done == n_rows {
                        break None;
                    }
                }
                Err(JobError::Model(ModelError::OutOfMemory(reason))) if end - done > 1 => {
                    at_once = (end - done).div_ceil(2);
                    tracing::debug!(rows = end - done, reason, "out of memory");
                }
                Err(error) => break Some(error),
            }
        };
        match failed {
            Some(error) => self.gathered.fail(error),
            None if at_once < n_rows => {
                let shape = Caps::shape(&piece.job.inputs);
                tracing::info!(rows = at_once, "the device's memory holds batches of so many rows");
                self.lane.caps().met(&shape, at_once);
            }
            // It fits when it is alone: one batch fewer at a time, as long as there is another.
            None if self.given_up.len() + 1 < self.lane.slots => self.given_up.extend(settled.slot.take()),
            None => {}
        }
        self.told(settled);
    }

    fn gather(&mut self, mut settled: Settled) {
        match std::mem::replace(&mut settled.outcome, Err(JobError::Cancelled)) {
            Ok(computed) => self.gathered.add(settled.piece.rows.len(), computed, settled.micros),
            Err(error) => self.gathered.fail(error),
        }
        self.told(settled);
    }

    /// Tells of the job if that was its last piece.
    fn told(&mut self, settled: Settled) {
        let Settled { piece, slot, .. } = settled;
        drop(slot);
        if !piece.is_last {
            return;
        }
        let gathered = std::mem::take(&mut self.gathered);
        let shape = Caps::shape(&piece.job.inputs);
        let mut caps = self.lane.caps();
        let is_cut = gathered.is_cut(piece.job.n_rows());
        let cap = Cap { rows: caps.rows(&shape, piece.job.n_rows()), shape };
        if !std::mem::take(&mut self.was_short) {
            self.quiet += 1;
            if is_cut {
                caps.passed(&cap.shape);
            }
        }
        drop(caps);
        if self.quiet >= PATIENCE {
            self.quiet = 0;
            self.given_up.pop_front();
        }
        (self.tell)(gathered.done(&piece.job, cap, &self.lane.alloc));
    }
}

fn is_short(outcome: &Result<Computed, JobError>) -> bool {
    matches!(outcome, Err(JobError::Model(ModelError::OutOfMemory(_))))
}

#[cfg(test)]
mod tests;
