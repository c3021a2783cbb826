//! What is done to sums in place, in one pass over memory.
//!
//! Candle's own elementwise operations run on a pool of their own, behind one lock for the whole process; on the CPU
//! nothing here or in the architectures uses them, so that a model keeps to the caller's pool. On a GPU they take a
//! kernel each, and their rectifiers make a NaN a zero.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result, Tensor, bail};

use super::{
    Activation, has_kernels,
    values::{f32_values, pixels_of},
};

/// `sums + other`, activated: how a residual branch joins. `sums` must be a tensor that nothing else shares.
pub(crate) fn add_and_activate(sums: Tensor, other: &Tensor, activation: Activation) -> Result<Tensor> {
    if !has_kernels(sums.device()) {
        return activation.apply(&(sums + other)?);
    }
    if sums.device().is_cpu() && sums.rank() == 4 {
        // Images lie pixel by pixel there.
        let sums = pixels_of(&sums)?;
        sums.inplace_op2(&pixels_of(other)?, &Join { activation })?;
        return sums.permute((0, 3, 1, 2));
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
