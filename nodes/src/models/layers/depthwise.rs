//! A convolution of each channel by itself.
//!
//! Candle runs such a convolution group by group, hundreds of tiny ones. Here each channel is copied once with its
//! zeros around it, then whole rows are multiplied and added. No value depends on its neighbours in a batch.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, bail};
use rayon::prelude::*;

use super::{Activation, Axis, f32_values, parameter::Parameter};

/// The layer's figures, borrowed for one call.
pub(crate) struct Depthwise<'a> {
    pub weight: &'a Parameter,
    pub bias: &'a Parameter,
    pub kernel: usize,
    pub stride: usize,
    pub y: Axis,
    pub x: Axis,
    pub activation: Activation,
}

impl CustomOp1 for Depthwise<'_> {
    fn name(&self) -> &'static str {
        "depthwise"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let images = f32_values(storage, layout)?;
        let (n_rows, n_channels, height, width) = layout.shape().dims4()?;
        let n_taps = self.kernel * self.kernel;
        let (weight, bias) = (self.weight.host(), self.bias.host());
        if n_channels != bias.len() || n_channels * n_taps != weight.len() {
            bail!("{n_channels} channels under {} filters", bias.len());
        }
        let n_out = self.y.n_out * self.x.n_out;
        let mut out = vec![0.0_f32; n_rows * n_channels * n_out];
        out.par_chunks_exact_mut(n_out).zip(images.par_chunks_exact(height * width)).enumerate().for_each_init(
            Vec::new,
            |padded, (plane_idx, (out, plane))| {
                let channel_idx = plane_idx % n_channels;
                let weight = &weight[channel_idx * n_taps..][..n_taps];
                self.pad(plane, padded);
                self.convolve(padded, weight, bias[channel_idx], out);
            },
        );
        Ok((CpuStorage::F32(out), Shape::from((n_rows, n_channels, self.y.n_out, self.x.n_out))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::cuda::ops::depthwise(self, storage, layout)
    }
}

impl Depthwise<'_> {
    /// Values of one padded row that belong to one phase of the stride.
    fn phase_len(&self) -> usize {
        (self.x.before + self.x.n_in + self.x.after).div_ceil(self.stride)
    }

    /// Copies a channel with zeros around it. Each row is kept as `stride` phases one after the other (every second
    /// value, then the others), so that what one tap sees in a row of windows is one run of memory.
    fn pad(&self, plane: &[f32], padded: &mut Vec<f32>) {
        let phase_len = self.phase_len();
        let row_len = self.stride * phase_len;
        padded.clear();
        padded.resize((self.y.before + self.y.n_in + self.y.after) * row_len, 0.0);
        let rows = padded.chunks_exact_mut(row_len).skip(self.y.before);
        for (row, values) in rows.zip(plane.chunks_exact(self.x.n_in)) {
            if self.stride == 1 {
                row[self.x.before..][..values.len()].copy_from_slice(values);
                continue;
            }
            for (phase_idx, phase) in row.chunks_exact_mut(phase_len).enumerate() {
                // The first place of this phase that lies inside the image, and which value stands there.
                let skipped = self.x.before.saturating_sub(phase_idx).div_ceil(self.stride);
                let first = skipped * self.stride + phase_idx - self.x.before;
                let taken = values.iter().skip(first).step_by(self.stride);
                for (place, value) in phase[skipped..].iter_mut().zip(taken) {
                    *place = *value;
                }
            }
        }
    }

    fn convolve(&self, padded: &[f32], weight: &[f32], bias: f32, out: &mut [f32]) {
        let row_len = self.stride * self.phase_len();
        for (out_y, sums) in out.chunks_exact_mut(self.x.n_out).enumerate() {
            sums.fill(bias);
            for (tap_y, weights) in weight.chunks_exact(self.kernel).enumerate() {
                let row = &padded[(out_y * self.stride + tap_y) * row_len..][..row_len];
                match self.kernel {
                    3 => self.add_taps::<3>(row, weights, 0, sums),
                    5 => self.add_taps::<5>(row, weights, 0, sums),
                    _ => (0..self.kernel).for_each(|tap_x| self.add_taps::<1>(row, weights, tap_x, sums)),
                }
            }
            self.activation.apply_to(sums);
        }
    }

    /// Adds what `N` taps of one row of the filter, from `first` on, see as the window slides over one row.
    fn add_taps<const N: usize>(&self, row: &[f32], weights: &[f32], first: usize, sums: &mut [f32]) {
        let phase_len = self.phase_len();
        let n_out = sums.len();
        let seen: [&[f32]; N] = std::array::from_fn(|tap_idx| {
            let tap_x = first + tap_idx;
            &row[tap_x % self.stride * phase_len + tap_x / self.stride..][..n_out]
        });
        let weights: [f32; N] = std::array::from_fn(|tap_idx| weights[first + tap_idx]);
        for (out_x, sum) in sums.iter_mut().enumerate() {
            let mut total = *sum;
            for tap_idx in 0..N {
                total += weights[tap_idx] * seen[tap_idx][out_x];
            }
            *sum = total;
        }
    }
}
