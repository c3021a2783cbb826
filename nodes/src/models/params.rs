//! Where a model's tensors come from, as the models see it.
//!
//! A [`TensorSource`] is a set of named tensors with shapes that are known before anything is read. Architectures
//! promise to ask for shapes first and to load each tensor once. They know nothing of files, formats or pickles.

use candle_core::{DType, Device, Tensor};
use indexmap::IndexMap;

/// Named tensors that can be listed and measured cheaply and are loaded one by one.
///
/// `Send + Sync`, because one opened set of weights may feed several devices.
pub trait TensorSource: Send + Sync {
    /// Every tensor's name, in the order of the file.
    fn names(&self) -> Vec<String>;

    /// The shape of one tensor, without reading its values; `None` if there is no such tensor.
    fn shape(&self, name: &str) -> Option<Vec<usize>>;

    /// One tensor, contiguous, converted to `dtype`, on `device`. Its shape is the one that [`shape`](Self::shape) gave.
    fn load(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor, ReadTensorError>;
}

/// A tensor that is in the listing could not be read.
#[derive(Debug, thiserror::Error)]
#[error("tensor `{name}` cannot be read: {cause}")]
pub struct ReadTensorError {
    /// The tensor asked for.
    pub name: String,
    /// Why it failed: the file's error, or candle's.
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

impl ReadTensorError {
    /// Names the tensor that `cause` kept from being read.
    pub fn new(name: impl Into<String>, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { name: name.into(), cause: cause.into() }
    }
}

/// Tensors already in memory.
#[derive(Debug, Clone, Default)]
pub struct Params {
    tensors: IndexMap<String, Tensor>,
}

impl Params {
    /// A set made of these tensors.
    pub fn new(tensors: IndexMap<String, Tensor>) -> Self {
        Self { tensors }
    }

    /// Adds or replaces one tensor.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.tensors.insert(name.into(), tensor);
    }

    /// Takes one tensor out.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        self.tensors.shift_remove(name)
    }
}

impl TensorSource for Params {
    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.get(name).map(|tensor| tensor.dims().to_vec())
    }

    fn load(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor, ReadTensorError> {
        let tensor = self.tensors.get(name).ok_or_else(|| ReadTensorError::new(name, "there is no such tensor"))?;
        tensor
            .to_dtype(dtype)
            .and_then(|tensor| tensor.to_device(device))
            .and_then(|tensor| tensor.contiguous())
            .map_err(|error| ReadTensorError::new(name, error))
    }
}
