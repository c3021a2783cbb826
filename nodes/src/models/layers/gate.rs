//! The gate of a SwiGLU layer: one half of the values decides how much of the other passes.

use candle_core::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{
    kernel::{Isa, Work},
    sigmoid::sigmoid,
    values::f32_values,
};

/// `silu(first half) · second half` over the last dimension, which is halved.
pub(crate) fn gate(values: &Tensor) -> Result<Tensor> {
    if values.device().is_cpu() {
        return values.contiguous()?.apply_op1_no_bwd(&Gate);
    }
    let [gates, passing] = [0, 1].map(|half| half_of(values, half));
    gates?.silu()? * passing?
}

fn half_of(values: &Tensor, half: usize) -> Result<Tensor> {
    let n_out = values.dim(D::Minus1)? / 2;
    values.narrow(D::Minus1, half * n_out, n_out)?.contiguous()
}

/// The CPU's own.
struct Gate;

impl CustomOp1 for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let values = f32_values(storage, layout)?;
        let mut shape = layout.shape().dims().to_vec();
        let Some(last) = shape.last_mut().filter(|last| **last >= 2 && **last % 2 == 0) else {
            bail!("a gate over {:?}", layout.shape());
        };
        *last /= 2;
        let n_out = *last;
        let mut out = vec![0.0_f32; values.len() / 2];
        let isa = Isa::best();
        out.par_chunks_exact_mut(n_out).zip(values.par_chunks_exact(2 * n_out)).for_each(|(out, values)| {
            let (gates, passing) = values.split_at(n_out);
            isa.run(Row { gates, passing, out });
        });
        Ok((CpuStorage::F32(out), Shape::from(shape)))
    }
}

struct Row<'a> {
    gates: &'a [f32],
    passing: &'a [f32],
    out: &'a mut [f32],
}

impl Work for Row<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for ((out, gate), passing) in self.out.iter_mut().zip(self.gates).zip(self.passing) {
            *out = gate * sigmoid::<FUSED>(*gate) * passing;
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn the_first_half_gates_the_second() {
        let values: Vec<f32> = (0..24).map(|n| (n as f32 - 11.5) * 0.7).collect();
        let tensor = Tensor::from_vec(values, (2, 2, 6), &Device::Cpu).expect("a tensor");
        let found = gate(&tensor).expect("gated");
        let wanted = half_of(&tensor, 0).and_then(|gates| gates.silu()? * half_of(&tensor, 1)?).expect("candle");
        assert_eq!(found.dims(), [2, 2, 3]);
        let all = |tensor: &Tensor| tensor.flatten_all().and_then(|flat| flat.to_vec1::<f32>()).expect("values");
        for (found, wanted) in all(&found).iter().zip(all(&wanted)) {
            assert!((found - wanted).abs() <= 1e-6 * wanted.abs(), "{found} is not {wanted}");
        }
    }
}
