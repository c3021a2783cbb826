//! The transforms of [`idct`](super::idct) and [`idct_reduced`](super::idct_reduced) with AVX2: products of 16-bit numbers, all
//! columns at once.

use std::arch::x86_64::*;

use super::idct::{Block, FACTOR_BITS, FIRST_SHIFT, KEPT_BITS, SECOND_SHIFT, factors};
use super::idct_reduced::{EVEN, FOUR_SHIFTS, INNER, OUTER, PAIR, TWO_SHIFTS};

/// Two rows, number by number beside each other.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs(first: __m128i, second: __m128i) -> __m256i {
    _mm256_set_m128i(_mm_unpackhi_epi16(first, second), _mm_unpacklo_epi16(first, second))
}

/// The sum of each pair, by a factor each.
#[inline]
#[target_feature(enable = "avx2")]
fn weighed(pairs: __m256i, [a, b]: [i32; 2]) -> __m256i {
    _mm256_madd_epi16(pairs, _mm256_set1_epi32(a & 0xffff | b << 16))
}

#[target_feature(enable = "avx2")]
pub(super) fn transform(block: &Block, out: &mut [u8], stride: usize) {
    let rows: [__m128i; 8] = bytemuck::cast(*block);
    let below = rows[2..].iter().fold(rows[1], |any, &row| _mm_or_si128(any, row));
    let columns = if _mm_testz_si128(below, below) != 0 {
        // All rows become the first.
        let row = _mm_slli_epi16::<{ KEPT_BITS as i32 }>(rows[0]);
        transposed([_mm256_permute4x64_epi64::<0b01_01_00_00>(_mm256_castsi128_si256(row)); 4])
    } else {
        pass::<{ FIRST_SHIFT as i32 }>(rows)
    };
    let [a, b, c, d] = columns;
    let low = [a, b, c, d].map(|pair| _mm256_castsi256_si128(pair));
    let high = [a, b, c, d].map(|pair| _mm256_extracti128_si256::<1>(pair));
    let [a, b, c, d] =
        pass::<{ SECOND_SHIFT as i32 }>([low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]]);
    let centre = _mm256_set1_epi8(-128);
    // Lines 0, 1, 4, 5 and 2, 3, 6, 7.
    let upper: [[u8; 8]; 4] = bytemuck::cast(_mm256_xor_si256(_mm256_packs_epi16(a, b), centre));
    let lower: [[u8; 8]; 4] = bytemuck::cast(_mm256_xor_si256(_mm256_packs_epi16(c, d), centre));
    let out = &mut out[..7 * stride + 8];
    let lines = [upper[0], upper[1], lower[0], lower[1], upper[2], upper[3], lower[2], lower[3]];
    for (n, line) in lines.iter().enumerate() {
        out[n * stride..][..8].copy_from_slice(line);
    }
}

/// One dimension of the transform, for each of eight columns. What comes out is transposed, as pairs of rows 0 and 4, 1 and 5,
/// 2 and 6, 3 and 7.
#[inline]
#[target_feature(enable = "avx2")]
fn pass<const SHIFT: i32>(rows: [__m128i; 8]) -> [__m256i; 4] {
    let long = |short| _mm256_slli_epi32::<{ FACTOR_BITS as i32 }>(_mm256_cvtepi16_epi32(short));

    let even = pairs(rows[2], rows[6]);
    let (even_a, even_b) = (weighed(even, factors::EVEN_A), weighed(even, factors::EVEN_B));
    let half = _mm256_set1_epi32(1 << (SHIFT - 1));
    let sum = _mm256_add_epi32(long(_mm_add_epi16(rows[0], rows[4])), half);
    let difference = _mm256_add_epi32(long(_mm_sub_epi16(rows[0], rows[4])), half);
    let evens = [
        _mm256_add_epi32(sum, even_a),
        _mm256_add_epi32(difference, even_b),
        _mm256_sub_epi32(difference, even_b),
        _mm256_sub_epi32(sum, even_a),
    ];

    let odd = pairs(_mm_add_epi16(rows[7], rows[3]), _mm_add_epi16(rows[5], rows[1]));
    let (odd_a, odd_b) = (weighed(odd, factors::ODD_A), weighed(odd, factors::ODD_B));
    let (outer, inner) = (pairs(rows[7], rows[1]), pairs(rows[5], rows[3]));
    let odds = [
        _mm256_add_epi32(weighed(outer, factors::ODD_1), odd_b),
        _mm256_add_epi32(weighed(inner, factors::ODD_3), odd_a),
        _mm256_add_epi32(weighed(inner, factors::ODD_5), odd_b),
        _mm256_add_epi32(weighed(outer, factors::ODD_7), odd_a),
    ];
    let row = |n: usize| _mm256_srai_epi32::<SHIFT>(_mm256_add_epi32(evens[n], odds[n]));
    let mirrored = |n: usize| _mm256_srai_epi32::<SHIFT>(_mm256_sub_epi32(evens[n], odds[n]));
    transposed([
        _mm256_packs_epi32(row(0), mirrored(3)),
        _mm256_packs_epi32(row(1), mirrored(2)),
        _mm256_packs_epi32(row(2), mirrored(1)),
        _mm256_packs_epi32(row(3), mirrored(0)),
    ])
}

