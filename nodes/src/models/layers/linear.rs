//! A matrix product with a bias and an activation.

use candle_core::{Result, Tensor};

use super::{
    Activation,
    finish::{Along, BiasActivation},
};

/// A linear layer over the last dimension.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[in, out]`, a view of the stored `[out, in]`.
    weight: Tensor,
    bias: Tensor,
    /// The bias as the CPU's kernels read it; empty on other devices.
    host_bias: Vec<f32>,
    activation: Activation,
}

impl Linear {
    /// A layer of a weight `[out, in]` and a bias `[out]` that were checked against the architecture.
    pub fn new(weight: Tensor, bias: Tensor, activation: Activation) -> Result<Self> {
        let host_bias = if bias.device().is_cpu() { bias.to_vec1()? } else { Vec::new() };
        Ok(Self { weight: weight.t()?, bias, host_bias, activation })
    }

    /// Runs over `[…, in]`; the output is a new tensor that nothing else shares.
    pub fn forward(&self, values: &Tensor) -> Result<Tensor> {
        let (n_in, n_out) = self.weight.dims2()?;
        let mut shape = values.dims().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = n_out;
        }
        let mut sums = values.reshape(((), n_in))?.matmul(&self.weight)?;
        if sums.device().is_cpu() {
            let (bias, activation) = (self.host_bias.as_slice(), self.activation);
            sums.inplace_op1(&BiasActivation { bias, along: Along::Columns, activation })?;
        } else {
            sums = self.activation.apply(&sums.broadcast_add(&self.bias)?)?;
        }
        sums.reshape(shape)
    }
}
