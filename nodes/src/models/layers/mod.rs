//! The few layers that the architectures are made of.
//!
//! On the CPU they run on kernels of our own, on CUDA on such and candle's matrix product, on other devices on candle's
//! operations. On the CPU each image of a batch is computed by itself.
//!
//! The CPU's matrix product is `matrix`: weights are packed when they are loaded, windows of convolutions are read where
//! they lie, and bias, residual branch and activation are applied while a sum is in a register. Images lie pixel by pixel
//! there (`values`).

mod activation;
mod attention;
mod conv;
mod depthwise;
mod finish;
mod gate;
mod in_lines;
mod kernel;
mod linear;
mod matrix;
mod norm;
#[cfg(feature = "cuda")]
mod on_cuda;
mod parameter;
mod pool;
mod sigmoid;
mod softmax;
mod values;
mod window;

pub use activation::Activation;
pub use conv::{Channels, Conv, ConvSpec, Padding};
pub use linear::Linear;
pub use norm::LayerNorm;
pub use pool::{global_mean, max_pool_3x3_stride_2};

pub(crate) use attention::attend;
pub(crate) use finish::add_and_activate;
pub(crate) use gate::gate;
pub(crate) use in_lines::{are_computed_in_lines, in_lines};
#[cfg(feature = "cuda")]
pub(crate) use {
    finish::Join,
    on_cuda::{Along, BiasActivation, Depthwise, Im2Col},
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

impl Axis {
    /// Which place of the input the window sees there, counted from the first zero before the input; `None` for a zero.
    #[inline(always)]
    pub(crate) fn read(self, place: usize) -> Option<usize> {
        place.checked_sub(self.before).filter(|place| *place < self.n_in)
    }
}