/// From four vectors of rows n and n + 4, which hold columns 0 to 3 of both and then 4 to 7 of both.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (upper_ab, lower_ab) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
    let (upper_cd, lower_cd) = (_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d));
    let (upper_01, upper_23) = (_mm256_unpacklo_epi32(upper_ab, upper_cd), _mm256_unpackhi_epi32(upper_ab, upper_cd));
    let (lower_01, lower_23) = (_mm256_unpacklo_epi32(lower_ab, lower_cd), _mm256_unpackhi_epi32(lower_ab, lower_cd));
    [
        _mm256_unpacklo_epi64(upper_01, lower_01),
        _mm256_unpackhi_epi64(upper_01, lower_01),
        _mm256_unpacklo_epi64(upper_23, lower_23),
        _mm256_unpackhi_epi64(upper_23, lower_23),
    ]
}

/// By sample of four: what each coefficient adds to it, less the common shift.
const FOUR: [[i16; 16]; 4] = {
    const MEAN: i32 = 1 << (FACTOR_BITS + 1);
    [
        twice([MEAN, OUTER[3], EVEN[0], OUTER[2], 0, OUTER[1], EVEN[1], OUTER[0]]),
        twice([MEAN, INNER[3], -EVEN[0], INNER[2], 0, INNER[1], -EVEN[1], INNER[0]]),
        twice([MEAN, -INNER[3], -EVEN[0], -INNER[2], 0, -INNER[1], -EVEN[1], -INNER[0]]),
        twice([MEAN, -OUTER[3], EVEN[0], -OUTER[2], 0, -OUTER[1], EVEN[1], -OUTER[0]]),
    ]
};

/// What each coefficient adds to the first sample of two and takes from the second, but for the mean.
const TWO: [i32; 8] = [0, PAIR[3], 0, PAIR[2], 0, PAIR[1], 0, PAIR[0]];

/// The first four twice, then the last four twice, as two lines lie in a vector.
const fn twice([a, b, c, d, e, f, g, h]: [i32; 8]) -> [i16; 16] {
    let all = [a, b, c, d, a, b, c, d, e, f, g, h, e, f, g, h];
    let mut short = [0; 16];
    let mut n = 0;
    while n < 16 {
        short[n] = all[n] as i16;
        n += 1;
    }
    short
}

/// What the odd rows add.
#[inline]
#[target_feature(enable = "avx2")]
fn odd(rows: &[__m128i; 8], factors: [i32; 4]) -> __m256i {
    let outer = weighed(pairs(rows[7], rows[5]), [factors[0], factors[1]]);
    _mm256_add_epi32(outer, weighed(pairs(rows[3], rows[1]), [factors[2], factors[3]]))
}

/// Both halves, added.
#[inline]
#[target_feature(enable = "avx2")]
fn folded(sums: __m256i) -> __m128i {
    _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums))
}

