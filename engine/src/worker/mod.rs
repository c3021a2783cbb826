//! Running a model on batches: the executor seam, and what stands behind it.
//!
//! The runtime submits [`Job`]s and takes [`Done`]s; it does not know whether a thread of this process computes them or
//! a worker process. [`execute`] is the one implementation of a job, called wherever the model lives. This module knows
//! tensors and models; it knows nothing of rows, graphs or queues.

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod execute;
mod executor;
pub mod frame;
mod local;
mod stats;

pub use execute::execute;
pub(crate) use execute::panic_text;
pub use executor::{Conduct, Done, Executor, Job, JobError, JobId};
pub use local::Local;
pub use stats::{WorkerState, WorkerStats};
