//! Which worker computes which job, and what a worker's death means: the rules of the fleet, without any process.
//!
//! [`Dispatch`] is told what happened (a job came, a worker answered, a worker died, time passed) and gives out
//! [`Command`]s. It opens nothing, waits for nothing and asks no clock, so each rule can be tested by value.
//!
//! The rules: all workers with a model pull from one queue. The jobs in flight in a worker that dies are suspects: they
//! are computed one at a time, by a worker that does nothing else meanwhile, and only a death in that state convicts a
//! job. A convicted job is the submitter's to take apart. Deaths beside other jobs count against the worker's restarts,
//! those of suspects against a budget of their own.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::medians::Medians;
use super::{Conduct, Done, Job, JobError, JobId};
use crate::data::Tensor;
use crate::node::{Fault, ModelError, Span};

/// Deaths in a row, without a job computed in between, after which a worker is given up.
const MAX_DEATHS: usize = 5;
/// Deaths of suspects in a row, without a job computed in between, after which a worker is given up: a batch of 65,536
/// rows is taken apart in 16 steps, and each may cost one; twice that leaves room for accidents.
const MAX_CONVICTIONS: usize = 32;
/// How long a worker may take from its start to its first word.
const HELLO_PATIENCE: Duration = Duration::from_secs(60);
/// How long a worker may take to load its models: weights of many gigabytes come from slow places too.
const LOAD_PATIENCE: Duration = Duration::from_secs(30 * 60);
/// A batch that takes so many times the median of its shape is taken for hung, if it takes longer than the floor too.
const HUNG_MEDIANS: u32 = 20;
/// Pauses before the restarts, by deaths in a row.
const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// What the fleet is to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Start a worker process.
    Start {
        /// Which worker.
        worker: usize,
    },
    /// Send a job to a worker.
    Run {
        /// Which worker.
        worker: usize,
        /// Which model.
        model: usize,
        /// The number by which the worker names it.
        number: u64,
        /// The inputs.
        inputs: Vec<Tensor>,
    },
    /// Kill a worker's process.
    Kill {
        /// Which worker.
        worker: usize,
    },
    /// Give a finished job to its submitter.
    Finish {
        /// Which model.
        model: usize,
        /// The job.
        done: Done,
    },
    /// No job of the model will be computed any more.
    Fail {
        /// Which model.
        model: usize,
        /// Why.
        fault: Fault,
    },
}

/// What came of a job in a worker.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) result: Result<Vec<Tensor>, JobError>,
    pub(super) micros: u64,
    pub(super) spans: Vec<Span>,
    pub(super) cap: Option<super::frame::Cap>,
}

/// What one worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its process starts when this time has come.
    Due(Instant),
    /// Its process was started at this time, and has said nothing yet.
    Starting(Instant),
    /// It has opened its device: it loads models and computes.
    Serving,
    /// It will not come back.
    Lost,
}

/// What is known of a model in a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Loading {
    Awaited,
    Ready { depth: usize },
    Failed(Fault),
}

struct Worker {
    phase: Phase,
    models: BTreeMap<usize, Loading>,
    /// Since when the models that it awaits are being loaded, once it serves.
    loading_since: Instant,
    in_flight: BTreeMap<u64, InFlight>,
    /// Deaths beside other jobs or before any, in a row.
    deaths: usize,
    /// Deaths with a suspect alone, in a row.
    convictions: usize,
    /// It ran out of memory down to one row, and was replaced for it once.
    replaced_for_memory: bool,
    /// Why it is being killed.
    killed_for: Option<String>,
}

struct InFlight {
    model: usize,
    job: Job,
    /// Since when the worker can have been at it: it computes a model's jobs one after the other.
    head_since: Option<Instant>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    failed: bool,
}

