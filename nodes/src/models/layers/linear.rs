//! A matrix product with a bias and an activation.

use candle_core::{Result, Tensor};

use super::{
    Activation,
    finish::{Along, BiasActivation},
    has_kernels,
    parameter::Parameter,
};

/// A linear layer over the last dimension.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[in, out]`, a view of the stored `[out, in]`.
    weight: Tensor,
    bias: Parameter,
    activation: Activation,
}

impl Linear {
    /// A layer of a weight `[out, in]` and a bias `[out]` that were checked against the architecture.
    pub fn new(weight: Tensor, bias: Tensor, activation: Activation) -> Result<Self> {
        Ok(Self { weight: weight.t()?, bias: Parameter::new(&bias)?, activation })
    }

    /// Runs over `[…, in]`; the output is a new tensor that nothing else shares.
    pub fn forward(&self, values: &Tensor) -> Result<Tensor> {
        let (n_in, n_out) = self.weight.dims2()?;
        let mut shape = values.dims().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = n_out;
        }
        let mut sums = values.reshape(((), n_in))?.matmul(&self.weight)?;
        if has_kernels(sums.device()) {
            let (bias, activation) = (&self.bias, self.activation);
            sums.inplace_op1(&BiasActivation { bias, along: Along::Columns, activation })?;
        } else {
            sums = self.activation.apply(&sums.broadcast_add(self.bias.tensor())?)?;
        }
        sums.reshape(shape)
    }
}
