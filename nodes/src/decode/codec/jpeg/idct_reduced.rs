//! From coefficients to fewer samples: libjpeg's transforms to 4×4, 2×2 and 1 sample a block, to the bit.
//!
//! They leave out what the whole transform would add to finer detail. Constants and rounding are as in [`idct`](super::idct).

use super::idct::{Block, FACTOR_BITS, FIRST_SHIFT, SECOND_SHIFT, fixed};

/// What each of the odd rows 7, 5, 3 and 1 adds to the inner and the outer samples of four.
pub(super) const INNER: [i32; 4] =
    [-fixed(0.211_164_243), fixed(1.451_774_981), -fixed(2.172_734_803), fixed(1.061_594_337)];
pub(super) const OUTER: [i32; 4] =
    [-fixed(0.509_795_579), -fixed(0.601_344_887), fixed(0.899_976_223), fixed(2.562_915_447)];
/// What rows 2 and 6 add.
pub(super) const EVEN: [i32; 2] = [fixed(1.847_759_065), -fixed(0.765_366_865)];
/// What each of the odd rows adds to the samples of two.
pub(super) const PAIR: [i32; 4] =
    [-fixed(0.720_959_822), fixed(0.850_430_095), -fixed(1.272_758_580), fixed(3.624_509_785)];

/// Bits that the passes over columns and over rows take away: a transform to half as many samples is twice too large.
pub(super) const FOUR_SHIFTS: [u32; 2] = [FIRST_SHIFT + 1, SECOND_SHIFT + 1];
pub(super) const TWO_SHIFTS: [u32; 2] = [FIRST_SHIFT + 2, SECOND_SHIFT + 2];

/// Writes the 4×4 samples of a block to lines that are `stride` bytes apart.
#[inline(always)]
pub(super) fn transform_to_four(block: &Block, out: &mut [u8], stride: usize) {
    let mut columns = [[0; 8]; 4];
    for n in [0, 1, 2, 3, 5, 6, 7] {
        let row = |row: usize| i32::from(block[row * 8 + n]);
        let samples = four::<{ FOUR_SHIFTS[0] }>([row(0), row(1), row(2), row(3), row(5), row(6), row(7)]);
        for (column, sample) in columns.iter_mut().zip(samples) {
            column[n] = saturated(sample);
        }
    }
    for (line, row) in out[..3 * stride + 4].chunks_mut(stride).zip(&columns) {
        let samples = four::<{ FOUR_SHIFTS[1] }>([row[0], row[1], row[2], row[3], row[5], row[6], row[7]]);
        for (out, sample) in line.iter_mut().zip(samples) {
            *out = centred(sample);
        }
    }
}

/// One dimension: from coefficients 0, 1, 2, 3, 5, 6, 7; the fourth has no part in it.
#[inline(always)]
fn four<const SHIFT: u32>([c0, c1, c2, c3, c5, c6, c7]: [i32; 7]) -> [i32; 4] {
    let mean = (c0 << (FACTOR_BITS + 1)).wrapping_add(1 << (SHIFT - 1));
    let even = c2.wrapping_mul(EVEN[0]).wrapping_add(c6.wrapping_mul(EVEN[1]));
    let (inner, outer) = (odd(INNER, [c7, c5, c3, c1]), odd(OUTER, [c7, c5, c3, c1]));
    let (high, low) = (mean.wrapping_add(even), mean.wrapping_sub(even));
    [high.wrapping_add(outer), low.wrapping_add(inner), low.wrapping_sub(inner), high.wrapping_sub(outer)]
        .map(|sample| sample >> SHIFT)
}

/// Writes the 2×2 samples of a block to lines that are `stride` bytes apart.
#[inline(always)]
pub(super) fn transform_to_two(block: &Block, out: &mut [u8], stride: usize) {
    let mut columns = [[0; 8]; 2];
    for n in [0, 1, 3, 5, 7] {
        let row = |row: usize| i32::from(block[row * 8 + n]);
        let samples = two::<{ TWO_SHIFTS[0] }>([row(0), row(1), row(3), row(5), row(7)]);
        for (column, sample) in columns.iter_mut().zip(samples) {
            // The mean has room for more than 16 bits in libjpeg-turbo's vector code, where absurd files need it.
            column[n] = if n == 0 { sample } else { saturated(sample) };
        }
    }
    for (line, row) in out[..stride + 2].chunks_mut(stride).zip(&columns) {
        for (out, sample) in line.iter_mut().zip(two::<{ TWO_SHIFTS[1] }>([row[0], row[1], row[3], row[5], row[7]])) {
            *out = centred(sample);
        }
    }
}

/// One dimension: from coefficients 0 and the odd ones.
#[inline(always)]
fn two<const SHIFT: u32>([c0, c1, c3, c5, c7]: [i32; 5]) -> [i32; 2] {
    let mean = (c0 << (FACTOR_BITS + 2)).wrapping_add(1 << (SHIFT - 1));
    let odd = odd(PAIR, [c7, c5, c3, c1]);
    [mean.wrapping_add(odd) >> SHIFT, mean.wrapping_sub(odd) >> SHIFT]
}

#[inline(always)]
fn odd(factors: [i32; 4], coefficients: [i32; 4]) -> i32 {
    factors
        .into_iter()
        .zip(coefficients)
        .fold(0, |sum, (factor, coefficient)| i32::wrapping_add(sum, coefficient.wrapping_mul(factor)))
}

/// The one sample of a block. Values that no picture has wrap at ten bits.
pub(super) fn transform_to_one(block: &Block) -> u8 {
    let sample = (i32::from(block[0]) + 4) >> 3;
    centred(sample << 22 >> 22)
}

#[inline(always)]
fn saturated(value: i32) -> i32 {
    value.clamp(i32::from(i16::MIN), i32::from(i16::MAX))
}

#[inline(always)]
fn centred(sample: i32) -> u8 {
    (sample.clamp(-128, 127) + 128) as u8
}
