//! The inner loops over samples.
//!
//! Each is a plain loop. On x86-64 with AVX2 it is also written out: transposed blocks, bytes that are interleaved by twos and
//! threes, and products of 16-bit numbers are beyond what the compiler finds by itself. Both give the same bytes, on all input.

use super::colour::ycc_pixel;
use super::idct::{Block, transform_plainly};
#[cfg(target_arch = "x86_64")]
use super::idct_avx2;
use super::idct_reduced;

/// Writes the 8×8 samples of a block to lines that are `stride` bytes apart.
#[inline(always)]
pub(super) fn transform(block: &Block, out: &mut [u8], stride: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it has AVX2, and the function asks for nothing else.
        return unsafe { idct_avx2::transform(block, out, stride) };
    }
    transform_plainly(block, out, stride);
}

/// Writes the 4×4 samples of a block.
pub(super) fn transform_to_four(block: &Block, out: &mut [u8], stride: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { idct_avx2::transform_to_four(block, out, stride) };
    }
    idct_reduced::transform_to_four(block, out, stride);
}

/// Writes the 2×2 samples of a block.
pub(super) fn transform_to_two(block: &Block, out: &mut [u8], stride: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { idct_avx2::transform_to_two(block, out, stride) };
    }
    idct_reduced::transform_to_two(block, out, stride);
}

/// Twice as many samples, weighed along the line.
pub(super) fn stretch_along(near: &[u8], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { avx2::stretch_along(near, out) };
    }
    along(near, 0..near.len(), out);
}

/// Twice as many samples, weighed along the line and with the neighbouring line.
pub(super) fn stretch_both(near: &[u8], far: &[u8], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { avx2::stretch_both(near, far, out) };
    }
    both(near, far, 0..near.len(), out);
}

/// Pixels of a line of luminance and two of colour.
pub(super) fn ycc_to_rgb(lines: [&[u8]; 3], row: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { avx2::ycc_to_rgb(lines, row) };
    }
    pixels(lines, row);
}

/// The samples of a part of a line. At its ends a sample is its own neighbour.
fn along(near: &[u8], part: std::ops::Range<usize>, out: &mut [u8]) {
    let at = |x: usize| u16::from(near[x]);
    for x in part {
        let (before, here, after) = (at(x.saturating_sub(1)), at(x) * 3, at((x + 1).min(near.len() - 1)));
        out[x * 2] = ((here + before + 1) >> 2) as u8;
        out[x * 2 + 1] = ((here + after + 2) >> 2) as u8;
    }
}

/// As [`along`], of a line and its neighbour.
fn both(near: &[u8], far: &[u8], part: std::ops::Range<usize>, out: &mut [u8]) {
    let at = |x: usize| u16::from(near[x]) * 3 + u16::from(far[x]);
    for x in part {
        let (before, here, after) = (at(x.saturating_sub(1)), at(x) * 3, at((x + 1).min(near.len() - 1)));
        out[x * 2] = ((here + before + 8) >> 4) as u8;
        out[x * 2 + 1] = ((here + after + 7) >> 4) as u8;
    }
}

