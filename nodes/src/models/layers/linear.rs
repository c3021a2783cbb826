//! A matrix product with a bias.

use candle_core::{Result, Tensor};

/// A linear layer over the last dimension.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[in, out]`, a view of the stored `[out, in]`.
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// A layer of a weight `[out, in]` and a bias `[out]` that were checked against the architecture.
    pub fn new(weight: Tensor, bias: Tensor) -> Result<Self> {
        Ok(Self {
            weight: weight.t()?,
            bias,
        })
    }

    /// Runs over `[…, in]`.
    pub fn forward(&self, values: &Tensor) -> Result<Tensor> {
        let (n_in, n_out) = self.weight.dims2()?;
        let mut shape = values.dims().to_vec();
        let flat = values.reshape(((), n_in))?;
        let sums = flat.matmul(&self.weight)?.broadcast_add(&self.bias)?;
        if let Some(last) = shape.last_mut() {
            *last = n_out;
        }
        sums.reshape(shape)
    }
}
