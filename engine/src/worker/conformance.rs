//! What every executor must do, as one suite that runs against each of them.
//!
//! The models here are deterministic functions of their input, so that results can be checked by value, and some hold
//! a job back until another has finished, so that jobs complete out of order on purpose and not by luck.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, unbounded};

use super::{Conduct, Done, Executor, Job, JobError, JobId};
use crate::data::{DType, HeapPool, Tensor};
use crate::node::{Fault, LoadModel, Model, ModelError};

/// Starts an executor with some instances of a model.
pub type Start<'a> = &'a dyn Fn(Arc<dyn LoadModel>, usize) -> Result<Box<dyn Executor>, Fault>;

/// Long enough that only an executor that lost a job reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the whole suite.
///
/// # Panics
/// If the executor does not conform.
pub fn run(start: Start<'_>) {
    results_belong_to_their_jobs(start);
    every_dtype_and_an_empty_and_a_big_batch_pass(start);
    jobs_complete_out_of_order(start);
    a_failing_and_a_panicking_job_leave_the_others_alone(start);
    wrong_rows_are_an_error(start);
    cancelled_jobs_come_out_once(start);
    a_failed_load_is_a_fault(start);
}

fn results_belong_to_their_jobs(start: Start<'_>) {
    let mut executor = start(Arc::new(Load(|| Ok(Double))), 1).expect("the model loads");
    assert!(executor.capacity() >= 2, "at least two jobs in flight");
    for n in 0..100 {
        executor.submit(job(n, &[n as f32, 1.0])).expect("open");
    }
    let done = collect(&*executor, 100);
    for n in 0..100 {
        assert_eq!(values(&done[&JobId(n)]), [2.0 * n as f32, 2.0]);
    }
}

fn every_dtype_and_an_empty_and_a_big_batch_pass(start: Start<'_>) {
    let mut executor = start(Arc::new(Load(|| Ok(Echo))), 1).expect("the model loads");
    let tensors = [
        Tensor::from_slice(executor.alloc(), DType::U8, vec![2, 3], &[1u8, 2, 3, 4, 5, 255]),
        Tensor::from_slice(executor.alloc(), DType::F16, vec![2], &[0x3c00u16, 0x7bff]),
        Tensor::from_slice(executor.alloc(), DType::BF16, vec![1, 1, 1], &[0x3f80u16]),
        Tensor::from_slice(executor.alloc(), DType::F32, vec![1, 4], &[1f32, -0.0, f32::NAN, f32::MAX]),
        Tensor::from_slice(executor.alloc(), DType::I64, vec![1], &[i64::MIN]),
        Tensor::from_slice::<f32>(executor.alloc(), DType::F32, vec![0, 224], &[]),
        Tensor::from_slice(executor.alloc(), DType::U8, vec![64, 224, 224, 3], &vec![7u8; 64 * 224 * 224 * 3]),
    ];
    for (n, tensor) in tensors.iter().enumerate() {
        executor
            .submit(Job { id: JobId(n as u64), inputs: vec![tensor.clone()], conduct: Conduct::Shared })
            .expect("open");
    }
    let done = collect(&*executor, tensors.len());
    for (n, tensor) in tensors.iter().enumerate() {
        let output = &done[&JobId(n as u64)].outcome.as_ref().expect("an echo")[0];
        assert_eq!((output.dtype(), output.shape()), (tensor.dtype(), tensor.shape()));
        assert_eq!(output.bytes(), tensor.bytes());
    }
}

fn jobs_complete_out_of_order(start: Start<'_>) {
    // Job 0 waits inside the model until job 1 has come out: two run at once, and 1 passes 0.
    let (release, released) = unbounded();
    let load = Load(move || Ok(Gate { released: released.clone() }));
    let mut executor = start(Arc::new(load), 2).expect("the model loads");
    executor.submit(job(0, &[0.0])).expect("open");
    executor.submit(job(1, &[1.0])).expect("open");
    assert_eq!(next(&*executor).id, JobId(1));
    release.send(()).expect("the model listens");
    assert_eq!(next(&*executor).id, JobId(0));
}