/// The state of the fleet.
pub(super) struct Dispatch {
    workers: Vec<Worker>,
    queues: Vec<Queue>,
    suspects: VecDeque<(usize, Job)>,
    quarantine: Option<usize>,
    medians: Medians,
    patience: Duration,
    next_number: u64,
    commands: Vec<Command>,
}

impl Dispatch {
    /// Workers that each hold some of `n_models` models, and are due to start now. A job that takes longer than
    /// `patience`, and than twenty times the median of its shape, is taken for hung.
    pub(super) fn new(workers: &[Vec<usize>], n_models: usize, patience: Duration, now: Instant) -> Self {
        let workers = workers.iter().map(|models| Worker {
            phase: Phase::Due(now),
            models: models.iter().map(|&model| (model, Loading::Awaited)).collect(),
            loading_since: now,
            in_flight: BTreeMap::new(),
            deaths: 0,
            convictions: 0,
            replaced_for_memory: false,
            killed_for: None,
        });
        Dispatch {
            workers: workers.collect(),
            queues: (0..n_models).map(|_| Queue::default()).collect(),
            suspects: VecDeque::new(),
            quarantine: None,
            medians: Medians::default(),
            patience,
            next_number: 0,
            commands: Vec::new(),
        }
    }

    /// What is to be done now, in order.
    pub(super) fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// What worker `worker` is doing.
    pub(super) fn phase(&self, worker: usize) -> Phase {
        self.workers[worker].phase
    }

    /// Whether suspects are computed in worker `worker`.
    pub(super) fn is_quarantine(&self, worker: usize) -> bool {
        self.quarantine == Some(worker)
    }

    /// Whether model `model` is loaded somewhere.
    pub(super) fn is_ready(&self, model: usize) -> bool {
        self.workers.iter().any(|worker| worker.depth(model).is_some())
    }

    /// The worker that computes a job now: not one in which it waits behind another.
    pub(super) fn worker_of(&self, model: usize, id: JobId) -> Option<usize> {
        self.workers.iter().position(|worker| {
            let computed = worker.in_flight.values().filter(|in_flight| in_flight.head_since.is_some());
            computed.into_iter().any(|in_flight| (in_flight.model, in_flight.job.id) == (model, id))
        })
    }

    /// Jobs of `model` that are worth having submitted, given which workers there are.
    pub(super) fn capacity(&self, model: usize) -> usize {
        let depths = self.workers.iter().filter_map(|worker| worker.depth(model));
        depths.sum::<usize>().max(2)
    }

    /// A job has come.
    pub(super) fn submit(&mut self, model: usize, job: Job, now: Instant) {
        match job.conduct {
            Conduct::Shared => self.queues[model].jobs.push_back(job),
            Conduct::Alone => self.suspects.push_back((model, job)),
        }
        self.pump(now);
    }

    /// Gives up the jobs of `model` that no worker has.
    pub(super) fn cancel(&mut self, model: usize) {
        let suspects = std::mem::take(&mut self.suspects);
        let (cancelled, others) = suspects.into_iter().partition(|(of, _)| *of == model);
        self.suspects = others;
        let cancelled: VecDeque<(usize, Job)> = cancelled;
        let queued = std::mem::take(&mut self.queues[model].jobs);
        for job in queued.into_iter().chain(cancelled.into_iter().map(|(_, job)| job)) {
            self.finish(model, Done::failed(job.id, JobError::Cancelled));
        }
    }

    /// Time has passed: workers that are due start, those that are hung are killed.
    pub(super) fn tick(&mut self, now: Instant) {
        for worker_idx in 0..self.workers.len() {
            match self.workers[worker_idx].phase {
                Phase::Due(at) if at <= now => {
                    self.workers[worker_idx].phase = Phase::Starting(now);
                    self.commands.push(Command::Start { worker: worker_idx });
                }
                Phase::Starting(since) if now.saturating_duration_since(since) > HELLO_PATIENCE => {
                    self.kill(worker_idx, format!("did not answer within {} s of its start", HELLO_PATIENCE.as_secs()));
                }
                Phase::Serving => {
                    if let Some(why) = self.hung(worker_idx, now) {
                        self.kill(worker_idx, why);
                    }
                }
                Phase::Due(_) | Phase::Starting(_) | Phase::Lost => {}
            }
        }
        self.pump(now);
    }

