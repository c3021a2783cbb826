//! The one way in which a model is called: whatever it does, the thread that calls it goes on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::JobError;
use crate::data::Tensor;
use crate::node::{Computed, Model, Pending};

/// Starts a batch. A model that panics fails the batch, not the thread.
pub(super) fn start(model: &mut dyn Model, inputs: &[Tensor]) -> Result<Box<dyn Pending>, JobError> {
    caught(|| model.start(inputs))
}

/// Waits for a batch of `n_rows` rows.
pub(super) fn wait(pending: Box<dyn Pending>, n_rows: usize) -> Result<Computed, JobError> {
    let computed = caught(|| pending.wait())?;
    match computed.outputs.iter().find(|output| output.n_rows() != n_rows) {
        Some(output) => Err(JobError::Rows { wanted: n_rows, found: output.n_rows() }),
        None => Ok(computed),
    }
}

fn caught<T>(call: impl FnOnce() -> Result<T, crate::node::ModelError>) -> Result<T, JobError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(outcome) => outcome.map_err(JobError::Model),
        Err(panic) => Err(JobError::Panicked(panic_text(&*panic))),
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
