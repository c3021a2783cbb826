//! Models: from tensors to tensors.

use std::any::Any;
use std::fmt;

use super::Fault;
use crate::data::Tensor;

/// Why a model could not compute a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The device has no memory for this batch; a smaller one may fit.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The model failed; other batches may succeed.
    #[error("{0}")]
    Failed(String),
    /// The device does not answer any more, or every further call on it fails: the process that opened it must be
    /// replaced. Says nothing about the batch.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
}

/// A loaded model. Used by one thread at a time.
pub trait Model: Send {
    /// Computes one batch: tensors with the rows as leading dimension in, tensors with as many rows out.
    ///
    /// # Errors
    /// See [`ModelError`].
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError>;

    /// Starts a batch, and returns while the device, or the threads of the pool that this is called on, are still at work on
    /// it. A model that does not say how computes here, and the result is there at once.
    ///
    /// # Errors
    /// As [`Model::forward`]; what the device finds later comes out of [`Pending::wait`].
    fn start(&mut self, inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        let start_ns = monotonic_ns();
        let outputs = self.forward(inputs)?;
        let spans = vec![Span { stage: SpanStage::Compute, start_ns, end_ns: monotonic_ns() }];
        Ok(Box::new(Computed { outputs, spans }))
    }

    /// How many batches may be under way at once, started and not yet waited for.
    fn slots(&self) -> usize {
        1
    }
}

/// A batch under way. Batches are waited for in the order in which they were started, by another thread
/// than the one that starts them.
pub trait Pending: Send {
    /// Waits for the outputs.
    ///
    /// # Errors
    /// As [`Model::forward`].
    fn wait(self: Box<Self>) -> Result<Computed, ModelError>;
}

/// What a batch came to.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Tensors with as many rows as the inputs have.
    pub outputs: Vec<Tensor>,
    /// What the device did when.
    pub spans: Vec<Span>,
}

/// A piece of work on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Span {
    /// What was done.
    pub stage: SpanStage,
    /// Nanoseconds of the system's monotonic clock, which all processes share: see [`monotonic_ns`].
    pub start_ns: u64,
    /// The same, at the end.
    pub end_ns: u64,
}

/// What a device does with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanStage {
    /// Inputs to the device.
    Upload,
    /// The model.
    Compute,
    /// Outputs from the device.
    Download,
}

/// Nanoseconds of the system's monotonic clock: comparable between processes of one machine.
pub fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A batch that is computed already.
impl Pending for Computed {
    fn wait(self: Box<Self>) -> Result<Computed, ModelError> {
        Ok(*self)
    }
}

/// How a model is loaded, on the thread or in the process that will run it.
pub trait LoadModel: Send + Sync + fmt::Debug {
    /// Loads one instance on the CPU. Instances of one loader share their weights where they can.
    ///
    /// # Errors
    /// Weights that are missing or do not fit.
    fn load(&self) -> Result<Box<dyn Model>, Fault>;

    /// Loads one instance on another device, which the loader knows by its type.
    ///
    /// # Errors
    /// As [`LoadModel::load`]; and if the model cannot run on such a device.
    fn load_on(&self, _device: &dyn Any) -> Result<Box<dyn Model>, Fault> {
        Err(Fault::permanent("this model computes on the CPU only").help("give its node `device: cpu`"))
    }
}