    fn hung(&self, worker: usize, now: Instant) -> Option<String> {
        let is_loading = self.workers[worker].models.values().any(|loading| *loading == Loading::Awaited);
        if is_loading && now.saturating_duration_since(self.workers[worker].loading_since) > LOAD_PATIENCE {
            return Some(format!("did not load its models within {} minutes", LOAD_PATIENCE.as_secs() / 60));
        }
        self.workers[worker].in_flight.values().find_map(|in_flight| {
            let taken = now.saturating_duration_since(in_flight.head_since?);
            let median = self.medians.of(worker, in_flight.model, &in_flight.job.inputs);
            let patience = self.patience.max(median.map_or(Duration::ZERO, |median| median * HUNG_MEDIANS));
            (taken > patience).then(|| format!("did not come back from a batch within {:.0?}", patience))
        })
    }

    fn kill(&mut self, worker: usize, why: String) {
        if self.workers[worker].killed_for.is_none() {
            self.workers[worker].killed_for = Some(why);
            self.commands.push(Command::Kill { worker });
        }
    }

    /// A worker has opened its device.
    pub(super) fn opened(&mut self, worker: usize, now: Instant) {
        self.workers[worker].phase = Phase::Serving;
        self.workers[worker].loading_since = now;
    }

    /// A worker has loaded a model, and `depth` jobs are worth sending to it.
    pub(super) fn ready(&mut self, worker: usize, model: usize, depth: usize, now: Instant) {
        self.workers[worker].models.insert(model, Loading::Ready { depth: depth.max(1) });
        self.pump(now);
    }

    /// A worker cannot load a model.
    pub(super) fn load_failed(&mut self, worker: usize, model: usize, fault: Fault, now: Instant) {
        self.workers[worker].models.insert(model, Loading::Failed(fault));
        self.fail_deserted_models();
        self.pump(now);
    }

    /// A worker will never be of use: it is another program, or its device cannot be opened.
    pub(super) fn refused(&mut self, worker: usize, fault: &Fault, now: Instant) {
        self.give_up(worker, fault);
        self.kill(worker, "was of no use".to_owned());
        self.pump(now);
    }

    /// A worker has answered a job; jobs that it no longer has are ignored.
    pub(super) fn finished(&mut self, worker: usize, number: u64, outcome: Outcome, now: Instant) {
        let Some(InFlight { model, job, .. }) = self.workers[worker].in_flight.remove(&number) else { return };
        let next = self.workers[worker].in_flight.values_mut().find(|other| other.model == model);
        if let Some(next) = next {
            next.head_since.get_or_insert(now);
        }
        match &outcome.result {
            // The device's fault, not the job's: another worker, or this one's successor, computes it.
            Err(JobError::Model(ModelError::DeviceLost(why))) => {
                let why = format!("lost its device: {why}");
                self.requeue(model, job);
                self.kill(worker, why);
                return self.pump(now);
            }
            Err(JobError::Model(ModelError::OutOfMemory(why))) if !self.workers[worker].replaced_for_memory => {
                let why = format!("stayed out of memory: {why}");
                self.workers[worker].replaced_for_memory = true;
                self.requeue(model, job);
                self.kill(worker, why);
                return self.pump(now);
            }
            Err(_) => {}
            Ok(_) => {
                let this = &mut self.workers[worker];
                (this.deaths, this.convictions) = (0, 0);
                self.medians.note(worker, model, &job.inputs, Duration::from_micros(outcome.micros));
            }
        }
        let Outcome { result, micros, spans, cap } = outcome;
        self.finish(model, Done { id: job.id, outcome: result, micros, worker, spans, cap });
        self.pump(now);
    }

