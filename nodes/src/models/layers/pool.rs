//! Pooling over places of an image.

use candle_core::{CpuStorage, CustomOp1, D, DType, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{f32_values, has_kernels};

/// The mean over height and width: `[rows, channels, height, width]` to `[rows, channels]`.
pub fn global_mean(images: &Tensor) -> Result<Tensor> {
    // Half precision has too few digits to add up places in.
    images.flatten_from(2)?.to_dtype(DType::F32)?.mean(D::Minus1)?.to_dtype(images.dtype())
}

/// The largest value of each window of 3×3, stepping by two, with one pixel around the image that never wins.
pub fn max_pool_3x3_stride_2(images: &Tensor) -> Result<Tensor> {
    if has_kernels(images.device()) {
        return images.contiguous()?.apply_op1_no_bwd(&MaxPool);
    }
    // Zeros around the image never win over what comes out of a rectifier, and only such images come here.
    images.pad_with_zeros(D::Minus2, 1, 1)?.pad_with_zeros(D::Minus1, 1, 1)?.max_pool2d_with_stride(3, 2)
}

struct MaxPool;

impl CustomOp1 for MaxPool {
    fn name(&self) -> &'static str {
        "max_pool_3x3_stride_2"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let images = f32_values(storage, layout)?;
        let (n_rows, n_channels, height, width) = layout.shape().dims4()?;
        let (out_height, out_width) = (height.div_ceil(2), width.div_ceil(2));
        let mut out = vec![0.0_f32; n_rows * n_channels * out_height * out_width];
        out.par_chunks_exact_mut(out_height * out_width).zip(images.par_chunks_exact(height * width)).for_each_init(
            Vec::new,
            |tallest, (out, plane)| {
                for (out_y, out_row) in out.chunks_exact_mut(out_width).enumerate() {
                    let first = (2 * out_y).saturating_sub(1);
                    let end = (2 * out_y + 2).min(height);
                    pool_rows(&plane[first * width..end * width], width, tallest, out_row);
                }
            },
        );
        Ok((CpuStorage::F32(out), Shape::from((n_rows, n_channels, out_height, out_width))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::cuda::ops::max_pool(storage, layout)
    }
}

/// The larger of two values, or a NaN if either is one: it must show in the output.
fn larger(a: f32, b: f32) -> f32 {
    if a >= b || a.is_nan() { a } else { b }
}

/// The largest value down each column of `rows`, then across each window.
fn pool_rows(rows: &[f32], width: usize, tallest: &mut Vec<f32>, out: &mut [f32]) {
    tallest.clear();
    tallest.extend_from_slice(&rows[..width]);
    for row in rows[width..].chunks_exact(width) {
        for (tallest, &value) in tallest.iter_mut().zip(row) {
            *tallest = larger(*tallest, value);
        }
    }
    for (out_x, out) in out.iter_mut().enumerate() {
        let window = &tallest[(2 * out_x).saturating_sub(1)..(2 * out_x + 2).min(width)];
        *out = window.iter().copied().fold(f32::NEG_INFINITY, larger);
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
