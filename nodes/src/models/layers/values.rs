//! How the kernels read and write tensors on the CPU.
//!
//! Images are `[rows, channels, height, width]` everywhere. On the CPU they lie in memory pixel by pixel, all channels of one
//! together, as a view of a tensor `[rows, height, width, channels]`: then a pixel is a row of a matrix product.

use candle_core::{CpuStorage, Device, Layout, Result, Storage, Tensor, bail};

/// The values of a CPU tensor that must be f32 and contiguous: what every kernel here reads.
pub(crate) fn f32_values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let values = storage.as_slice::<f32>()?;
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&values[start..end]),
        None => bail!("a kernel needs contiguous values"),
    }
}

/// Hands the values of a tensor of the CPU to `work`, in the order of its elements.
pub(super) fn with_values<T>(tensor: &Tensor, work: impl FnOnce(&[f32]) -> Result<T>) -> Result<T> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => work(f32_values(storage, layout)?),
        _ => bail!("a kernel of the CPU was given values that lie elsewhere"),
    }
}

/// The same images as `[rows, height, width, channels]`, contiguous; a copy only if they do not lie so.
pub(super) fn pixels_of(images: &Tensor) -> Result<Tensor> {
    images.permute((0, 2, 3, 1))?.contiguous()
}

/// Images `[rows, channels, height, width]` of values that lie pixel by pixel.
pub(super) fn images_of(pixels: Vec<f32>, [n_rows, n_channels, height, width]: [usize; 4]) -> Result<Tensor> {
    Tensor::from_vec(pixels, (n_rows, height, width, n_channels), &Device::Cpu)?.permute((0, 3, 1, 2))
}
