//! Running a model on batches: the executor seam, and what stands behind it.
//!
//! The runtime submits [`Job`]s and takes [`Done`]s; it does not know whether a thread of this process computes them or
//! a worker process. `lane` is the one implementation of a job, used wherever the model lives. This module knows tensors
//! and models; it knows nothing of rows, graphs or queues.

pub mod arena;
mod caps;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod dispatch;
mod execute;
mod executor;
mod extents;
mod fleet;
pub mod frame;
mod gate;
mod gathered;
mod lane;
pub mod link;
mod local;
mod medians;
mod process;
mod remote;
pub mod server;
mod stats;

pub use arena::Arena;
pub(crate) use execute::panic_text;
pub use executor::{AtWork, Conduct, Done, Executor, Job, JobError, JobId};
pub use fleet::{Fleet, FleetSpec, ModelSpec, WorkerSpec};
pub use local::Local;
pub use process::exit_text;
pub use remote::Remote;
pub use stats::{WorkerState, WorkerStats};