    /// A worker says why it is about to leave.
    pub(super) fn leaving(&mut self, worker: usize, fault: &Fault) {
        self.workers[worker].killed_for = Some(format!("cannot go on: {}", fault.message));
    }

    /// Whether a worker has the job that is numbered so.
    pub(super) fn has(&self, number: u64) -> bool {
        self.workers.iter().any(|worker| worker.in_flight.contains_key(&number))
    }

    /// A worker's process has ended: `who` it was, and `how` ("died of signal 9"). Says what it died of: the reason that
    /// it was killed for, where it was.
    pub(super) fn died(&mut self, worker: usize, who: &str, how: &str, last_words: &str, now: Instant) -> String {
        let in_flight = std::mem::take(&mut self.workers[worker].in_flight);
        let was_lost = self.workers[worker].phase == Phase::Lost;
        let killed_for = self.workers[worker].killed_for.take();
        let how = killed_for.as_deref().unwrap_or(how);
        for loading in self.workers[worker].models.values_mut() {
            *loading = Loading::Awaited;
        }
        let is_conviction = in_flight.values().any(|suspect| suspect.job.conduct == Conduct::Alone);
        for (_, InFlight { model, job, .. }) in in_flight {
            match job.conduct {
                Conduct::Alone => self.finish(model, Done::failed(job.id, JobError::Crashed(how.to_owned()))),
                Conduct::Shared => self.suspects.push_back((model, Job { conduct: Conduct::Alone, ..job })),
            }
        }
        let this = &mut self.workers[worker];
        if is_conviction {
            this.convictions += 1;
        } else {
            this.deaths += 1;
        }
        if was_lost {
            // It was given up before it died.
        } else if this.deaths >= MAX_DEATHS || this.convictions >= MAX_CONVICTIONS {
            let fault = given_up(who, how, last_words, this.deaths.max(this.convictions));
            self.give_up(worker, &fault);
        } else {
            // A suspect's death says nothing against the worker.
            let pause = if is_conviction { Duration::ZERO } else { PAUSES[(this.deaths - 1).min(PAUSES.len() - 1)] };
            this.phase = Phase::Due(now + pause);
        }
        self.pump(now);
        how.to_owned()
    }

    /// When [`Dispatch::tick`] has something to do next, if nothing else happens.
    pub(super) fn next_tick(&self, now: Instant) -> Duration {
        const LOOK: Duration = Duration::from_millis(250);
        let waits = self.workers.iter().filter_map(|worker| match worker.phase {
            Phase::Due(at) => Some(at.saturating_duration_since(now)),
            _ => None,
        });
        waits.min().unwrap_or(LOOK).min(LOOK)
    }

    fn give_up(&mut self, worker: usize, fault: &Fault) {
        let this = &mut self.workers[worker];
        this.phase = Phase::Lost;
        for loading in this.models.values_mut() {
            *loading = Loading::Failed(fault.clone());
        }
        if self.quarantine == Some(worker) {
            self.quarantine = None;
        }
        self.fail_deserted_models();
    }

    /// Models that no worker has or will have.
    fn fail_deserted_models(&mut self) {
        for model in 0..self.queues.len() {
            let states = || self.workers.iter().filter_map(|worker| worker.models.get(&model));
            if self.queues[model].failed || states().any(|loading| !matches!(loading, Loading::Failed(_))) {
                continue;
            }
            let fault = states().find_map(|loading| match loading {
                Loading::Failed(fault) => Some(fault.clone()),
                Loading::Awaited | Loading::Ready { .. } => None,
            });
            self.queues[model].failed = true;
            let fault = fault.unwrap_or_else(|| Fault::bug("a model was placed on no worker"));
            self.commands.push(Command::Fail { model, fault });
        }
    }

    fn finish(&mut self, model: usize, done: Done) {
        self.commands.push(Command::Finish { model, done });
    }

