//! A layer's numbers where the kernels read them.

use candle_core::{DType, Result, Tensor};

/// Numbers that a kernel reads: in the host's memory if the layer computes on the CPU, on the device otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    host: Vec<f32>,
    tensor: Tensor,
}

impl Parameter {
    /// These numbers, in the order of the tensor's elements.
    pub(crate) fn new(tensor: &Tensor) -> Result<Self> {
        let tensor = tensor.flatten_all()?.contiguous()?;
        let host = if tensor.device().is_cpu() { tensor.to_dtype(DType::F32)?.to_vec1()? } else { Vec::new() };
        Ok(Self { host, tensor })
    }

    /// The numbers as the CPU's kernels read them; empty on other devices.
    pub(crate) fn host(&self) -> &[f32] {
        &self.host
    }

    /// The numbers in one dimension, on the layer's device.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }
}
