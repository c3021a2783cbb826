//! The layers' operations that only CUDA needs one by one: on the CPU one kernel does what several of them do.

use candle_core::{CpuStorage, CudaStorage, CustomOp1, InplaceOp1, Layout, Result, Shape, bail};

use super::{Activation, Axis, parameter::Parameter};
use crate::cuda::ops;

const ELSEWHERE: &str = "an operation of CUDA was given values of the CPU";

/// The windows of a convolution laid out as a matrix: `[rows, channels, height, width]` to
/// `[rows, channels · k · k, out height · out width]`.
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

    fn cpu_fwd(&self, _storage: &CpuStorage, _layout: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("{ELSEWHERE}")
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        ops::im2col(self, storage, layout)
    }
}

/// A convolution of each channel by itself, with its bias and activation.
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

    fn cpu_fwd(&self, _storage: &CpuStorage, _layout: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("{ELSEWHERE}")
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        ops::depthwise(self, storage, layout)
    }
}

/// Adds a bias, then activates.
pub(crate) struct BiasActivation<'a> {
    pub bias: &'a Parameter,
    pub along: Along,
    pub activation: Activation,
}

/// Which values share one number of the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Along {
    /// All of a channel, in `[rows, channels, values]`.
    Channels,
    /// One column, in `[rows, columns]`.
    Columns,
}

impl InplaceOp1 for BiasActivation<'_> {
    fn name(&self) -> &'static str {
        "bias_activation"
    }

    fn cpu_fwd(&self, _storage: &mut CpuStorage, _layout: &Layout) -> Result<()> {
        bail!("{ELSEWHERE}")
    }

    fn cuda_fwd(&self, storage: &mut CudaStorage, layout: &Layout) -> Result<()> {
        ops::bias_activation(self, storage, layout)
    }
}
