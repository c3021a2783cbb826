//! The windows of a convolution laid out as a matrix, so that the convolution is a matrix product.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape};
use rayon::prelude::*;

use super::{Axis, f32_values};

/// `[rows, channels, height, width]` to `[rows, channels · k · k, out height · out width]`.
pub(crate) struct Im2Col {
    pub kernel: usize,
    pub stride: usize,
    pub y: Axis,
    pub x: Axis,
}

impl CustomOp1 for Im2Col {
    fn name(&self) -> &'static str {
        "im2col"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let images = f32_values(storage, layout)?;
        let (n_rows, n_channels, height, width) = layout.shape().dims4()?;
        let n_windows = self.y.n_out * self.x.n_out;
        let n_taps = self.kernel * self.kernel;
        let mut columns = vec![0.0_f32; n_rows * n_channels * n_taps * n_windows];
        columns.par_chunks_exact_mut(n_taps * n_windows).zip(images.par_chunks_exact(height * width)).for_each(
            |(columns, plane)| {
                for (tap_idx, taken) in columns.chunks_exact_mut(n_windows).enumerate() {
                    self.take_tap(plane, tap_idx / self.kernel, tap_idx % self.kernel, taken);
                }
            },
        );
        let shape = Shape::from((n_rows, n_channels * n_taps, n_windows));
        Ok((CpuStorage::F32(columns), shape))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::cuda::ops::im2col(self, storage, layout)
    }
}

impl Im2Col {
    /// Copies what one place of the window sees as it slides over one channel. `taken` comes filled with zeros.
    fn take_tap(&self, plane: &[f32], tap_y: usize, tap_x: usize, taken: &mut [f32]) {
        // Columns whose tap falls inside the image.
        let first = self.x.before.saturating_sub(tap_x).div_ceil(self.stride);
        let end = (self.x.n_in + self.x.before).saturating_sub(tap_x).div_ceil(self.stride).min(self.x.n_out);
        if first >= end {
            return;
        }
        let start = first * self.stride + tap_x - self.x.before;
        for (out_y, out_row) in taken.chunks_exact_mut(self.x.n_out).enumerate() {
            let Some(in_y) = (out_y * self.stride + tap_y).checked_sub(self.y.before) else {
                continue;
            };
            if in_y >= self.y.n_in {
                continue;
            }
            let in_row = &plane[in_y * self.x.n_in..][..self.x.n_in][start..];
            let out_row = &mut out_row[first..end];
            if self.stride == 1 {
                out_row.copy_from_slice(&in_row[..out_row.len()]);
            } else {
                for (out, taken) in out_row.iter_mut().zip(in_row.iter().step_by(self.stride)) {
                    *out = *taken;
                }
            }
        }
    }
}
