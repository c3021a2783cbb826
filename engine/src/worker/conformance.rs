//! What every executor must do, as one suite that runs against each of them.
//!
//! The models are nodes of the kind [`KIND`], which the caller's registry has, so that an executor may load them in
//! another process. They are deterministic functions of their input, so that results can be checked by value, and one
//! holds a job back until the suite lets it go, so that jobs complete out of order on purpose and not by luck.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::frame::Load;
use super::{Conduct, Done, Executor, Fleet, FleetSpec, Job, JobError, JobId, ModelSpec, WorkerSpec, WorkerStats};
use crate::data::{ColumnType, DType, Dim, Field, HeapPool, Role, Schema, Tensor};
use crate::node::{Fault, ModelError};

/// Starts an executor with some instances of the model that a node has: its kind, its options, how many.
pub type Start<'a> = &'a dyn Fn(&str, Value, usize) -> Result<Box<dyn Executor>, Fault>;

/// The kind of the suite's models.
pub const KIND: &str = "infer.test_conformance";

/// Long enough that only an executor that lost a job reaches it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The input that the nodes are told of. Jobs have inputs of all types and shapes.
pub fn input() -> Schema {
    let ty = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(4)] };
    Schema { fields: vec![Field::new("tensor", ty, Role::Result)], batch: None }
}

/// The workers of one of the suite's models: `n_workers` processes of `program`, of the build `build`, each with one thread
/// for arithmetic.
///
/// # Errors
/// As [`Fleet::start`].
pub fn fleet(program: &Path, build: &str, kind: &str, with: Value, n_workers: usize) -> Result<Fleet, Fault> {
    let load = Load {
        model: 0,
        node: "model".to_owned(),
        kind: kind.to_owned(),
        with,
        base: Path::new("/").to_owned(),
        input: input(),
        files: Vec::new(),
        caps: Vec::new(),
    };
    let worker = || WorkerSpec {
        program: program.to_owned(),
        device: "cpu",
        uuid: None,
        environment: vec![("RAYON_NUM_THREADS", "1".to_owned())],
        models: vec![0],
        stats: Arc::new(WorkerStats::new("cpu", vec![0])),
    };
    Fleet::start(FleetSpec {
        build: build.to_owned(),
        workers: (0..n_workers).map(|_| worker()).collect(),
        models: vec![ModelSpec { node_idx: 0, load, row_bytes: vec![None] }],
        patience: 2 * PATIENCE,
        reserve: 1 << 30,
    })
}

/// Runs the whole suite; `folder` is an empty one for its files. An executor whose models share a process gives one
/// process to all calls of `start`.
///
/// # Panics
/// If the executor does not conform.
pub fn run(start: Start<'_>, folder: &Path) {
    results_belong_to_their_jobs(start);
    every_dtype_and_an_empty_and_a_big_batch_pass(start);
    jobs_of_varying_sizes_pass(start);
    results_outlive_their_executor(start);
    jobs_complete_out_of_order(start, folder);
    a_failing_and_a_panicking_job_leave_the_others_alone(start);
    models_side_by_side_leave_each_other_alone(start, folder);
    wrong_rows_are_an_error(start);
    cancelled_jobs_come_out_once(start, folder);
    a_failed_load_is_a_fault(start);
}

fn results_belong_to_their_jobs(start: Start<'_>) {
    let mut executor = load(start, json!("double"), 1);
    assert!(executor.capacity() >= 2, "at least two jobs in flight");
    for n in 0..100 {
        let conduct = if n % 10 == 9 { Conduct::Alone } else { Conduct::Shared };
        executor.submit(Job { conduct, ..job(n, &[n as f32, 1.0]) }).expect("open");
    }
    let done = collect(&*executor, 100);
    for n in 0..100 {
        assert_eq!(values(&done[&JobId(n)]), [2.0 * n as f32, 2.0]);
    }
}

fn every_dtype_and_an_empty_and_a_big_batch_pass(start: Start<'_>) {
    let mut executor = load(start, json!("echo"), 1);
    let alloc = executor.alloc();
    let tensors = [
        Tensor::from_slice(alloc, DType::U8, vec![2, 3], &[1u8, 2, 3, 4, 5, 255]),
        Tensor::from_slice(alloc, DType::F16, vec![2], &[0x3c00u16, 0x7bff]),
        Tensor::from_slice(alloc, DType::BF16, vec![1, 1, 1], &[0x3f80u16]),
        Tensor::from_slice(alloc, DType::F32, vec![1, 4], &[1f32, -0.0, f32::NAN, f32::MAX]),
        Tensor::from_slice(alloc, DType::I64, vec![1], &[i64::MIN]),
        Tensor::from_slice::<f32>(alloc, DType::F32, vec![0, 224], &[]),
        Tensor::from_slice(alloc, DType::U8, vec![64, 224, 224, 3], &pattern(64 * 224 * 224 * 3)),
        Tensor::from_slice(alloc, DType::U8, vec![20, 1000, 1000], &pattern(20_000_000)),
    ];
    for (n, tensor) in tensors.iter().enumerate() {
        executor.submit(job_of(n as u64, tensor.clone())).expect("open");
    }
    let done = collect(&*executor, tensors.len());
    for (n, tensor) in tensors.iter().enumerate() {
        assert_same(&done[&JobId(n as u64)], tensor);
    }
}

