//! Pooling over places of an image.

use candle_core::{D, DType, Device, Result, Tensor};
use rayon::prelude::*;

use super::{
    kernel::{Isa, Work},
    values::{images_of, pixels_of, with_values},
};

/// The mean over height and width: `[rows, channels, height, width]` to `[rows, channels]`.
pub fn global_mean(images: &Tensor) -> Result<Tensor> {
    if !images.device().is_cpu() {
        // Half precision has too few digits to add up places in.
        return images.flatten_from(2)?.to_dtype(DType::F32)?.mean(D::Minus1)?.to_dtype(images.dtype());
    }
    let (n_rows, n_channels, height, width) = images.dims4()?;
    let n_pixels = height * width;
    let mut means = vec![0.0_f32; n_rows * n_channels];
    with_values(&pixels_of(images)?, |pixels| {
        let rows = means.chunks_exact_mut(n_channels.max(1)).zip(pixels.chunks_exact((n_pixels * n_channels).max(1)));
        for (means, pixels) in rows {
            for pixel in pixels.chunks_exact(n_channels) {
                means.iter_mut().zip(pixel).for_each(|(mean, value)| *mean += value);
            }
            means.iter_mut().for_each(|mean| *mean /= n_pixels as f32);
        }
        Ok(())
    })?;
    Tensor::from_vec(means, (n_rows, n_channels), &Device::Cpu)
}

/// The largest value of each window of 3×3, stepping by two, with one pixel around the image that never wins.
pub fn max_pool_3x3_stride_2(images: &Tensor) -> Result<Tensor> {
    if images.device().is_cpu() {
        return max_pool_pixels(images);
    }
    #[cfg(feature = "cuda")]
    if images.device().is_cuda() {
        return images.contiguous()?.apply_op1_no_bwd(&on_cuda::MaxPool);
    }
    // Zeros around the image never win over what comes out of a rectifier, and only such images come here.
    images.pad_with_zeros(D::Minus2, 1, 1)?.pad_with_zeros(D::Minus1, 1, 1)?.max_pool2d_with_stride(3, 2)
}

fn max_pool_pixels(images: &Tensor) -> Result<Tensor> {
    let (n_rows, n_channels, height, width) = images.dims4()?;
    let (out_height, out_width) = (height.div_ceil(2), width.div_ceil(2));
    let mut out = vec![0.0_f32; n_rows * n_channels * out_height * out_width];
    if !out.is_empty() {
        with_values(&pixels_of(images)?, |pixels| {
            let isa = Isa::best();
            out.par_chunks_exact_mut(out_width * n_channels).enumerate().for_each(|(line_idx, out)| {
                let (image_idx, out_y) = (line_idx / out_height, line_idx % out_height);
                let (first, end) = ((2 * out_y).saturating_sub(1), (2 * out_y + 2).min(height));
                let start = image_idx * height + first;
                let lines = &pixels[start * width * n_channels..][..(end - first) * width * n_channels];
                isa.run(Line { lines, n_channels, width, out });
            });
            Ok(())
        })?;
    }
    images_of(out, [n_rows, n_channels, out_height, out_width])
}

/// One line of the output, of the two or three that its windows see.
struct Line<'a> {
    lines: &'a [f32],
    n_channels: usize,
    width: usize,
    out: &'a mut [f32],
}

impl Work for Line<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let n_channels = self.n_channels;
        for (out_x, largest) in self.out.chunks_exact_mut(n_channels).enumerate() {
            largest.fill(f32::NEG_INFINITY);
            let (first, end) = ((2 * out_x).saturating_sub(1), (2 * out_x + 2).min(self.width));
            for line in self.lines.chunks_exact(self.width * n_channels) {
                for pixel in line[first * n_channels..end * n_channels].chunks_exact(n_channels) {
                    largest.iter_mut().zip(pixel).for_each(|(largest, value)| *largest = larger(*largest, *value));
                }
            }
        }
    }
}

/// The larger of two values, or a NaN if either is one: it must show in the output.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a >= b || a.is_nan() { a } else { b }
}

#[cfg(feature = "cuda")]
mod on_cuda {
    use candle_core::{CpuStorage, CudaStorage, CustomOp1, Layout, Result, Shape, bail};

    pub(super) struct MaxPool;

    impl CustomOp1 for MaxPool {
        fn name(&self) -> &'static str {
            "max_pool_3x3_stride_2"
        }

        fn cpu_fwd(&self, _storage: &CpuStorage, _layout: &Layout) -> Result<(CpuStorage, Shape)> {
            bail!("an operation of CUDA was given values of the CPU")
        }

        fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
            crate::cuda::ops::max_pool(storage, layout)
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    fn check(height: usize, width: usize) {
        let values: Vec<f32> = (0..2 * height * width).map(|n| ((n * 7919) % 101) as f32).collect();
        let images = Tensor::from_vec(values, (1, 2, height, width), &Device::Cpu).expect("images");
        let wanted = images
            .pad_with_zeros(D::Minus2, 1, 1)
            .and_then(|images| images.pad_with_zeros(D::Minus1, 1, 1)?.max_pool2d_with_stride(3, 2))
            .expect("candle");
        let found = max_pool_3x3_stride_2(&images).expect("our kernel");
        assert_eq!(found.dims(), wanted.dims());
        let values = |tensor: &Tensor| tensor.flatten_all().and_then(|t| t.to_vec1::<f32>()).expect("values");
        assert_eq!(values(&found), values(&wanted), "{height}×{width}");
    }

    #[test]
    fn our_maximum_agrees_with_candle() {
        for (height, width) in [(16, 16), (7, 12), (12, 7), (1, 1), (2, 3), (9, 9)] {
            check(height, width);
        }
    }

    #[test]
    fn a_nan_wins() {
        for place in 0..9 {
            let mut values = [1.0_f32; 9];
            values[place] = f32::NAN;
            let images = Tensor::from_slice(&values, (1, 1, 3, 3), &Device::Cpu).expect("an image");
            let found = max_pool_3x3_stride_2(&images).and_then(|t| t.flatten_all()?.to_vec1::<f32>()).expect("values");
            assert!(found.iter().any(|value| value.is_nan()), "at {place}");
        }
    }
}
