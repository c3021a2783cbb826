//! What is done to sums in place, in one pass over memory.
//!
//! Candle's own elementwise operations run on a pool of their own, behind one lock for the whole process; on the CPU
//! nothing here or in the architectures uses them, so that a model keeps to the caller's pool. On a GPU they take a
//! kernel each, and their rectifiers make a NaN a zero.

use candle_core::{CpuStorage, InplaceOp1, InplaceOp2, Layout, Result, Tensor, bail};
use rayon::prelude::*;

use super::{Activation, f32_values, has_kernels, parameter::Parameter};

/// Adds a bias, then activates.
pub(crate) struct BiasActivation<'a> {
    pub bias: &'a Parameter,
    pub along: Along,
    pub activation: Activation,
}

/// Which values share one number of the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Along {
    /// All of a channel, in `[rows, channels, values]`.
    Channels,
    /// One column, in `[rows, columns]`.
    Columns,
}

impl InplaceOp1 for BiasActivation<'_> {
    fn name(&self) -> &'static str {
        "bias_activation"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (n_biased, n_values) = match self.along {
            Along::Channels => {
                let (_, n_channels, n_values) = layout.shape().dims3()?;
                (n_channels, n_values)
            }
            Along::Columns => {
                let (_, n_columns) = layout.shape().dims2()?;
                (n_columns, n_columns)
            }
        };
        let bias = self.bias.host();
        if n_biased != bias.len() || n_values == 0 {
            bail!("{} biases over {:?}", bias.len(), layout.shape());
        }
        let runs = f32_values_mut(storage, layout)?.par_chunks_exact_mut(n_values);
        runs.enumerate().for_each(|(run_idx, values)| {
            match self.along {
                Along::Channels => {
                    let bias = bias[run_idx % n_biased];
                    values.iter_mut().for_each(|value| *value += bias);
                }
                Along::Columns => {
                    values.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
                }
            }
            self.activation.apply_to(values);
        });
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, storage: &mut candle_core::CudaStorage, layout: &Layout) -> Result<()> {
        crate::cuda::ops::bias_activation(self, storage, layout)
    }
}

/// `sums + other`, activated: how a residual branch joins. `sums` must be a tensor that nothing else shares.
pub(crate) fn add_and_activate(sums: Tensor, other: &Tensor, activation: Activation) -> Result<Tensor> {
    if !has_kernels(sums.device()) {
        return activation.apply(&(sums + other)?);
    }
    let sums = sums.contiguous()?;
    sums.inplace_op2(&other.contiguous()?, &Join { activation })?;
    Ok(sums)
}

pub(crate) struct Join {
    pub activation: Activation,
}

impl InplaceOp2 for Join {
    fn name(&self) -> &'static str {
        "join"
    }

    fn cpu_fwd(
        &self,
        sums: &mut CpuStorage,
        sums_layout: &Layout,
        other: &CpuStorage,
        other_layout: &Layout,
    ) -> Result<()> {
        if sums_layout.shape() != other_layout.shape() {
            bail!("{:?} joined by {:?}", sums_layout.shape(), other_layout.shape());
        }
        let sums = f32_values_mut(sums, sums_layout)?;
        for (sum, other) in sums.iter_mut().zip(f32_values(other, other_layout)?) {
            *sum += other;
        }
        self.activation.apply_to(sums);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        sums: &mut candle_core::CudaStorage,
        sums_layout: &Layout,
        other: &candle_core::CudaStorage,
        other_layout: &Layout,
    ) -> Result<()> {
        crate::cuda::ops::join(self, [sums_layout, other_layout], sums, other)
    }
}

fn f32_values_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => bail!("sums must be contiguous f32"),
    }
}
