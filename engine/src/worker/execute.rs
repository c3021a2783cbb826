//! The one implementation of a job.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::{Done, Job, JobError};
use crate::data::Tensor;
use crate::node::{Computed, Model, ModelError};

/// Computes `job` with `model`. A model that panics fails the job, not the thread.
pub fn execute(model: &mut dyn Model, job: Job) -> Done {
    let start = Instant::now();
    let computed = catch_unwind(AssertUnwindSafe(|| compute(model, &job.inputs)))
        .map_err(|panic| JobError::Panicked(panic_text(&*panic)))
        .and_then(|outcome| outcome.map_err(JobError::Model));
    let (outcome, spans) = match computed {
        Ok(Computed { outputs, spans }) => (check_rows(&job.inputs, outputs), spans),
        Err(error) => (Err(error), Vec::new()),
    };
    Done { id: job.id, outcome, micros: start.elapsed().as_micros() as u64, worker: 0, spans }
}

fn compute(model: &mut dyn Model, inputs: &[Tensor]) -> Result<Computed, ModelError> {
    model.start(inputs)?.wait()
}

fn check_rows(inputs: &[Tensor], outputs: Vec<Tensor>) -> Result<Vec<Tensor>, JobError> {
    let wanted = inputs.first().map_or(0, Tensor::n_rows);
    match outputs.iter().find(|output| output.n_rows() != wanted) {
        Some(output) => Err(JobError::Rows { wanted, found: output.n_rows() }),
        None => Ok(outputs),
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}
