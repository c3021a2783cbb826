//! The two inner loops of resampling.
//!
//! They are plain loops over small arrays. On x86-64 with AVX2 the one along the rows is written out, because three samples a pixel
//! defeat the compiler, and the one along the columns is compiled a second time, since a product of 32-bit numbers is one
//! instruction there and not six. All give the same bytes: the sums are exact.

use super::resample::{WEIGHT_BITS, Weights};

const HALF: i32 = 1 << (WEIGHT_BITS - 1);

/// Weighs pixels along one row, whose first pixel stands at column `first`.
pub(super) fn horizontal(row: &[u8], first: usize, weights: &Weights, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it has AVX2, and the function asks for nothing else.
        return unsafe { avx2::horizontal(row, first, weights, out) };
    }
    for (place, out) in out.chunks_exact_mut(3).enumerate() {
        horizontal_place(row, first, weights, place, out);
    }
}

/// Weighs rows that lie `stride` bytes apart, column by column.
pub(super) fn vertical(rows: &[u8], stride: usize, weights: &[i32], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { vertical_avx2(rows, stride, weights, out) };
    }
    vertical_loop(rows, stride, weights, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn vertical_avx2(rows: &[u8], stride: usize, weights: &[i32], out: &mut [u8]) {
    vertical_loop(rows, stride, weights, out);
}

fn horizontal_place(row: &[u8], first: usize, weights: &Weights, place: usize, out: &mut [u8]) {
    let (start, weights) = weights.at(place);
    let mut sums = [HALF; 3];
    for (pixel, &weight) in row[(start - first) * 3..].chunks_exact(3).zip(weights) {
        for (sum, &sample) in sums.iter_mut().zip(pixel) {
            *sum = sum.wrapping_add(i32::from(sample).wrapping_mul(weight));
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = clip(sum);
    }
}

#[inline(always)]
fn vertical_loop(rows: &[u8], stride: usize, weights: &[i32], out: &mut [u8]) {
    const LANES: usize = 32;
    let whole = out.len() / LANES * LANES;
    let (blocks, rest) = out.split_at_mut(whole);
    for (block, out) in blocks.chunks_exact_mut(LANES).enumerate() {
        let mut sums = [HALF; LANES];
        for (n, &weight) in weights.iter().enumerate() {
            let samples = &rows[n * stride + block * LANES..][..LANES];
            for (sum, &sample) in sums.iter_mut().zip(samples) {
                *sum = sum.wrapping_add(i32::from(sample).wrapping_mul(weight));
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = clip(sum);
        }
    }
    for (column, out) in rest.iter_mut().enumerate() {
        let mut sum = HALF;
        for (n, &weight) in weights.iter().enumerate() {
            sum = sum.wrapping_add(i32::from(rows[n * stride + whole + column]).wrapping_mul(weight));
        }
        *out = clip(sum);
    }
}

#[inline(always)]
fn clip(sum: i32) -> u8 {
    (sum >> WEIGHT_BITS).clamp(0, 255) as u8
}

/// The weights of four pixels, made ready for the vector loop along the rows.
///
/// A multiplication of 16-bit numbers that adds neighbouring products is twice as fast as one of 32-bit numbers, but a weight has
/// 24 bits: so it is split into 15 low bits and the high rest, and the two sums are put together at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quad {
    low: [i16; 16],
    high: [i16; 16],
}

impl Quad {
    const LOW_BITS: u32 = 15;

    /// Packs the weights of one place, four pixels at a time.
    pub(super) fn pack(weights: &[i32]) -> impl Iterator<Item = Self> {
        weights.chunks(4).map(|four| {
            let mut quad = Self { low: [0; 16], high: [0; 16] };
            for (n, weight) in four.iter().enumerate() {
                // Pixels 0 and 1 lie in the lower half and 2 and 3 in the upper: a pair for red, for green, for blue, and nothing.
                for colour in 0..3 {
                    let lane = n / 2 * 8 + colour * 2 + n % 2;
                    quad.low[lane] = (weight & ((1 << Self::LOW_BITS) - 1)) as i16;
                    quad.high[lane] = (weight >> Self::LOW_BITS) as i16;
                }
            }
            quad
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_packs_epi32, _mm_packus_epi16, _mm_set1_epi32,
        _mm_srai_epi32, _mm256_add_epi32, _mm256_broadcastsi128_si256, _mm256_castsi256_si128,
        _mm256_extracti128_si256, _mm256_madd_epi16, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
        _mm256_slli_epi32,
    };

    use super::{HALF, Quad, WEIGHT_BITS, Weights, horizontal_place};

    #[target_feature(enable = "avx2")]
    pub(super) fn horizontal(row: &[u8], first: usize, weights: &Weights, out: &mut [u8]) {
        const Z: i8 = -1;
        // From four pixels to pairs of 16-bit samples of one colour.
        let pairs = _mm256_setr_epi8(
            0, Z, 3, Z, 1, Z, 4, Z, 2, Z, 5, Z, Z, Z, Z, Z, //
            6, Z, 9, Z, 7, Z, 10, Z, 8, Z, 11, Z, Z, Z, Z, Z,
        );
        let n_quads = weights.taps().div_ceil(4);
        let places = weights.starts().iter().zip(weights.quads().chunks_exact(n_quads));
        for (place, ((&start, quads), out)) in places.zip(out.chunks_exact_mut(3)).enumerate() {
            let at = (start - first) * 3;
            // Sixteen bytes are read for each twelve that count; near the row's end they are not there.
            let Some(pixels) = row.get(at..at + n_quads * 12 + 4) else {
                horizontal_place(row, first, weights, place, out);
                continue;
            };
            let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            for (four, quad) in pixels.windows(16).step_by(12).zip(quads) {
                let samples = _mm256_broadcastsi128_si256(bytemuck::pod_read_unaligned::<__m128i>(four));
                let samples = _mm256_shuffle_epi8(samples, pairs);
                let weigh = |weights: &[i16; 16]| {
                    _mm256_madd_epi16(samples, bytemuck::pod_read_unaligned::<__m256i>(bytemuck::bytes_of(weights)))
                };
                low = _mm256_add_epi32(low, weigh(&quad.low));
                high = _mm256_add_epi32(high, weigh(&quad.high));
            }
            let sums = _mm256_add_epi32(low, _mm256_slli_epi32::<{ Quad::LOW_BITS as i32 }>(high));
            let sums = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
            let sums = _mm_srai_epi32::<{ WEIGHT_BITS as i32 }>(_mm_add_epi32(sums, _mm_set1_epi32(HALF)));
            let words = _mm_packs_epi32(sums, sums);
            let bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words)).to_le_bytes();
            out.copy_from_slice(&bytes[..3]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::resample::{ResampleBuffers, Span, Target, Window, resample};
    use crate::decode::Interpolation;

    /// Weighs in 64 bits and one pixel at a time, with nothing left out and nothing shared with the loops under test.
    fn plainly(source: &[u8], width: usize, to: usize) -> Vec<u8> {
        let scale = width as f64 / to as f64;
        let stretch = scale.max(1.0);
        let mut out = Vec::new();
        for x in 0..to {
            let center = (x as f64 + 0.5) * scale;
            let first = (center - stretch + 0.5).max(0.0) as usize;
            let end = ((center + stretch + 0.5) as usize).min(width);
            let curve: Vec<f64> =
                (first..end).map(|at| (1.0 - ((at as f64 - center + 0.5) / stretch).abs()).max(0.0)).collect();
            let sum: f64 = curve.iter().sum();
            for c in 0..3 {
                let total: i64 = curve.iter().enumerate().fold(1 << 21, |total, (n, weight)| {
                    let weight = (weight / sum * f64::from(1 << 22) + 0.5) as i64;
                    total + weight * i64::from(source[(first + n) * 3 + c])
                });
                out.push((total >> 22).clamp(0, 255) as u8);
            }
        }
        out
    }

    #[test]
    fn the_loop_along_a_row_sums_up_exactly_at_every_width() {
        let mut buffers = ResampleBuffers::default();
        for width in 1..40_usize {
            let source: Vec<u8> = (0..width * 3).map(|n| if n % 5 == 0 { 255 } else { (n * 89 % 256) as u8 }).collect();
            for to in 1..45_usize {
                let mut got = vec![0; to * 3];
                let from = [width as u32, 1].map(Span::whole);
                let window = Window { from, resized: [to as u64, 1], origin: [0, 0], size: [to as u32, 1] };
                let target = Target { bytes: &mut got, stride: to * 3 };
                resample(&source, [width as u32, 1], window, Interpolation::Bilinear, &mut buffers, target);
                let expected = if to == width { source.clone() } else { plainly(&source, width, to) };
                assert_eq!(got, expected, "{width} → {to}");
            }
        }
    }
}
