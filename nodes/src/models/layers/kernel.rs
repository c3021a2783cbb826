//! The innermost loops of matrix products: a few rows times one panel of a [`Matrix`](super::matrix::Matrix), in registers.
//!
//! Each sum starts with its bias and takes one product after the other in the order of the depth, by fused multiply and add
//! where the processor has it. So a sum's bits depend on its row and column alone: not on how many rows are computed
//! together, and not on how wide the processor's registers are.

/// A set of kernels. Which one there is, is asked once, when weights are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isa {
    /// Any processor.
    Portable,
    /// AVX2 with FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512F.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Loops over many values, which the compiler makes vectors of.
pub(super) trait Work {
    /// Must be inlined, with all that it calls: then it is compiled for each set of registers. `FUSED` says whether
    /// [`f32::mul_add`] is an instruction there.
    fn run<const FUSED: bool>(self);
}

/// `a · b + sum`, by one instruction where there is one: elsewhere that would be a call.
#[inline(always)]
pub(super) fn add_product<const FUSED: bool>(sum: f32, a: f32, b: f32) -> f32 {
    if FUSED { a.mul_add(b, sum) } else { sum + a * b }
}

/// Whether the processor that everything is compiled for has fused arithmetic.
const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

/// Rows times a panel.
pub(super) struct Tile<'a> {
    /// What is multiplied: for each tap the rows, at most [`Isa::n_rows`], each of `depth` values.
    pub taps: &'a [&'a [f32]],
    pub n_rows: usize,
    pub depth: usize,
    /// `width` weights for each value of each tap, and where sums start.
    pub panel: &'a [f32],
    pub bias: &'a [f32],
    /// One or two registers.
    pub width: usize,
    /// What sums are held between; a NaN passes.
    pub bounds: [f32; 2],
}

impl Isa {
    /// The best that this processor has.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            return Self::Avx512;
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Self::Avx2;
        }
        Self::Portable
    }

    /// Numbers in a register. Panels are two wide, the last one may be one wide.
    pub(super) fn lanes(self) -> usize {
        match self {
            Self::Portable => 4,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => 8,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => 16,
        }
    }

    /// Rows of a tile for which there are registers.
    pub(super) fn n_rows(self) -> usize {
        match self {
            Self::Portable => 4,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => 6,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => 12,
        }
    }

    /// Does some work with the widest registers.
    pub(super) fn run(self, work: impl Work) {
        match self {
            Self::Portable => work.run::<FUSED>(),
            // SAFETY: such a value comes from `best` alone or from a test that asked too, so the processor has the features.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { run_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { run_avx512(work) },
        }
    }

    /// Computes a tile into `out`, whose rows lie `stride` apart; what stands in `added`, laid out the same, is added.
    pub(super) fn multiply(self, tile: &Tile<'_>, out: &mut [f32], added: Option<&[f32]>, stride: usize) {
        let n_lanes = self.lanes();
        let Tile { taps, n_rows, depth, panel, bias, width, .. } = *tile;
        assert!(n_rows > 0 && n_rows <= self.n_rows() && taps.len().is_multiple_of(n_rows), "a tile of {n_rows} rows");
        assert!(width == n_lanes || width == 2 * n_lanes, "a panel of {width}");
        assert!(taps.iter().all(|row| row.len() >= depth) && bias.len() >= width, "short rows");
        assert!(panel.len() >= taps.len() / n_rows * depth * width, "a short panel");
        let reach = (n_rows - 1) * stride + width;
        assert!(out.len() >= reach && added.is_none_or(|added| added.len() >= reach), "a short output");
        match self {
            Self::Portable => portable(tile, out, added, stride),
            // SAFETY: such a value comes from `best` alone or from a test that asked too, so the processor has the features;
            // that every row, the panel, the bias and the outputs are long enough was asserted above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::multiply(tile, out, added, stride) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512::multiply(tile, out, added, stride) },
        }
    }
}

fn portable(tile: &Tile<'_>, out: &mut [f32], added: Option<&[f32]>, stride: usize) {
    match (tile.n_rows, tile.width) {
        (1, 4) => portable_of::<1, 4>(tile, out, added, stride),
        (2, 4) => portable_of::<2, 4>(tile, out, added, stride),
        (3, 4) => portable_of::<3, 4>(tile, out, added, stride),
        (4, 4) => portable_of::<4, 4>(tile, out, added, stride),
        (1, 8) => portable_of::<1, 8>(tile, out, added, stride),
        (2, 8) => portable_of::<2, 8>(tile, out, added, stride),
        (3, 8) => portable_of::<3, 8>(tile, out, added, stride),
        (4, 8) => portable_of::<4, 8>(tile, out, added, stride),
        _ => unreachable!("the size of the tile was checked"),
    }
}

