//! Models on threads of this process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use rayon::ThreadPool;

use super::gate::Gate;
use super::lane::Lane;
use super::{AtWork, Done, Executor, Job, JobError, JobId};
use crate::data::{Alloc, HeapPool};
use crate::node::{Fault, LoadModel};

/// One thread for each instance of a model; all take jobs from one queue, so a slow one gets fewer. Their arithmetic
/// runs on a shared pool, which bounds the cores they use together.
pub struct Local {
    jobs: Option<Sender<(u64, Job)>>,
    done: Receiver<Done>,
    cancelled_before: Arc<AtomicU64>,
    submitted: u64,
    capacity: usize,
    alloc: HeapPool,
    under_way: Arc<UnderWay>,
    threads: Vec<JoinHandle<()>>,
}

impl Local {
    /// Loads `instances` of `model` in parallel and starts their threads, named `name/0`, `name/1`, …
    ///
    /// # Errors
    /// The first that a load met.
    ///
    /// # Panics
    /// If the system has no thread left.
    pub fn start(
        name: &str,
        model: &Arc<dyn LoadModel>,
        instances: usize,
        pool: &Arc<ThreadPool>,
    ) -> Result<Self, Fault> {
        let (jobs, job_receiver) = unbounded();
        let (done_sender, done) = unbounded();
        let (loaded_sender, loaded) = unbounded();
        let cancelled_before = Arc::new(AtomicU64::new(0));
        let gate = Gate::default();
        let under_way = Arc::<UnderWay>::default();
        let threads = (0..instances).map(|number| {
            let instance = Instance {
                jobs: job_receiver.clone(),
                done: done_sender.clone(),
                cancelled_before: cancelled_before.clone(),
                gate: gate.clone(),
                pool: pool.clone(),
                under_way: under_way.clone(),
                number,
            };
            let (model, loaded) = (model.clone(), loaded_sender.clone());
            std::thread::Builder::new()
                .name(format!("{name}/{number}"))
                .spawn(move || instance.run(&*model, &loaded))
                .expect("a thread can be started")
        });
        let threads: Vec<_> = threads.collect();
        drop((loaded_sender, done_sender));
        let mut capacity = 0;
        for depth in loaded.iter().take(instances) {
            capacity += depth?;
        }
        let alloc = HeapPool::new();
        Ok(Local { jobs: Some(jobs), done, cancelled_before, submitted: 0, capacity, alloc, under_way, threads })
    }
}

impl Executor for Local {
    fn alloc(&self) -> &dyn Alloc {
        &self.alloc
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn submit(&mut self, job: Job) -> Result<(), Fault> {
        let jobs = self.jobs.as_ref().expect("jobs are open until the executor is dropped");
        let number = self.submitted;
        self.submitted += 1;
        jobs.send((number, job)).map_err(|_| Fault::bug("the model's threads have ended"))
    }

    fn completions(&self) -> &Receiver<Done> {
        &self.done
    }

    fn at_work(&self) -> Option<Arc<dyn AtWork>> {
        Some(self.under_way.clone())
    }

    fn cancel(&mut self) {
        self.cancelled_before.store(self.submitted, Ordering::Release);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.cancel();
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic outside a job has ended the thread; its jobs' absence was noticed by the waiter.
            let _ = thread.join();
        }
    }
}

/// The instances that have jobs under way.
#[derive(Default)]
struct UnderWay(Mutex<HashMap<JobId, usize>>);

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AtWork for UnderWay {
    fn worker_of(&self, id: JobId) -> Option<usize> {
        self.lock().get(&id).copied()
    }
}

struct Instance {
    jobs: Receiver<(u64, Job)>,
    done: Sender<Done>,
    cancelled_before: Arc<AtomicU64>,
    gate: Gate,
    pool: Arc<ThreadPool>,
    under_way: Arc<UnderWay>,
    /// Its own number.
    number: usize,
}

impl Instance {
    fn run(self, model: &dyn LoadModel, loaded: &Sender<Result<usize, Fault>>) {
        let lane =
            self.pool.install(|| model.load()).map(|model| Lane::new(model, Vec::new(), &self.gate, Some(&self.pool)));
        // The starter may have left already over another instance's fault.
        match lane {
            Ok(lane) => {
                let _ = loaded.send(Ok(lane.depth()));
                // Nobody takes results any more once the executor is dropped, and then no job comes either.
                let tell = |done: Done| {
                    self.under_way.lock().remove(&done.id);
                    drop(self.done.send(done));
                };
                lane.serve(|| self.next(), tell);
            }
            Err(fault) => {
                let _ = loaded.send(Err(fault));
            }
        }
    }

    /// The next job that is not cancelled.
    fn next(&self) -> Option<Job> {
        loop {
            let (number, job) = self.jobs.recv().ok()?;
            if number >= self.cancelled_before.load(Ordering::Acquire) {
                self.under_way.lock().insert(job.id, self.number);
                return Some(job);
            }
            self.done.send(Done::failed(job.id, JobError::Cancelled)).ok()?;
        }
    }
}