fn jobs_of_varying_sizes_pass(start: Start<'_>) {
    let mut executor = load(start, json!("echo"), 2);
    let pattern = pattern(1 << 18);
    // As the runtime does: no more jobs in flight than are worth it, their inputs made while others are computed.
    let (mut inputs, mut n_done) = (BTreeMap::new(), 0);
    for n in 0..200 {
        let (n_rows, len) = ((n as usize * 37) % 65, (n as usize * 7919) % 4001);
        let bytes = &pattern[n as usize..][..n_rows * len];
        let tensor = Tensor::from_slice(executor.alloc(), DType::U8, vec![n_rows, len], bytes);
        inputs.insert(JobId(n), tensor.clone());
        executor.submit(job_of(n, tensor)).expect("open");
        if inputs.len() >= executor.capacity() {
            let done = next(&*executor);
            assert_same(&done, &inputs.remove(&done.id).expect("each job comes out once"));
            n_done += 1;
        }
    }
    while n_done < 200 {
        let done = next(&*executor);
        assert_same(&done, &inputs.remove(&done.id).expect("each job comes out once"));
        n_done += 1;
    }
}

fn results_outlive_their_executor(start: Start<'_>) {
    let mut executor = load(start, json!("echo"), 1);
    let tensor = Tensor::from_slice(executor.alloc(), DType::U8, vec![4, 10_000], &pattern(40_000));
    executor.submit(job_of(0, tensor.clone())).expect("open");
    let done = next(&*executor);
    drop(executor);
    assert_same(&done, &tensor);
}

fn jobs_complete_out_of_order(start: Start<'_>, folder: &Path) {
    // Job 0 waits inside the model until job 1 has come out: two run at once, and 1 passes 0.
    let gate = folder.join("out-of-order");
    let mut executor = load(start, gate_model(&gate), 2);
    executor.submit(job(0, &[0.0])).expect("open");
    executor.submit(job(1, &[1.0])).expect("open");
    assert_eq!(next(&*executor).id, JobId(1));
    open(&gate);
    assert_eq!(next(&*executor).id, JobId(0));
}

fn a_failing_and_a_panicking_job_leave_the_others_alone(start: Start<'_>) {
    let mut executor = load(start, json!("moody"), 1);
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

fn models_side_by_side_leave_each_other_alone(start: Start<'_>, folder: &Path) {
    // One model is held up, one fails and panics, and the third goes on meanwhile.
    let gate = folder.join("side-by-side");
    let mut held = load(start, gate_model(&gate), 1);
    let mut moody = load(start, json!("moody"), 1);
    let mut double = load(start, json!("double"), 1);
    held.submit(job(0, &[0.0])).expect("open");
    for n in 0..20 {
        moody.submit(job(n, &[(n % 3) as f32])).expect("open");
        double.submit(job(n, &[n as f32])).expect("open");
    }
    for (id, done) in collect(&*double, 20) {
        assert_eq!(values(&done), [2.0 * id.0 as f32]);
    }
    let n_right = collect(&*moody, 20).values().filter(|done| done.outcome.is_ok()).count();
    assert_eq!(n_right, 7, "the zeros among 0, 1, 2, 0, …");
    assert!(held.completions().try_recv().is_err(), "it is held");
    open(&gate);
    assert_eq!(values(&next(&*held)), [0.0]);
}

fn wrong_rows_are_an_error(start: Start<'_>) {
    let mut executor = load(start, json!("halve"), 1);
    executor.submit(job(0, &[1.0, 2.0])).expect("open");
    let done = next(&*executor);
    assert_eq!(done.outcome.err(), Some(JobError::Rows { wanted: 2, found: 1 }));
}

fn cancelled_jobs_come_out_once(start: Start<'_>, folder: &Path) {
    let gate = folder.join("cancelled");
    let mut executor = load(start, gate_model(&gate), 1);
    for n in 0..10 {
        executor.submit(job(n, &[0.0])).expect("open");
    }
    executor.cancel();
    // Those that have started wait for this.
    open(&gate);
    let done = collect(&*executor, 10);
    let is_cancelled = |done: &&Done| done.outcome.as_ref().err() == Some(&JobError::Cancelled);
    let n_cancelled = done.values().filter(is_cancelled).count();
    // What a worker has, it computes.
    assert!(10 - n_cancelled <= executor.capacity(), "{n_cancelled} of 10 cancelled");
    assert!(executor.completions().try_recv().is_err(), "no job comes out twice");
}

fn a_failed_load_is_a_fault(start: Start<'_>) {
    let fault = start(KIND, json!({"model": "no_weights"}), 2).err().expect("the load fails");
    assert_eq!(fault.message, "no weights");
}

fn load(start: Start<'_>, model: Value, instances: usize) -> Box<dyn Executor> {
    start(KIND, json!({"model": model}), instances).expect("the model loads")
}

/// A model that holds jobs whose first value is 0 until the gate is open.
fn gate_model(gate: &Path) -> Value {
    json!({"gate": {"until": gate}})
}

fn open(gate: &Path) {
    std::fs::write(gate, "").expect("a file in a folder of ours");
}

fn job(id: u64, values: &[f32]) -> Job {
    job_of(id, Tensor::from_slice(&HeapPool::new(), DType::F32, vec![values.len()], values))
}

fn job_of(id: u64, tensor: Tensor) -> Job {
    Job { id: JobId(id), inputs: vec![tensor], conduct: Conduct::Shared }
}

/// Bytes whose place can be told from their neighbours.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
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

fn assert_same(done: &Done, tensor: &Tensor) {
    let output = &done.outcome.as_ref().expect("an echo")[0];
    assert_eq!((output.dtype(), output.shape()), (tensor.dtype(), tensor.shape()));
    assert!(output.bytes() == tensor.bytes(), "the bytes of {:?} differ", tensor.shape());
}