fn portable_of<const ROWS: usize, const WIDTH: usize>(
    tile: &Tile<'_>,
    out: &mut [f32],
    added: Option<&[f32]>,
    stride: usize,
) {
    let bias: [f32; WIDTH] = std::array::from_fn(|lane| tile.bias[lane]);
    let mut sums = [bias; ROWS];
    let mut panel = tile.panel.chunks_exact(WIDTH);
    for rows in tile.taps.chunks_exact(ROWS) {
        let rows: [&[f32]; ROWS] = std::array::from_fn(|row_idx| &rows[row_idx][..tile.depth]);
        for (place, weights) in (0..tile.depth).zip(&mut panel) {
            for (sums, row) in sums.iter_mut().zip(rows) {
                let value = row[place];
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = add_product::<FUSED>(*sum, value, *weight);
                }
            }
        }
    }
    let [least, most] = tile.bounds;
    for (row_idx, mut sums) in sums.into_iter().enumerate() {
        if let Some(added) = added {
            let added = &added[row_idx * stride..][..WIDTH];
            sums.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
        }
        for (out, sum) in out[row_idx * stride..].iter_mut().zip(sums) {
            *out = sum.clamp(least, most);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2(work: impl Work) {
    work.run::<true>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn run_avx512(work: impl Work) {
    work.run::<true>();
}

/// The kernels for one width of registers. Rows are written out, so that every sum has a register of its own.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($isa:ident, $features:literal, $lanes:literal, [$load:ident $store:ident $splat:ident $fma:ident $add:ident $max:ident $min:ident],
     $($n_rows:literal $two:ident $one:ident [$($row:literal)*])*) => {
        mod $isa {
            use std::arch::x86_64::{$load, $store, $splat, $fma, $add, $max, $min};

            use super::Tile;

            /// # Safety
            ///
            /// The processor has the features. There are `n_rows` rows of `depth` values for each tap, `width` weights for each
            /// of them and as many biases, and `out` and `added` reach as far as the last row's `width` values.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn multiply(tile: &Tile<'_>, out: &mut [f32], added: Option<&[f32]>, stride: usize) {
                // SAFETY: the caller's promise is theirs; `width` is one or two registers.
                unsafe {
                    match (tile.n_rows, tile.width == $lanes) {
                        $(($n_rows, false) => $two(tile, out, added, stride),)*
                        $(($n_rows, true) => $one(tile, out, added, stride),)*
                        _ => unreachable!("the number of rows was checked"),
                    }
                }
            }

            $(
                kernels!(@kernel $two $features $lanes $n_rows 2 [$load $store $splat $fma $add $max $min] [$($row)*] [0 1]);
                kernels!(@kernel $one $features $lanes $n_rows 1 [$load $store $splat $fma $add $max $min] [$($row)*] [0]);
            )*
        }
    };
    (@kernel $name:ident $features:literal $lanes:literal $n_rows:literal $n_registers:literal
     [$load:ident $store:ident $splat:ident $fma:ident $add:ident $max:ident $min:ident] [$($row:literal)*] $registers:tt) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(tile: &Tile<'_>, out: &mut [f32], added: Option<&[f32]>, stride: usize) {
            // SAFETY: `multiply`'s caller promises that all that is read and written here lies inside the slices.
            unsafe {
                let bias = tile.bias.as_ptr();
                let mut sums = [[$splat(0.0); $n_registers]; $n_rows];
                $(kernels!(@each $registers register => {
                    sums[$row][register] = $load(bias.add(register * $lanes));
                });)*
                let mut weights = tile.panel.as_ptr();
                for rows in tile.taps.chunks_exact($n_rows) {
                    let rows = [$(rows[$row].as_ptr()),*];
                    for place in 0..tile.depth {
                        let mut taken = [$splat(0.0); $n_registers];
                        kernels!(@each $registers register => { taken[register] = $load(weights.add(register * $lanes)); });
                        weights = weights.add($n_registers * $lanes);
                        $(
                            let value = $splat(*rows[$row].add(place));
                            kernels!(@each $registers register => {
                                sums[$row][register] = $fma(value, taken[register], sums[$row][register]);
                            });
                        )*
                    }
                }
                let [least, most] = tile.bounds.map(|bound| $splat(bound));
                if let Some(added) = added {
                    $(kernels!(@each $registers register => {
                        let added = added.as_ptr().add($row * stride + register * $lanes);
                        sums[$row][register] = $add(sums[$row][register], $load(added));
                    });)*
                }
                // With the sum behind the bound a NaN is what comes out.
                $(kernels!(@each $registers register => {
                    let held = $min(most, $max(least, sums[$row][register]));
                    $store(out.as_mut_ptr().add($row * stride + register * $lanes), held);
                });)*
            }
        }
    };
    (@each [0] $register:ident => $body:block) => {
        { #[allow(non_upper_case_globals)] const $register: usize = 0; $body }
    };
    (@each [0 1] $register:ident => $body:block) => {
        { #[allow(non_upper_case_globals)] const $register: usize = 0; $body }
        { #[allow(non_upper_case_globals)] const $register: usize = 1; $body }
    };
}

#[cfg(target_arch = "x86_64")]
kernels! {
    avx2, "avx2,fma", 8,
    [_mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_fmadd_ps _mm256_add_ps _mm256_max_ps _mm256_min_ps],
    1 two_by_1 one_by_1 [0]
    2 two_by_2 one_by_2 [0 1]
    3 two_by_3 one_by_3 [0 1 2]
    4 two_by_4 one_by_4 [0 1 2 3]
    5 two_by_5 one_by_5 [0 1 2 3 4]
    6 two_by_6 one_by_6 [0 1 2 3 4 5]
}

#[cfg(target_arch = "x86_64")]
kernels! {
    avx512, "avx512f", 16,
    [_mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_fmadd_ps _mm512_add_ps _mm512_max_ps _mm512_min_ps],
    1 two_by_1 one_by_1 [0]
    2 two_by_2 one_by_2 [0 1]
    3 two_by_3 one_by_3 [0 1 2]
    4 two_by_4 one_by_4 [0 1 2 3]
    5 two_by_5 one_by_5 [0 1 2 3 4]
    6 two_by_6 one_by_6 [0 1 2 3 4 5]
    7 two_by_7 one_by_7 [0 1 2 3 4 5 6]
    8 two_by_8 one_by_8 [0 1 2 3 4 5 6 7]
    9 two_by_9 one_by_9 [0 1 2 3 4 5 6 7 8]
    10 two_by_10 one_by_10 [0 1 2 3 4 5 6 7 8 9]
    11 two_by_11 one_by_11 [0 1 2 3 4 5 6 7 8 9 10]
    12 two_by_12 one_by_12 [0 1 2 3 4 5 6 7 8 9 10 11]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every set that this processor has.
    fn known() -> Vec<Isa> {
        let mut known = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                known.push(Isa::Avx2);
            }
            if is_x86_feature_detected!("avx512f") {
                known.push(Isa::Avx512);
            }
        }
        known
    }

    fn noise(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..n).map(|_| next()).collect()
    }

    fn check(isa: Isa, n_rows: usize, n_registers: usize, [n_taps, depth]: [usize; 2]) {
        let width = n_registers * isa.lanes();
        let stride = width + 3;
        let [values, panel, bias] =
            [n_taps * n_rows * depth, n_taps * depth * width, width].map(|n| noise(n, n as u32 + 1));
        let taps: Vec<&[f32]> = values.chunks_exact(depth).collect();
        let added = noise(n_rows * stride, 7);
        let mut out = vec![f32::NAN; n_rows * stride];
        let bounds = [-1.5, 2.0];
        let tile = Tile { taps: &taps, n_rows, depth, panel: &panel, bias: &bias, width, bounds };
        isa.multiply(&tile, &mut out, Some(&added), stride);
        for (place, found) in out.iter().enumerate() {
            let (row_idx, column) = (place / stride, place % stride);
            if column >= width {
                assert!(found.is_nan(), "{isa:?} wrote behind its columns");
                continue;
            }
            let mut sum = bias[column];
            for (step, weights) in panel.chunks_exact(width).enumerate() {
                let value = taps[step / depth * n_rows + row_idx][step % depth];
                sum = if isa == Isa::Portable {
                    add_product::<FUSED>(sum, value, weights[column])
                } else {
                    value.mul_add(weights[column], sum)
                };
            }
            let wanted = (sum + added[place]).clamp(-1.5, 2.0);
            assert_eq!(found.to_bits(), wanted.to_bits(), "{isa:?} {n_rows} {width} at {row_idx} {column}");
        }
    }

    #[test]
    fn every_kernel_takes_one_product_after_the_other() {
        for isa in known() {
            for n_rows in 1..=isa.n_rows() {
                for n_registers in [1, 2] {
                    check(isa, n_rows, n_registers, [1, 37]);
                    check(isa, n_rows, n_registers, [9, 5]);
                }
            }
        }
    }

    #[test]
    fn a_nan_passes_the_bounds() {
        for isa in known() {
            let width = isa.lanes();
            let (panel, bias, mut out) = (vec![1.0; width], vec![0.0; width], vec![0.0; width]);
            let bounds = [0.0, 6.0];
            let tile = Tile { taps: &[&[f32::NAN]], n_rows: 1, depth: 1, panel: &panel, bias: &bias, width, bounds };
            isa.multiply(&tile, &mut out, None, width);
            assert!(out.iter().all(|value| value.is_nan()), "{isa:?}");
        }
    }

    #[test]
    #[should_panic(expected = "a short output")]
    fn a_short_output_is_refused() {
        let isa = Isa::best();
        let width = isa.lanes();
        let tile = Tile {
            taps: &[&[1.0], &[1.0]],
            n_rows: 2,
            depth: 1,
            panel: &vec![1.0; width],
            bias: &vec![0.0; width],
            width,
            bounds: [0.0, 1.0],
        };
        isa.multiply(&tile, &mut vec![0.0; 2 * width - 1], None, width);
    }
}
