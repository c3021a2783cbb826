//! What follows a convolution or a linear layer, value by value.

use candle_core::{Tensor, cpu::erf::erf_f32};

use super::sigmoid::sigmoid;

/// By how much [`Activation::QuickGelu`] stretches the sigmoid.
const QUICK: f32 = 1.702;
/// The root of 2/π, and the weight of the cube: the figures of [`Activation::GeluTanh`].
const TANH_SLOPE: f32 = 0.797_884_6;
const TANH_CUBE: f32 = 0.044_715;

/// A rectifier, or nothing. A NaN passes all of them, so that it shows in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Values pass as they are.
    Identity,
    /// Negative values become zero.
    Relu,
    /// Values are held between zero and six.
    Relu6,
    /// The Gaussian error unit, by the error function and not by its approximation.
    Gelu,
    /// Its approximation by a hyperbolic tangent.
    GeluTanh,
    /// Its approximation by a sigmoid.
    QuickGelu,
}

impl Activation {
    /// Activates in place.
    pub(crate) fn apply_to(self, values: &mut [f32]) {
        match self {
            Self::Identity => {}
            Self::Relu => values.iter_mut().for_each(|value| *value = value.clamp(0.0, f32::INFINITY)),
            Self::Relu6 => values.iter_mut().for_each(|value| *value = value.clamp(0.0, 6.0)),
            Self::Gelu => values.iter_mut().for_each(|value| *value = gelu(*value)),
            Self::GeluTanh => values.iter_mut().for_each(|value| *value = gelu_tanh(*value)),
            Self::QuickGelu => values.iter_mut().for_each(|value| *value *= sigmoid(QUICK * *value)),
        }
    }

    /// What the CUDA kernels call it.
    #[cfg(feature = "cuda")]
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Identity => 0,
            Self::Relu => 1,
            Self::Relu6 => 2,
            Self::Gelu => 3,
            Self::GeluTanh => 4,
            Self::QuickGelu => 5,
        }
    }

    /// The same by candle's operations, for any device.
    pub(crate) fn apply(self, values: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            Self::Identity => Ok(values.clone()),
            Self::Relu => values.relu(),
            Self::Relu6 => values.clamp(0f32, 6f32),
            Self::Gelu => values.gelu_erf(),
            Self::GeluTanh => values.gelu(),
            Self::QuickGelu => values * candle_nn::ops::sigmoid(&(values * f64::from(QUICK))?)?,
        }
    }
}

fn gelu(value: f32) -> f32 {
    (erf_f32(value * std::f32::consts::FRAC_1_SQRT_2) + 1.0) * 0.5 * value
}

/// (1 + tanh u)/2 is the sigmoid of 2u.
fn gelu_tanh(value: f32) -> f32 {
    value * sigmoid(2.0 * TANH_SLOPE * (value + TANH_CUBE * value * value * value))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn in_place_is_the_same_as_by_candle() {
        let values: Vec<f32> = (-80..80).map(|n| n as f32 * 0.11).collect();
        let tensor = Tensor::new(values.as_slice(), &Device::Cpu).expect("a tensor");
        for activation in [Activation::Identity, Activation::Relu, Activation::Relu6, Activation::Gelu] {
            let mut found = values.clone();
            activation.apply_to(&mut found);
            let wanted = activation.apply(&tensor).and_then(|tensor| tensor.to_vec1::<f32>()).expect("candle");
            assert_eq!(found, wanted, "{activation:?}");
        }
        for activation in [Activation::GeluTanh, Activation::QuickGelu] {
            let mut found = values.clone();
            activation.apply_to(&mut found);
            let wanted = activation.apply(&tensor).and_then(|tensor| tensor.to_vec1::<f32>()).expect("candle");
            for (found, wanted) in found.iter().zip(wanted) {
                // Candle's tangent takes a small number from one, whose rounding shows where little is left.
                assert!(
                    (found - wanted).abs() <= 1e-6 * wanted.abs().max(1.0),
                    "{activation:?}: {found} is not {wanted}"
                );
            }
        }
    }

    #[test]
    fn a_nan_passes() {
        for activation in
            [Activation::Relu, Activation::Relu6, Activation::Gelu, Activation::GeluTanh, Activation::QuickGelu]
        {
            let mut values = [f32::NAN];
            activation.apply_to(&mut values);
            assert!(values[0].is_nan(), "{activation:?}");
        }
    }
}
