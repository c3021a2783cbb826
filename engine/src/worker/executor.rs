//! The seam between the runtime and whatever computes.

use std::sync::Arc;

use crossbeam_channel::Receiver;

use super::frame::Cap;
use crate::data::{Alloc, Tensor};
use crate::node::{Fault, ModelError, Span};

/// The number of a job, unique within its executor, chosen by the submitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// One batch for a model.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names it in [`Done`].
    pub id: JobId,
    /// The model's inputs, rows leading; part batches are padded to the planned rows already.
    pub inputs: Vec<Tensor>,
    /// Whether it may run beside others.
    pub conduct: Conduct,
}

impl Job {
    /// The rows of its inputs.
    pub fn n_rows(&self) -> usize {
        self.inputs.first().map_or(0, Tensor::n_rows)
    }
}

/// Whether a job may run beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conduct {
    /// It may.
    #[default]
    Shared,
    /// It is suspected of killing workers: it runs while its worker does nothing else, so that the worker's death says
    /// that it was this job's doing.
    Alone,
}

/// Why a job has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The model said so.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model panicked.
    #[error("the model panicked: {0}")]
    Panicked(String),
    /// The model gave outputs of another number of rows than its inputs have.
    #[error("the model gave {found} rows for {wanted}")]
    Rows {
        /// The rows of the inputs.
        wanted: usize,
        /// The rows of the output.
        found: usize,
    },
    /// A worker process died of the job, or did not come back from it, while it computed nothing else.
    #[error("the worker process {0}")]
    Crashed(String),
    /// The job was cancelled before it ran.
    #[error("cancelled")]
    Cancelled,
}

/// A finished job.
#[derive(Debug)]
pub struct Done {
    /// Which.
    pub id: JobId,
    /// The model's outputs, rows leading, padding included.
    pub outcome: Result<Vec<Tensor>, JobError>,
    /// Microseconds that the model computed.
    pub micros: u64,
    /// Who computed it, by its place among those that the executor was started with.
    pub worker: usize,
    /// What its device did when.
    pub spans: Vec<Span>,
    /// The most rows of this shape that fit into the device's memory, where the job had to be cut into pieces.
    pub cap: Option<Cap>,
}

impl Done {
    /// A job that was not computed.
    pub fn failed(id: JobId, error: JobError) -> Self {
        Done { id, outcome: Err(error), micros: 0, worker: 0, spans: Vec::new(), cap: None }
    }
}

/// Knows who computes a job.
pub trait AtWork: Send + Sync {
    /// The one who computes the job now, by its place among those that the executor was started with; `None` while the
    /// job waits.
    fn worker_of(&self, id: JobId) -> Option<usize>;
}

/// Computes jobs, several at once, finishing them in any order.
///
/// Each job that was submitted comes out of [`Executor::completions`] exactly once, cancelled ones too. That is a
/// channel and not a method that waits, so that the runtime can wait for work and results at the same time.
pub trait Executor: Send {
    /// Where the inputs of jobs should lie, so that they need no further copy.
    fn alloc(&self) -> &dyn Alloc;

    /// How many jobs are worth having in flight: enough that the device never waits for the next one.
    fn capacity(&self) -> usize;

    /// Takes a job. Does not wait for it.
    ///
    /// # Errors
    /// If no job will ever be computed again.
    fn submit(&mut self, job: Job) -> Result<(), Fault>;

    /// Finished jobs, in the order in which they finish. Disconnected when no job will ever be finished again.
    fn completions(&self) -> &Receiver<Done>;

    /// Who computes which job, for those who want to know while it runs.
    fn at_work(&self) -> Option<Arc<dyn AtWork>> {
        None
    }

    /// Why no job will be finished any more, once the completions are disconnected.
    fn fault(&self) -> Option<Fault> {
        None
    }

    /// Gives up jobs that have not started; they come out as [`JobError::Cancelled`].
    fn cancel(&mut self);
}