    /// Puts a job back to where it came from, before the others.
    fn requeue(&mut self, model: usize, job: Job) {
        match job.conduct {
            Conduct::Shared => self.queues[model].jobs.push_front(job),
            Conduct::Alone => self.suspects.push_front((model, job)),
        }
    }

    /// Sends what can be sent.
    fn pump(&mut self, now: Instant) {
        self.choose_quarantine();
        self.send_suspect(now);
        for model in 0..self.queues.len() {
            while let Some(worker) = self.room_for(model) {
                let Some(job) = self.queues[model].jobs.pop_front() else { break };
                self.send(worker, model, job, now);
            }
        }
    }

    /// Suspects are computed by the worker that just died, or else by the one with the least to finish.
    fn choose_quarantine(&mut self) {
        if let Some(worker) = self.quarantine {
            let is_needed = self.suspects.iter().any(|(model, _)| self.workers[worker].holds(*model))
                || self.workers[worker].in_flight.values().any(|in_flight| in_flight.job.conduct == Conduct::Alone);
            if is_needed {
                return;
            }
            self.quarantine = None;
        }
        let Some((model, _)) = self.suspects.front() else { return };
        let candidates = self.workers.iter().enumerate().filter(|(_, worker)| worker.holds(*model));
        let chosen = candidates.min_by_key(|(_, worker)| (worker.phase == Phase::Serving, worker.in_flight.len()));
        self.quarantine = chosen.map(|(worker_idx, _)| worker_idx);
    }

    fn send_suspect(&mut self, now: Instant) {
        let Some(worker) = self.quarantine else { return };
        let this = &self.workers[worker];
        if !this.in_flight.is_empty() || this.killed_for.is_some() {
            return;
        }
        let at = self.suspects.iter().position(|(model, _)| this.depth(*model).is_some());
        if let Some((model, job)) = at.and_then(|at| self.suspects.remove(at)) {
            self.send(worker, model, job, now);
        }
    }

    /// The worker with the least of this model's jobs, if one has room for another.
    fn room_for(&self, model: usize) -> Option<usize> {
        let candidates = self.workers.iter().enumerate().filter_map(|(worker_idx, worker)| {
            let n_in_flight = worker.in_flight.values().filter(|in_flight| in_flight.model == model).count();
            let has_room = worker.depth(model)? > n_in_flight && worker.killed_for.is_none();
            (has_room && self.quarantine != Some(worker_idx)).then_some((n_in_flight, worker_idx))
        });
        candidates.min().map(|(_, worker_idx)| worker_idx)
    }

    fn send(&mut self, worker: usize, model: usize, job: Job, now: Instant) {
        let number = self.next_number;
        self.next_number += 1;
        let inputs = job.inputs.clone();
        let this = &mut self.workers[worker];
        let is_head = !this.in_flight.values().any(|in_flight| in_flight.model == model);
        this.in_flight.insert(number, InFlight { model, job, head_since: is_head.then_some(now) });
        self.commands.push(Command::Run { worker, model, number, inputs });
    }
}

impl Worker {
    /// How many jobs of a model it takes at once, if the model is loaded.
    fn depth(&self, model: usize) -> Option<usize> {
        match (self.phase, self.models.get(&model)?) {
            (Phase::Serving, Loading::Ready { depth }) => Some(*depth),
            _ => None,
        }
    }

    /// Whether it has the model, or will have it.
    fn holds(&self, model: usize) -> bool {
        self.phase != Phase::Lost && matches!(self.models.get(&model), Some(Loading::Awaited | Loading::Ready { .. }))
    }
}

fn given_up(who: &str, how: &str, last_words: &str, times: usize) -> Fault {
    let fault = Fault::transient(format!("{who} {how}, {times} times in a row without a batch in between"));
    if last_words.is_empty() { fault } else { fault.detail(format!("its last words:\n{last_words}")) }
}

#[cfg(test)]
mod tests;
