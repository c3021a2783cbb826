//! Layer norm over the last dimension.

use candle_core::{Device, Module, Result, Tensor, bail};
use rayon::prelude::*;

use super::{
    kernel::{Isa, Work, add_product},
    parameter::Parameter,
    softmax::{add, reduce},
    values::with_values,
};

/// Values that are normed by one task at least.
const LEAST: usize = 1 << 15;

/// A layer norm with a weight and a bias for each value.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    weight: Parameter,
    bias: Parameter,
    eps: f64,
    /// What other devices run.
    by_candle: candle_nn::LayerNorm,
}

impl LayerNorm {
    /// A norm of a weight `[n]` and a bias `[n]`; `eps` is added to variances.
    pub fn new(weight: Tensor, bias: Tensor, eps: f64) -> Result<Self> {
        let (host_weight, host_bias) = (Parameter::new(&weight)?, Parameter::new(&bias)?);
        let by_candle = candle_nn::LayerNorm::new(weight, bias, eps);
        Ok(Self { weight: host_weight, bias: host_bias, eps, by_candle })
    }

    /// Runs over `[…, n]`.
    pub fn forward(&self, values: &Tensor) -> Result<Tensor> {
        if !values.device().is_cpu() {
            return self.by_candle.forward(values);
        }
        let n = self.weight.host().len();
        if n == 0 || values.dims().last() != Some(&n) || self.bias.host().len() != n {
            bail!("a layer norm of {n} over {:?}", values.dims());
        }
        let mut out = vec![0.0_f32; values.elem_count()];
        with_values(values, |values| {
            let n_chunk = LEAST.div_ceil(n) * n;
            out.par_chunks_mut(n_chunk).zip(values.par_chunks(n_chunk)).for_each(|(out, values)| {
                let (weight, bias, eps) = (self.weight.host(), self.bias.host(), self.eps as f32);
                Isa::best().run(Rows { values, out, weight, bias, eps });
            });
            Ok(())
        })?;
        Tensor::from_vec(out, values.shape(), &Device::Cpu)
    }
}

struct Rows<'a> {
    values: &'a [f32],
    out: &'a mut [f32],
    weight: &'a [f32],
    bias: &'a [f32],
    eps: f32,
}

impl Work for Rows<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let n = self.weight.len();
        for (out, values) in self.out.chunks_exact_mut(n).zip(self.values.chunks_exact(n)) {
            let mean = reduce(values, 0.0, add, add) / n as f32;
            for (out, value) in out.iter_mut().zip(values) {
                *out = value - mean;
            }
            let variance = reduce(out, 0.0, |sum, value| add_product::<FUSED>(sum, value, value), add) / n as f32;
            let scale = 1.0 / (variance + self.eps).sqrt();
            for ((out, weight), bias) in out.iter_mut().zip(self.weight).zip(self.bias) {
                *out = add_product::<FUSED>(*bias, *out * scale, *weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_formula() {
        let n = 83;
        let values: Vec<f32> = (0..3 * n).map(|n| (n as f32 * 0.73).sin() * 3.0 + 10.0).collect();
        let weight: Vec<f32> = (0..n).map(|n| 1.0 + n as f32 * 0.01).collect();
        let bias: Vec<f32> = (0..n).map(|n| n as f32 * 0.1 - 2.0).collect();
        let tensor = |values: &[f32]| Tensor::new(values, &Device::Cpu).expect("a tensor");
        let norm = LayerNorm::new(tensor(&weight), tensor(&bias), 1e-5).expect("a norm");
        let found = tensor(&values).reshape((1, 3, n)).and_then(|values| norm.forward(&values)).expect("normed");
        assert_eq!(found.dims(), [1, 3, n]);
        let found = found.flatten_all().and_then(|flat| flat.to_vec1::<f32>()).expect("values");
        for (row, found) in values.chunks_exact(n).zip(found.chunks_exact(n)) {
            let mean = row.iter().copied().map(f64::from).sum::<f64>() / n as f64;
            let variance = row.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / n as f64;
            for (place, found) in found.iter().enumerate() {
                let normed = (f64::from(row[place]) - mean) / (variance + 1e-5).sqrt();
                let wanted = normed * f64::from(weight[place]) + f64::from(bias[place]);
                assert!((f64::from(*found) - wanted).abs() < 1e-5, "{found} is not {wanted}");
            }
        }
        assert!(norm.forward(&tensor(&values)).is_err());
    }
}
