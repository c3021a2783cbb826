//! What follows a convolution, value by value.

use candle_core::Tensor;

/// A rectifier, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Values pass as they are.
    Identity,
    /// Negative values become zero.
    Relu,
    /// Values are held between zero and six.
    Relu6,
}

impl Activation {
    /// The lower and upper bound that values are held to. A NaN passes, so that it shows in the output.
    pub(crate) fn bounds(self) -> (f32, f32) {
        match self {
            Self::Identity => (f32::NEG_INFINITY, f32::INFINITY),
            Self::Relu => (0.0, f32::INFINITY),
            Self::Relu6 => (0.0, 6.0),
        }
    }

    /// The same by candle's operations, for any device.
    pub(crate) fn apply(self, values: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            Self::Identity => Ok(values.clone()),
            Self::Relu => values.relu(),
            Self::Relu6 => values.clamp(0f32, 6f32),
        }
    }
}
