//! From coefficients to samples: the accurate integer transform of libjpeg, to the bit.
//!
//! Constants have 13 bits of fraction; two bits are kept between the passes over columns and rows. Where damaged or absurd files
//! exceed 16 bits, sums wrap and results saturate as in libjpeg-turbo's vector code, which is what a PC runs.

use super::frame::BLOCK;
use super::idct_reduced::transform_to_one;
use super::kernel;

/// Coefficients or products, row by row.
pub(super) type Block = [i16; 64];

/// A factor in fixed point.
pub(super) const fn fixed(value: f64) -> i32 {
    (value * 8192.0 + 0.5) as i32
}

/// Pairs of factors: what the first and the second of two terms are multiplied with.
pub(super) mod factors {
    use super::fixed;

    const F_0_298: i32 = fixed(0.298_631_336);
    const F_0_390: i32 = fixed(0.390_180_644);
    const F_0_541: i32 = fixed(0.541_196_100);
    const F_0_765: i32 = fixed(0.765_366_865);
    const F_0_899: i32 = fixed(0.899_976_223);
    const F_1_175: i32 = fixed(1.175_875_602);
    const F_1_501: i32 = fixed(1.501_321_110);
    const F_1_847: i32 = fixed(1.847_759_065);
    const F_1_961: i32 = fixed(1.961_570_560);
    const F_2_053: i32 = fixed(2.053_119_869);
    const F_2_562: i32 = fixed(2.562_915_447);
    const F_3_072: i32 = fixed(3.072_711_026);

    /// Of rows 2 and 6.
    pub(in super::super) const EVEN_A: [i32; 2] = [F_0_541 + F_0_765, F_0_541];
    pub(in super::super) const EVEN_B: [i32; 2] = [F_0_541, F_0_541 - F_1_847];
    /// Of the sums of rows 3 and 7, and of 1 and 5.
    pub(in super::super) const ODD_A: [i32; 2] = [F_1_175 - F_1_961, F_1_175];
    pub(in super::super) const ODD_B: [i32; 2] = [F_1_175, F_1_175 - F_0_390];
    /// Of rows 7 and 1.
    pub(in super::super) const ODD_7: [i32; 2] = [F_0_298 - F_0_899, -F_0_899];
    pub(in super::super) const ODD_1: [i32; 2] = [-F_0_899, F_1_501 - F_0_899];
    /// Of rows 5 and 3.
    pub(in super::super) const ODD_5: [i32; 2] = [F_2_053 - F_2_562, -F_2_562];
    pub(in super::super) const ODD_3: [i32; 2] = [-F_2_562, F_3_072 - F_2_562];
}

/// Bits of fraction of the factors.
pub(super) const FACTOR_BITS: u32 = 13;
/// Bits that are kept between the passes.
pub(super) const KEPT_BITS: u32 = 2;
/// What the first pass takes away.
pub(super) const FIRST_SHIFT: u32 = FACTOR_BITS - KEPT_BITS;
/// What the second pass takes away: a transform of both axes is 8 times too large.
pub(super) const SECOND_SHIFT: u32 = FACTOR_BITS + KEPT_BITS + 3;

/// Writes the samples of a block, `size` along each side (8, 4, 2 or 1), to lines that are `stride` bytes apart. Behind `last`, in
/// the order of coding, all coefficients are zero.
#[inline(always)]
pub(super) fn transform(block: &Block, last: usize, size: usize, out: &mut [u8], stride: usize) {
    match size {
        8 if last == 0 => fill(block[0], out, stride),
        8 => kernel::transform(block, out, stride),
        4 => kernel::transform_to_four(block, out, stride),
        2 => kernel::transform_to_two(block, out, stride),
        _ => out[0] = transform_to_one(block),
    }
}

/// All samples are the same.
#[inline(always)]
fn fill(mean: i16, out: &mut [u8], stride: usize) {
    let kept = i32::from(mean << KEPT_BITS);
    let sample = (((kept + 16) >> 5).clamp(-128, 127) + 128) as u8;
    for line in out[..7 * stride + BLOCK].chunks_mut(stride) {
        line[..BLOCK].fill(sample);
    }
}

/// The transform in plain loops, for all machines.
pub(super) fn transform_plainly(block: &Block, out: &mut [u8], stride: usize) {
    let columns = if block[8..].iter().all(|&coefficient| coefficient == 0) {
        std::array::from_fn(|n| block[n % 8] << KEPT_BITS)
    } else {
        pass::<FIRST_SHIFT>(block)
    };
    let samples = transposed(&pass::<SECOND_SHIFT>(&transposed(&columns)));
    for (line, samples) in out[..7 * stride + BLOCK].chunks_mut(stride).zip(samples.chunks_exact(BLOCK)) {
        for (out, &sample) in line.iter_mut().zip(samples) {
            *out = (sample.clamp(-128, 127) + 128) as u8;
        }
    }
}

/// One dimension of the transform, for each column.
fn pass<const SHIFT: u32>(block: &Block) -> Block {
    let mut out = [0; 64];
    for n in 0..8 {
        let row: [i16; 8] = std::array::from_fn(|row| block[row * 8 + n]);
        let pair = |a: i16, b: i16, [fa, fb]: [i32; 2]| i32::from(a) * fa + i32::from(b) * fb;
        let long = |short: i16| i32::from(short) << FACTOR_BITS;

        let (even_a, even_b) = (pair(row[2], row[6], factors::EVEN_A), pair(row[2], row[6], factors::EVEN_B));
        let (sum, difference) = (long(row[0].wrapping_add(row[4])), long(row[0].wrapping_sub(row[4])));
        let evens = [
            sum.wrapping_add(even_a),
            difference.wrapping_add(even_b),
            difference.wrapping_sub(even_b),
            sum.wrapping_sub(even_a),
        ];

        let (a, b) = (row[7].wrapping_add(row[3]), row[5].wrapping_add(row[1]));
        let (odd_a, odd_b) = (pair(a, b, factors::ODD_A), pair(a, b, factors::ODD_B));
        let odds = [
            pair(row[7], row[1], factors::ODD_1).wrapping_add(odd_b),
            pair(row[5], row[3], factors::ODD_3).wrapping_add(odd_a),
            pair(row[5], row[3], factors::ODD_5).wrapping_add(odd_b),
            pair(row[7], row[1], factors::ODD_7).wrapping_add(odd_a),
        ];
        for (k, (even, odd)) in evens.into_iter().zip(odds).enumerate() {
            let rounded = even.wrapping_add(1 << (SHIFT - 1));
            out[k * 8 + n] = saturated(rounded.wrapping_add(odd) >> SHIFT);
            out[(7 - k) * 8 + n] = saturated(rounded.wrapping_sub(odd) >> SHIFT);
        }
    }
    out
}

fn saturated(value: i32) -> i16 {
    value.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

fn transposed(block: &Block) -> Block {
    std::array::from_fn(|n| block[n % 8 * 8 + n / 8])
}
