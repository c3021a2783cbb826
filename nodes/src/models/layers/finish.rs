//! What is done to sums in place: bias and activation in one pass over memory.

use candle_core::{CpuStorage, InplaceOp1, InplaceOp2, Layout, Result, Tensor, bail};
use rayon::prelude::*;

use super::{Activation, f32_values};

/// Adds a bias per channel of `[rows, channels, values]`, then activates.
pub(crate) struct BiasActivation<'a> {
    pub bias: &'a [f32],
    pub activation: Activation,
}

impl InplaceOp1 for BiasActivation<'_> {
    fn name(&self) -> &'static str {
        "bias_activation"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (_, n_channels, n_values) = layout.shape().dims3()?;
        let values = f32_values_mut(storage, layout)?;
        if n_channels != self.bias.len() || n_values == 0 {
            bail!("{n_channels} channels and {} biases", self.bias.len());
        }
        let (low, high) = self.activation.bounds();
        values
            .par_chunks_exact_mut(n_values)
            .enumerate()
            .for_each(|(channel_idx, values)| {
                let bias = self.bias[channel_idx % n_channels];
                for value in values {
                    *value = (*value + bias).clamp(low, high);
                }
            });
        Ok(())
    }
}

/// `sums + other`, activated: how a residual branch joins. `sums` must be a tensor that nothing else shares.
pub(crate) fn add_and_activate(
    sums: Tensor,
    other: &Tensor,
    activation: Activation,
) -> Result<Tensor> {
    if !sums.device().is_cpu() {
        return activation.apply(&(sums + other)?);
    }
    sums.inplace_op2(&other.contiguous()?, &Join { activation })?;
    Ok(sums)
}

struct Join {
    activation: Activation,
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
            bail!(
                "{:?} joined by {:?}",
                sums_layout.shape(),
                other_layout.shape()
            );
        }
        let other = f32_values(other, other_layout)?;
        let (low, high) = self.activation.bounds();
        for (sum, other) in f32_values_mut(sums, sums_layout)?.iter_mut().zip(other) {
            *sum = (*sum + other).clamp(low, high);
        }
        Ok(())
    }
}

fn f32_values_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => bail!("sums must be contiguous f32"),
    }
}
