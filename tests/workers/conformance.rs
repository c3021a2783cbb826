//! The suite that every executor passes, against models in worker processes.

use std::path::Path;

use crossbeam_channel::Receiver;
use engine::data::{Alloc, DType, Tensor};
use engine::node::Fault;
use engine::worker::{Conduct, Done, Executor, Fleet, Job, JobId, Remote, conformance};
use serde_json::{Value as Json, json};

use crate::program::{TESTING, wait_for};

/// A model, and the workers that it lives in.
struct Owned {
    executor: Remote,
    // Dropped last.
    _fleet: Fleet,
}

impl Executor for Owned {
    fn alloc(&self) -> &dyn Alloc {
        self.executor.alloc()
    }
    fn capacity(&self) -> usize {
        self.executor.capacity()
    }
    fn submit(&mut self, job: Job) -> Result<(), Fault> {
        self.executor.submit(job)
    }
    fn completions(&self) -> &Receiver<Done> {
        self.executor.completions()
    }
    fn fault(&self) -> Option<Fault> {
        self.executor.fault()
    }
    fn cancel(&mut self) {
        self.executor.cancel();
    }
}

fn start(kind: &str, with: Json, instances: usize) -> Result<Owned, Fault> {
    let fleet = conformance::fleet(Path::new(TESTING), env!("FLOWGPU_BUILD"), kind, with, instances)?;
    let owned = Owned { executor: fleet.executor(0)?, _fleet: fleet };
    // A job waits behind another one in the same worker, so those that must not wait are sent when all workers are there.
    wait_for("all workers", || (owned.capacity() >= 2 * instances).then_some(()));
    Ok(owned)
}

#[test]
fn worker_processes_conform() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |kind: &str, with, instances| Ok(Box::new(start(kind, with, instances)?) as Box<dyn Executor>);
    conformance::run(&start, folder.path());
}

#[test]
fn inputs_in_an_arena_are_not_copied_and_outputs_lie_in_one() {
    let mut owned = start(conformance::KIND, json!({"model": "first"}), 1).expect("it starts");
    let input = Tensor::from_slice(owned.alloc(), DType::U8, vec![3, 4], &[1u8, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    assert!(input.shared().is_some());
    let job = Job { id: JobId(0), inputs: vec![input.clone()], conduct: Conduct::Shared };
    owned.submit(job).expect("open");
    let done = owned.completions().recv_timeout(conformance::PATIENCE).expect("a job comes out");
    let outputs = done.outcome.expect("a result");
    assert_eq!(outputs[0].bytes(), [1, 2, 3]);
    assert!(outputs[0].shared().is_some_and(|at| Some(at.arena) != input.shared().map(|at| at.arena)));
}