fn pixels([luma, cb, cr]: [&[u8]; 3], row: &mut [u8]) {
    for (((pixel, &luma), &cb), &cr) in row.chunks_exact_mut(3).zip(luma).zip(cb).zip(cr) {
        pixel.copy_from_slice(&ycc_pixel(luma, cb, cr));
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::super::colour;

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8]) -> __m128i {
        bytemuck::pod_read_unaligned(&bytes[..16])
    }

    /// Samples that one step of a loop makes.
    const STEP: usize = 16;

    #[target_feature(enable = "avx2")]
    pub(super) fn stretch_along(near: &[u8], out: &mut [u8]) {
        let n = near.len();
        if n < STEP + 2 {
            return super::along(near, 0..n, out);
        }
        super::along(near, 0..1, out);
        super::along(near, n - 1..n, out);
        let step = |x: usize, out: &mut [u8]| {
            let at = |x: usize| _mm256_cvtepu8_epi16(load(&near[x..]));
            let here = thrice(at(x));
            let even = _mm256_add_epi16(_mm256_add_epi16(here, at(x - 1)), _mm256_set1_epi16(1));
            let odd = _mm256_add_epi16(_mm256_add_epi16(here, at(x + 1)), _mm256_set1_epi16(2));
            woven(_mm256_srli_epi16::<2>(even), _mm256_srli_epi16::<2>(odd), &mut out[x * 2..]);
        };
        for x in (1..n - 1 - STEP).step_by(STEP) {
            step(x, out);
        }
        step(n - 1 - STEP, out);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn stretch_both(near: &[u8], far: &[u8], out: &mut [u8]) {
        let n = near.len();
        if n < STEP + 2 {
            return super::both(near, far, 0..n, out);
        }
        super::both(near, far, 0..1, out);
        super::both(near, far, n - 1..n, out);
        let weights = _mm256_set1_epi16(0x0103);
        let step = |x: usize, out: &mut [u8]| {
            let at = |x: usize| {
                let (near, far) = (load(&near[x..]), load(&far[x..]));
                let pairs = _mm256_set_m128i(_mm_unpackhi_epi8(near, far), _mm_unpacklo_epi8(near, far));
                _mm256_maddubs_epi16(pairs, weights)
            };
            let here = thrice(at(x));
            let even = _mm256_add_epi16(_mm256_add_epi16(here, at(x - 1)), _mm256_set1_epi16(8));
            let odd = _mm256_add_epi16(_mm256_add_epi16(here, at(x + 1)), _mm256_set1_epi16(7));
            woven(_mm256_srli_epi16::<4>(even), _mm256_srli_epi16::<4>(odd), &mut out[x * 2..]);
        };
        for x in (1..n - 1 - STEP).step_by(STEP) {
            step(x, out);
        }
        step(n - 1 - STEP, out);
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn thrice(samples: __m256i) -> __m256i {
        _mm256_add_epi16(samples, _mm256_slli_epi16::<1>(samples))
    }

    /// Writes bytes of two vectors in turns.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn woven(even: __m256i, odd: __m256i, out: &mut [u8]) {
        let both = _mm256_or_si256(even, _mm256_slli_epi16::<8>(odd));
        out[..STEP * 2].copy_from_slice(bytemuck::bytes_of(&both));
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn ycc_to_rgb([luma, cb, cr]: [&[u8]; 3], row: &mut [u8]) {
        let width = row.len() / 3;
        if width < STEP {
            return super::pixels([luma, cb, cr], row);
        }
        for x in (0..width - STEP).step_by(STEP) {
            sixteen([&luma[x..], &cb[x..], &cr[x..]], &mut row[x * 3..]);
        }
        let x = width - STEP;
        sixteen([&luma[x..], &cb[x..], &cr[x..]], &mut row[x * 3..]);
    }

    /// Sixteen pixels. Factors that do not fit into 16 bits are split into a whole number and a rest.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sixteen([luma, cb, cr]: [&[u8]; 3], out: &mut [u8]) {
        const RED: i32 = colour::factors::CR_TO_RED - (1 << 16);
        const GREEN: i32 = (colour::factors::CR_TO_GREEN + (1 << 16)) & 0xffff | colour::factors::CB_TO_GREEN << 16;
        const BLUE: i32 = colour::factors::CB_TO_BLUE - (2 << 16);
        const { assert!(BLUE % 2 == 0, "its half is taken") };
        let luma = _mm256_cvtepu8_epi16(load(luma));
        let centre = _mm256_set1_epi16(128);
        let cb = _mm256_sub_epi16(_mm256_cvtepu8_epi16(load(cb)), centre);
        let cr = _mm256_sub_epi16(_mm256_cvtepu8_epi16(load(cr)), centre);

        let product = _mm256_mulhi_epi16(_mm256_slli_epi16::<1>(cr), _mm256_set1_epi16(RED as i16));
        let rounded = _mm256_srai_epi16::<1>(_mm256_add_epi16(product, _mm256_set1_epi16(1)));
        let red = _mm256_add_epi16(_mm256_add_epi16(luma, cr), rounded);

        let rounded = _mm256_mulhrs_epi16(cb, _mm256_set1_epi16((BLUE / 2) as i16));
        let blue = _mm256_add_epi16(_mm256_add_epi16(luma, _mm256_slli_epi16::<1>(cb)), rounded);

        let weigh = |pairs| {
            let sum = _mm256_madd_epi16(pairs, _mm256_set1_epi32(GREEN));
            _mm256_srai_epi32::<16>(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 15)))
        };
        let rounded = _mm256_packs_epi32(weigh(_mm256_unpacklo_epi16(cr, cb)), weigh(_mm256_unpackhi_epi16(cr, cb)));
        let green = _mm256_add_epi16(_mm256_sub_epi16(luma, cr), rounded);

        // In each half: eight of red, eight of green; eight of blue, and nothing.
        let red_green = _mm256_packus_epi16(red, green);
        let blue = _mm256_packus_epi16(blue, _mm256_setzero_si256());
        const Z: i8 = -1;
        let weave = |[a, b]: [[i8; 16]; 2]| {
            let [a, b] = [a, b].map(|half| _mm256_broadcastsi128_si256(bytemuck::cast(half)));
            _mm256_or_si256(_mm256_shuffle_epi8(red_green, a), _mm256_shuffle_epi8(blue, b))
        };
        let first: [[u8; 16]; 2] = bytemuck::cast(weave([
            [0, 8, Z, 1, 9, Z, 2, 10, Z, 3, 11, Z, 4, 12, Z, 5],
            [Z, Z, 0, Z, Z, 1, Z, Z, 2, Z, Z, 3, Z, Z, 4, Z],
        ]));
        let rest: [[[u8; 8]; 2]; 2] = bytemuck::cast(weave([
            [13, Z, 6, 14, Z, 7, 15, Z, Z, Z, Z, Z, Z, Z, Z, Z],
            [Z, 5, Z, Z, 6, Z, Z, 7, Z, Z, Z, Z, Z, Z, Z, Z],
        ]));
        let out = &mut out[..STEP * 3];
        out[..16].copy_from_slice(&first[0]);
        out[16..24].copy_from_slice(&rest[0][0]);
        out[24..40].copy_from_slice(&first[1]);
        out[40..].copy_from_slice(&rest[1][0]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of all sizes: small ones are frequent in pictures, large ones overflow.
    fn block() -> impl Strategy<Value = Block> {
        let coefficient = prop_oneof![6 => Just(0), 2 => -40..40_i16, 1 => -1500..1500_i16, 1 => any::<i16>()];
        prop::array::uniform::<_, 64>(coefficient)
    }

    /// Two ways to transform a block to `size` samples along each side; nothing beside them is written to.
    fn same_samples(block: &Block, size: usize, ways: [fn(&Block, &mut [u8], usize); 2]) -> Result<(), TestCaseError> {
        let [got, expected] = ways.map(|transform| {
            let mut out = vec![7; size * (size + 3)];
            transform(block, &mut out, size + 3);
            out
        });
        prop_assert_eq!(got, expected);
        Ok(())
    }

    proptest! {
        #[test]
        fn the_transforms_have_the_bytes_of_the_plain_loops(block in block(), n_rows in 1..=8_usize) {
            let mut block = block;
            block[n_rows * 8..].fill(0);
            same_samples(&block, 8, [transform, transform_plainly])?;
            same_samples(&block, 4, [transform_to_four, idct_reduced::transform_to_four])?;
            same_samples(&block, 2, [transform_to_two, idct_reduced::transform_to_two])?;
        }

        #[test]
        fn stretching_has_the_bytes_of_the_plain_loop(lines in prop::collection::vec(any::<(u8, u8)>(), 3..100)) {
            let (near, far): (Vec<u8>, Vec<u8>) = lines.into_iter().unzip();
            let (mut got, mut expected) = (vec![0; near.len() * 2], vec![0; near.len() * 2]);
            stretch_along(&near, &mut got);
            along(&near, 0..near.len(), &mut expected);
            prop_assert_eq!(&got, &expected);
            stretch_both(&near, &far, &mut got);
            both(&near, &far, 0..near.len(), &mut expected);
            prop_assert_eq!(&got, &expected);
        }
    }

    #[test]
    fn every_colour_has_the_bytes_of_the_plain_loop() {
        let (mut got, mut expected) = ([0; 3 * 256], [0; 3 * 256]);
        let all: [u8; 256] = std::array::from_fn(|n| n as u8);
        for luma in [0, 1, 37, 128, 200, 254, 255] {
            for cb in all {
                ycc_to_rgb([&[luma; 256], &[cb; 256], &all], &mut got);
                pixels([&[luma; 256], &[cb; 256], &all], &mut expected);
                assert_eq!(got, expected);
            }
        }
    }

    #[test]
    fn every_width_of_pixels_is_converted_to_its_end() {
        for width in 1..70 {
            let line: Vec<u8> = (0..width as u8).map(|n| n.wrapping_mul(37)).collect();
            let (mut got, mut expected) = (vec![0; width * 3], vec![0; width * 3]);
            ycc_to_rgb([&line, &line, &line], &mut got);
            pixels([&line, &line, &line], &mut expected);
            assert_eq!(got, expected);
        }
    }
}
