//! The few layers that the architectures are made of.
//!
//! On the CPU and on CUDA they run on kernels of our own and candle's matrix product, step by step the same; on other
//! devices on candle's operations. Either way each image of a batch is computed by itself.

mod activation;
mod conv;
mod depthwise;
mod finish;
mod gate;
mod im2col;
mod linear;
mod parameter;
mod pool;
mod sigmoid;

pub use activation::Activation;
pub use candle_nn::LayerNorm;
pub use conv::{Channels, Conv, ConvSpec, Padding};
pub use linear::Linear;
pub use pool::{global_mean, max_pool_3x3_stride_2};

pub(crate) use finish::add_and_activate;
pub(crate) use gate::gate;
#[cfg(feature = "cuda")]
pub(crate) use {
    depthwise::Depthwise,
    finish::{Along, BiasActivation, Join},
    im2col::Im2Col,
};

/// Whether the layers have kernels of their own for a device.
pub(crate) fn has_kernels(device: &candle_core::Device) -> bool {
    device.is_cpu() || (cfg!(feature = "cuda") && device.is_cuda())
}

/// Where a window slides over one axis of an image, zeros standing around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Length of the input.
    pub n_in: usize,
    /// Length of the output.
    pub n_out: usize,
    /// Zeros before the input.
    pub before: usize,
    /// Zeros after it, as far as the last window reaches.
    pub after: usize,
}

/// The values of a CPU tensor that must be f32 and contiguous: what every kernel here reads.
pub(crate) fn f32_values<'a>(
    storage: &'a candle_core::CpuStorage,
    layout: &candle_core::Layout,
) -> candle_core::Result<&'a [f32]> {
    let values = storage.as_slice::<f32>()?;
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&values[start..end]),
        None => candle_core::bail!("a convolution needs contiguous images"),
    }
}
