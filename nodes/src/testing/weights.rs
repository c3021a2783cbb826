//! Reading a weight file to its last value, for tests that have no library for tensors.

use std::path::Path;

use candle_core::{DType, Device};

use crate::models::TensorSource;
use crate::weights::{WeightsError, open};

/// A tensor whose values could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTensor {
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Bytes that its elements take as they are stored.
    pub stored_bytes: usize,
}

/// Opens a weight file and reads each of its tensors.
///
/// # Errors
/// What is wrong with the file.
///
/// # Panics
/// If a tensor that the file was opened with cannot be read, which [`crate::weights::WeightSet`] promises.
pub fn read_weights(path: &Path) -> Result<Vec<ReadTensor>, WeightsError> {
    let weights = open(path)?;
    let read = |name: String| {
        let tensor = weights.load(&name, DType::F32, &Device::Cpu).expect("what lies in the file can be read");
        let (shape, element) = (tensor.dims().to_vec(), weights.element(&name).expect("it is listed"));
        assert_eq!(Some(&shape), weights.shape(&name).as_ref(), "{name}");
        ReadTensor { name, stored_bytes: tensor.elem_count() * element.size(), shape }
    };
    Ok(weights.names().into_iter().map(read).collect())
}