#[target_feature(enable = "avx2")]
pub(super) fn transform_to_four(block: &Block, out: &mut [u8], stride: usize) {
    const FIRST: i32 = FOUR_SHIFTS[0] as i32;
    const SECOND: i32 = FOUR_SHIFTS[1] as i32;
    let rows: [__m128i; 8] = bytemuck::cast(*block);
    let mean = _mm256_slli_epi32::<{ FACTOR_BITS as i32 + 1 }>(_mm256_cvtepi16_epi32(rows[0]));
    let mean = _mm256_add_epi32(mean, _mm256_set1_epi32(1 << (FIRST - 1)));
    let even = weighed(pairs(rows[2], rows[6]), EVEN);
    let (high, low) = (_mm256_add_epi32(mean, even), _mm256_sub_epi32(mean, even));
    let (inner, outer) = (odd(&rows, INNER), odd(&rows, OUTER));
    let [first, second, third, fourth] = [
        _mm256_add_epi32(high, outer),
        _mm256_add_epi32(low, inner),
        _mm256_sub_epi32(low, inner),
        _mm256_sub_epi32(high, outer),
    ]
    .map(|line| _mm256_srai_epi32::<FIRST>(line));

    // Of two lines: the first and the second sample of each, then the third and the fourth.
    let samples = |lines: __m256i| {
        let sums = FOUR.map(|factors| folded(_mm256_madd_epi16(lines, bytemuck::cast(factors))));
        let half = _mm_set1_epi32(1 << (SECOND - 1));
        let rounded = |sums| _mm_srai_epi32::<SECOND>(_mm_add_epi32(sums, half));
        _mm_packs_epi32(rounded(_mm_hadd_epi32(sums[0], sums[1])), rounded(_mm_hadd_epi32(sums[2], sums[3])))
    };
    let all = _mm_packs_epi16(samples(_mm256_packs_epi32(first, second)), samples(_mm256_packs_epi32(third, fourth)));
    let in_lines = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    let lines: [[u8; 4]; 4] = bytemuck::cast(_mm_xor_si128(_mm_shuffle_epi8(all, in_lines), _mm_set1_epi8(-128)));
    for (out, line) in out[..3 * stride + 4].chunks_mut(stride).zip(&lines) {
        out[..4].copy_from_slice(line);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn transform_to_two(block: &Block, out: &mut [u8], stride: usize) {
    const FIRST: i32 = TWO_SHIFTS[0] as i32;
    const SECOND: i32 = TWO_SHIFTS[1] as i32;
    const MEAN: i32 = FACTOR_BITS as i32 + 2;
    let rows: [__m128i; 8] = bytemuck::cast(*block);
    let mean = _mm256_slli_epi32::<MEAN>(_mm256_cvtepi16_epi32(rows[0]));
    let mean = _mm256_add_epi32(mean, _mm256_set1_epi32(1 << (FIRST - 1)));
    let odds = odd(&rows, PAIR);
    // As in the plain loop, the mean is not saturated.
    let (least, most) = (i32::from(i16::MIN), i32::from(i16::MAX));
    let least = _mm256_setr_epi32(i32::MIN, least, least, least, least, least, least, least);
    let most = _mm256_setr_epi32(i32::MAX, most, most, most, most, most, most, most);
    let saturated = |line| _mm256_min_epi32(_mm256_max_epi32(_mm256_srai_epi32::<FIRST>(line), least), most);
    let lines = [saturated(_mm256_add_epi32(mean, odds)), saturated(_mm256_sub_epi32(mean, odds))];

    let [first, second] = lines.map(|line| _mm256_mullo_epi32(line, bytemuck::cast(TWO)));
    let odds = folded(_mm256_hadd_epi32(first, second));
    let odds = _mm_hadd_epi32(odds, odds);
    let [first, second] = lines.map(|line| _mm256_castsi256_si128(line));
    let mean = _mm_slli_epi32::<MEAN>(_mm_unpacklo_epi32(first, second));
    let mean = _mm_add_epi32(mean, _mm_set1_epi32(1 << (SECOND - 1)));
    let left = _mm_srai_epi32::<SECOND>(_mm_add_epi32(mean, odds));
    let right = _mm_srai_epi32::<SECOND>(_mm_sub_epi32(mean, odds));
    let all = _mm_packs_epi32(_mm_unpacklo_epi32(left, right), _mm_setzero_si128());
    let all = _mm_xor_si128(_mm_packs_epi16(all, all), _mm_set1_epi8(-128));
    let lines: [[u8; 2]; 8] = bytemuck::cast(all);
    for (out, line) in out[..stride + 2].chunks_mut(stride).zip(&lines) {
        out[..2].copy_from_slice(line);
    }
}