fn a_failing_and_a_panicking_job_leave_the_others_alone(start: Start<'_>) {
    let mut executor = start(Arc::new(Load(|| Ok(Moody))), 1).expect("the model loads");
    for n in 0..5 {
        executor.submit(job(n, &[n as f32])).expect("open");
    }
    let done = collect(&*executor, 5);
    for n in [0, 3, 4] {
        assert_eq!(values(&done[&JobId(n)]), [n as f32]);
    }
    assert_eq!(done[&JobId(1)].outcome.as_ref().err(), Some(&ModelError::Failed("no ones".to_owned()).into()));
    assert_eq!(done[&JobId(2)].outcome.as_ref().err(), Some(&JobError::Panicked("no twos".to_owned())));
}

fn wrong_rows_are_an_error(start: Start<'_>) {
    let mut executor = start(Arc::new(Load(|| Ok(Halve))), 1).expect("the model loads");
    executor.submit(job(0, &[1.0, 2.0])).expect("open");
    let done = next(&*executor);
    assert_eq!(done.outcome.err(), Some(JobError::Rows { wanted: 2, found: 1 }));
}

fn cancelled_jobs_come_out_once(start: Start<'_>) {
    let (release, released) = unbounded();
    let load = Load(move || Ok(Gate { released: released.clone() }));
    let mut executor = start(Arc::new(load), 1).expect("the model loads");
    for _ in 0..10 {
        executor.submit(job(0, &[0.0])).expect("open");
    }
    executor.cancel();
    // The first may have started, and then waits for a release.
    release.send(()).expect("the model listens");
    let outcomes: Vec<_> = (0..10).map(|_| next(&*executor).outcome).collect();
    let n_cancelled = outcomes.iter().filter(|outcome| outcome.as_ref().err() == Some(&JobError::Cancelled)).count();
    assert!(n_cancelled >= 9, "{n_cancelled} of 10 cancelled");
    assert!(executor.completions().try_recv().is_err(), "no job comes out twice");
}

fn a_failed_load_is_a_fault(start: Start<'_>) {
    let load = Load(|| Err::<Echo, _>(Fault::permanent("no weights")));
    let fault = start(Arc::new(load), 2).err().expect("the load fails");
    assert_eq!(fault.message, "no weights");
}

fn job(id: u64, values: &[f32]) -> Job {
    let tensor = Tensor::from_slice(&HeapPool::new(), DType::F32, vec![values.len()], values);
    Job { id: JobId(id), inputs: vec![tensor], conduct: Conduct::Shared }
}

fn next(executor: &dyn Executor) -> Done {
    executor.completions().recv_timeout(PATIENCE).expect("a job comes out")
}

fn collect(executor: &dyn Executor, n: usize) -> BTreeMap<JobId, Done> {
    let done: BTreeMap<_, _> = (0..n).map(|_| next(executor)).map(|done| (done.id, done)).collect();
    assert_eq!(done.len(), n, "each job comes out once");
    done
}

fn values(done: &Done) -> Vec<f32> {
    done.outcome.as_ref().expect("a result")[0].view().to_f32().into_owned()
}

struct Load<F>(F);

impl<F> std::fmt::Debug for Load<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Load")
    }
}

impl<M: Model + 'static, F: Fn() -> Result<M, Fault> + Send + Sync> LoadModel for Load<F> {
    fn load(&self) -> Result<Box<dyn Model>, Fault> {
        Ok(Box::new((self.0)()?))
    }
}

struct Double;

impl Model for Double {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let doubled: Vec<_> = inputs[0].view().to_f32().iter().map(|value| value * 2.0).collect();
        Ok(vec![Tensor::from_slice(&HeapPool::new(), DType::F32, inputs[0].shape().to_vec(), &doubled)])
    }
}

struct Echo;

impl Model for Echo {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(inputs.to_vec())
    }
}

/// Holds a job whose first value is 0 until it is released.
struct Gate {
    released: Receiver<()>,
}

impl Model for Gate {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        if inputs[0].view().to_f32()[0] == 0.0 {
            self.released.recv_timeout(PATIENCE).map_err(|error| ModelError::Failed(error.to_string()))?;
        }
        Ok(inputs.to_vec())
    }
}

struct Moody;

impl Model for Moody {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        match inputs[0].view().to_f32()[0] {
            1.0 => Err(ModelError::Failed("no ones".to_owned())),
            2.0 => panic!("no twos"),
            _ => Ok(inputs.to_vec()),
        }
    }
}

struct Halve;

impl Model for Halve {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(vec![inputs[0].rows(0, inputs[0].n_rows() / 2)])
    }
}
