//! The two inner loops of resampling.

use super::resample::{WEIGHT_BITS, Weights};

const HALF: i32 = 1 << (WEIGHT_BITS - 1);

/// Weighs pixels along one row.
pub(super) fn horizontal(row: &[u8], weights: &Weights, out: &mut [u8]) {
    let taps = weights.taps();
    let places = weights.starts().iter().zip(weights.all().chunks_exact(taps));
    for ((&start, weights), out) in places.zip(out.chunks_exact_mut(3)) {
        let mut sums = [HALF; 3];
        for (pixel, &weight) in row[start * 3..][..taps * 3].chunks_exact(3).zip(weights) {
            for (sum, &sample) in sums.iter_mut().zip(pixel) {
                *sum = sum.wrapping_add(i32::from(sample) * weight);
            }
        }
        out.copy_from_slice(&sums.map(clip));
    }
}

/// Weighs rows that lie `stride` bytes apart, column by column.
pub(super) fn vertical(rows: &[u8], stride: usize, weights: &[i32], out: &mut [u8]) {
    const LANES: usize = 32;
    let whole = out.len() / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        let mut sums = [HALF; LANES];
        for (n, &weight) in weights.iter().enumerate() {
            let samples = &rows[n * stride + at..][..LANES];
            for (sum, &sample) in sums.iter_mut().zip(samples) {
                *sum = sum.wrapping_add(i32::from(sample) * weight);
            }
        }
        for (out, sum) in out[at..][..LANES].iter_mut().zip(sums) {
            *out = clip(sum);
        }
    }
    for at in whole..out.len() {
        let mut sum = HALF;
        for (n, &weight) in weights.iter().enumerate() {
            sum = sum.wrapping_add(i32::from(rows[n * stride + at]) * weight);
        }
        out[at] = clip(sum);
    }
}

fn clip(sum: i32) -> u8 {
    (sum >> WEIGHT_BITS).clamp(0, 255) as u8
}
