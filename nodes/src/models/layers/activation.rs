//! What follows a convolution or a linear layer, value by value.

use candle_core::Tensor;

use super::{
    kernel::{Isa, Work, add_product},
    sigmoid::{exp, sigmoid},
};

/// The polynomial in the exponent of the error function's complement, from the highest power down.
const ERFC: [f32; 10] = [
    0.170_872_77,
    -0.822_152_23,
    1.488_515_9,
    -1.135_204,
    0.278_868_07,
    -0.186_288_06,
    0.096_784_18,
    0.374_091_96,
    1.000_023_7,
    -1.265_512_2,
];

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
    /// Whether it does no more than hold values between two bounds.
    pub(super) fn is_bounds(self) -> bool {
        matches!(self, Self::Identity | Self::Relu | Self::Relu6)
    }

    /// What it holds values between.
    pub(super) fn bounds(self) -> [f32; 2] {
        match self {
            Self::Relu => [0.0, f32::INFINITY],
            Self::Relu6 => [0.0, 6.0],
            _ => [f32::NEG_INFINITY, f32::INFINITY],
        }
    }

    /// Activates in place.
    pub(crate) fn apply_to(self, values: &mut [f32]) {
        if self != Self::Identity {
            Isa::best().run(Activate { activation: self, values });
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

struct Activate<'a> {
    activation: Activation,
    values: &'a mut [f32],
}

impl Work for Activate<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let values = self.values.iter_mut();
        match self.activation {
            Activation::Identity => {}
            Activation::Relu => values.for_each(|value| *value = value.clamp(0.0, f32::INFINITY)),
            Activation::Relu6 => values.for_each(|value| *value = value.clamp(0.0, 6.0)),
            Activation::Gelu => values.for_each(|value| *value = gelu::<FUSED>(*value)),
            Activation::GeluTanh => values.for_each(|value| *value = gelu_tanh::<FUSED>(*value)),
            Activation::QuickGelu => values.for_each(|value| *value *= sigmoid::<FUSED>(QUICK * *value)),
        }
    }
}

/// x times the share of the normal distribution below x. The error function is Press's (Numerical Recipes, `erfcc`), whose
/// relative error is below 1.2e-7, so that small results are right too.
#[inline(always)]
fn gelu<const FUSED: bool>(value: f32) -> f32 {
    let z = value.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / add_product::<FUSED>(1.0, z, 0.5);
    let mut sum = ERFC[0];
    for term in &ERFC[1..] {
        sum = add_product::<FUSED>(*term, sum, t);
    }
    let tail = 0.5 * t * exp::<FUSED>(add_product::<FUSED>(sum, z, -z));
    value * if value < 0.0 { tail } else { 1.0 - tail }
}

/// (1 + tanh u)/2 is the sigmoid of 2u.
#[inline(always)]
fn gelu_tanh<const FUSED: bool>(value: f32) -> f32 {
    value * sigmoid::<FUSED>(2.0 * TANH_SLOPE * (value + TANH_CUBE * value * value * value))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn in_place_is_the_same_as_by_candle() {
        let values: Vec<f32> = (-80..80).map(|n| n as f32 * 0.11).collect();
        let tensor = Tensor::new(values.as_slice(), &Device::Cpu).expect("a tensor");
        for activation in [Activation::Identity, Activation::Relu, Activation::Relu6] {
            let mut found = values.clone();
            activation.apply_to(&mut found);
            let wanted = activation.apply(&tensor).and_then(|tensor| tensor.to_vec1::<f32>()).expect("candle");
            assert_eq!(found, wanted, "{activation:?}");
        }
        for activation in [Activation::Gelu, Activation::GeluTanh, Activation::QuickGelu] {
            let mut found = values.clone();
            activation.apply_to(&mut found);
            let wanted = activation.apply(&tensor).and_then(|tensor| tensor.to_vec1::<f32>()).expect("candle");
            for (found, wanted) in found.iter().zip(wanted) {
                // Candle takes a small number from one, whose rounding shows where little is left.
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
