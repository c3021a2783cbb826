//! The sigmoid in arithmetic that processors do on many values at once, where the library's exponential goes one by one.

use super::kernel::add_product;

/// Beyond this the exponential is no longer a normal number.
const LARGEST: f32 = 87.0;
/// Added to a number, it leaves the nearest whole one in the lowest bits.
const TO_WHOLE: f32 = 12_582_912.0;
/// ln 2 in two parts, so that whole multiples of the first are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// 1/(1 + exp(−x)), within a few units of the last place. A NaN passes.
#[inline(always)]
pub(super) fn sigmoid<const FUSED: bool>(value: f32) -> f32 {
    1.0 / (1.0 + exp::<FUSED>(-value))
}

/// 2ⁿ times a polynomial in what is left, which is at most half of ln 2.
#[inline(always)]
pub(super) fn exp<const FUSED: bool>(value: f32) -> f32 {
    let value = value.clamp(-LARGEST, LARGEST);
    let shifted = add_product::<FUSED>(TO_WHOLE, value, std::f32::consts::LOG2_E);
    let whole = shifted - TO_WHOLE;
    let rest = add_product::<FUSED>(add_product::<FUSED>(value, whole, -LN_2[0]), whole, -LN_2[1]);
    // Taylor's, of which the next term is below half a unit of the last place.
    let mut sum = 1.0 / 5040.0;
    for divisor in [720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
        sum = add_product::<FUSED>(1.0 / divisor, sum, rest);
    }
    sum * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_the_exponential_to_the_last_places() {
        for step in -8_700..=8_700_i16 {
            let value = f32::from(step) * 0.01;
            let wanted = f64::from(value).exp();
            for found in [exp::<false>(value), exp::<true>(value)] {
                let off = (f64::from(found) / wanted - 1.0).abs();
                assert!(off < 3e-7, "exp({value}) is {found}, not {wanted}");
            }
        }
    }

    #[test]
    fn the_sigmoid_goes_from_nothing_to_one() {
        assert_eq!([0.0, 1e30, f32::INFINITY].map(sigmoid::<false>), [0.5, 1.0, 1.0]);
        assert!(sigmoid::<true>(-1e30) < 1e-37 && sigmoid::<true>(f32::NEG_INFINITY) < 1e-37);
        assert!(sigmoid::<true>(f32::NAN).is_nan());
    }
}
