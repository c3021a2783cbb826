//! Models: from tensors to tensors.

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
}

/// A loaded model. Used by one thread at a time.
pub trait Model: Send {
    /// Computes one batch: tensors with the rows as leading dimension in, tensors with as many rows out.
    ///
    /// # Errors
    /// See [`ModelError`].
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError>;
}

/// How a model is loaded, on the thread or in the process that will run it.
pub trait LoadModel: Send + Sync + fmt::Debug {
    /// Loads one instance. Instances of one loader share their weights where they can.
    ///
    /// # Errors
    /// Weights that are missing or do not fit.
    fn load(&self) -> Result<Box<dyn Model>, Fault>;
}
