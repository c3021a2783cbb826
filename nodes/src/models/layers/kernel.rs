//! The innermost loops of matrix products: a few rows times one panel of a [`Matrix`](super::matrix::Matrix), in registers.
//!
//! Each sum starts with its bias and takes one product after the other in the order of the depth, by fused multiply and add
//! where the processor has it. So a sum's bits depend on its row and column alone: not on how many rows are computed
//! together, and not on how wide the processor's registers are.

use std::ops::Range;

/// Numbers in a line of the cache, and at most in a register.
pub(super) const LINE: usize = 16;

/// How many weights ahead of those in use are fetched into the first cache: most panels are too large for it.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 24 * LINE;

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

/// Runs of memory of at least so many values, which is checked when they are put in.
pub(super) struct Pieces<'a> {
    list: Vec<&'a [f32]>,
    depth: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(depth: usize) -> Self {
        Self { list: Vec::new(), depth }
    }

    pub(super) fn push(&mut self, piece: &'a [f32]) {
        assert!(piece.len() >= self.depth, "a short piece");
        self.list.push(piece);
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }
}

/// Rows times a panel.
pub(super) struct Tile<'a> {
    /// What is multiplied, and which of it: for each tap `n_rows` pieces.
    pub pieces: &'a Pieces<'a>,
    pub range: Range<usize>,
    /// At most [`Isa::n_rows`].
    pub n_rows: usize,
    /// `width` weights for each value of each tap. Aligned to a register.
    pub panel: &'a [f32],
    /// Where sums start.
    pub bias: &'a [f32],
    /// One or two registers.
    pub width: usize,
    /// What sums are held between; a NaN passes.
    pub bounds: [f32; 2],
}

/// Some pixels of a convolution of each channel by itself.
pub(super) struct Channels<'a> {
    /// The pixels of each line that the windows see, zeros around them among them.
    pub lines: &'a [Pieces<'a>],
    /// The first that the first window sees.
    pub first: usize,
    /// Pixels of a line from one window to the next.
    pub step: usize,
    /// Pixels of the output, at most [`Isa::n_rows`].
    pub n_rows: usize,
    /// `[lines, lines, channels]`, and where sums start.
    pub weights: &'a [f32],
    pub bias: &'a [f32],
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
        let Tile { pieces, range, n_rows, panel, bias, width, .. } = tile;
        let (n_rows, width) = (*n_rows, *width);
        assert!(n_rows > 0 && n_rows <= self.n_rows() && range.len().is_multiple_of(n_rows), "a tile of {n_rows} rows");
        assert!(range.start <= range.end && range.end <= pieces.list.len(), "pieces that are not there");
        assert!(width == n_lanes || width == 2 * n_lanes, "a panel of {width}");
        assert!(bias.len() >= width, "a short bias");
        assert!(panel.as_ptr().align_offset(n_lanes * size_of::<f32>()) == 0, "a panel that is not aligned");
        assert!(panel.len() >= range.len() / n_rows * pieces.depth * width, "a short panel");
        let reach = (n_rows - 1) * stride + width;
        assert!(out.len() >= reach && added.is_none_or(|added| added.len() >= reach), "a short output");
        match self {
            Self::Portable => portable(tile, out, added, stride),
            // SAFETY: such a value comes from `best` alone or from a test that asked too, so the processor has the features;
            // every piece was checked when it was put in, and that the bias and the outputs are long enough was asserted above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::multiply(tile, out, added, stride) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512::multiply(tile, out, added, stride) },
        }
    }
}

impl Isa {
    /// Computes the pixels into `out`, one behind the other.
    pub(super) fn convolve(self, job: &Channels<'_>, out: &mut [f32]) {
        let Channels { lines, first, step, n_rows, weights, bias, .. } = *job;
        let n_channels = bias.len();
        assert!(n_rows > 0 && n_rows <= self.n_rows() && !lines.is_empty(), "{n_rows} pixels");
        let reach = first + (n_rows - 1) * step + lines.len();
        for line in lines {
            assert!(line.depth >= n_channels && line.list.len() >= reach, "a short line");
        }
        assert!(weights.len() >= lines.len() * lines.len() * n_channels, "too few weights");
        assert!(out.len() >= n_rows * n_channels, "a short output");
        let n_lanes = self.lanes();
        // What is left over is less than a register.
        let n_whole = n_channels / n_lanes * n_lanes;
        for channel in (0..n_whole).step_by(2 * n_lanes) {
            let is_narrow = n_whole - channel == n_lanes;
            match self {
                Self::Portable => convolve_portable(job, channel, if is_narrow { n_lanes } else { 2 * n_lanes }, out),
                // SAFETY: the processor has the features, as above. One or two registers from `channel` on lie inside the
                // channels; that pieces, weights and output have as many for every pixel and tap was asserted above.
                #[cfg(target_arch = "x86_64")]
                Self::Avx2 => unsafe { avx2::convolve(job, channel, is_narrow, out) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Self::Avx512 => unsafe { avx512::convolve(job, channel, is_narrow, out) },
            }
        }
        if n_whole < n_channels {
            match self {
                Self::Portable => convolve_portable(job, n_whole, n_channels - n_whole, out),
                #[cfg(target_arch = "x86_64")]
                _ => self.run(Rest { job, channel: n_whole, out }),
            }
        }
    }
}

/// The channels behind the last whole register.
#[cfg(target_arch = "x86_64")]
struct Rest<'a> {
    job: &'a Channels<'a>,
    channel: usize,
    out: &'a mut [f32],
}

#[cfg(target_arch = "x86_64")]
impl Work for Rest<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        convolve_loop::<FUSED>(self.job, self.channel, self.job.bias.len() - self.channel, self.out);
    }
}

fn convolve_portable(job: &Channels<'_>, channel: usize, width: usize, out: &mut [f32]) {
    convolve_loop::<FUSED>(job, channel, width, out);
}

/// `width` channels from `channel` on, on any processor.
#[inline(always)]
fn convolve_loop<const FUSED: bool>(job: &Channels<'_>, channel: usize, width: usize, out: &mut [f32]) {
    let (n_channels, n_lines) = (job.bias.len(), job.lines.len());
    let [least, most] = job.bounds;
    for row_idx in 0..job.n_rows {
        let sums = &mut out[row_idx * n_channels + channel..][..width];
        sums.copy_from_slice(&job.bias[channel..][..width]);
        for (tap_y, line) in job.lines.iter().enumerate() {
            for tap_x in 0..n_lines {
                let values = &line.list[job.first + row_idx * job.step + tap_x][channel..][..width];
                let weights = &job.weights[(tap_y * n_lines + tap_x) * n_channels + channel..][..width];
                for ((sum, value), weight) in sums.iter_mut().zip(values).zip(weights) {
                    *sum = add_product::<FUSED>(*sum, *value, *weight);
                }
            }
        }
        sums.iter_mut().for_each(|sum| *sum = sum.clamp(least, most));
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
    let depth = tile.pieces.depth;
    for rows in tile.pieces.list[tile.range.clone()].chunks_exact(ROWS) {
        let rows: [&[f32]; ROWS] = std::array::from_fn(|row_idx| &rows[row_idx][..depth]);
        for (place, weights) in (0..depth).zip(&mut panel) {
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
    ($isa:ident, $features:literal, $lanes:literal, [$load_aligned:ident $load:ident $store:ident $splat:ident $fma:ident $add:ident $max:ident $min:ident],
     $($n_rows:literal $two:ident $one:ident $two_registers:ident $one_register:ident [$($row:literal)*])*) => {
        mod $isa {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, $load_aligned, $load, $store, $splat, $fma, $add, $max, $min};

            use super::{Channels, Tile};

            /// # Safety
            ///
            /// The processor has the features. There are `n_rows` rows of `depth` values for each tap, `width` aligned weights for each
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

            /// # Safety
            ///
            /// The processor has the features. There are `n_rows` pixels of output, and for each of their taps a piece, weights
            /// and a bias that reach as far as two registers (one if it `is_narrow`) from `channel` on.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn convolve(job: &Channels<'_>, channel: usize, is_narrow: bool, out: &mut [f32]) {
                // SAFETY: the caller's promise is theirs.
                unsafe {
                    match (job.n_rows, is_narrow) {
                        $(($n_rows, false) => $two_registers(job, channel, out),)*
                        $(($n_rows, true) => $one_register(job, channel, out),)*
                        _ => unreachable!("the number of pixels was checked"),
                    }
                }
            }

            $(
                kernels!(@channels $two_registers $features $lanes $n_rows 2 [$load $store $splat $fma $max $min] [$($row)*] [0 1]);
                kernels!(@channels $one_register $features $lanes $n_rows 1 [$load $store $splat $fma $max $min] [$($row)*] [0]);
                kernels!(@kernel $two $features $lanes $n_rows 2 [$load_aligned $load $store $splat $fma $add $max $min] [$($row)*] [0 1]);
                kernels!(@kernel $one $features $lanes $n_rows 1 [$load_aligned $load $store $splat $fma $add $max $min] [$($row)*] [0]);
            )*
        }
    };
    (@kernel $name:ident $features:literal $lanes:literal $n_rows:literal $n_registers:literal
     [$load_aligned:ident $load:ident $store:ident $splat:ident $fma:ident $add:ident $max:ident $min:ident] [$($row:literal)*] $registers:tt) => {
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
                for rows in tile.pieces.list.get_unchecked(tile.range.clone()).chunks_exact($n_rows) {
                    let rows = [$(rows[$row].as_ptr()),*];
                    for place in 0..tile.pieces.depth {
                        let mut taken = [$splat(0.0); $n_registers];
                        kernels!(@each $registers register => {
                            let place = weights.wrapping_add(register * $lanes);
                            taken[register] = $load_aligned(place);
                            _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(super::AHEAD).cast());
                        });
                        weights = weights.wrapping_add($n_registers * $lanes);
                        $(
                            let value = $splat(*rows[$row].wrapping_add(place));
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
    (@channels $name:ident $features:literal $lanes:literal $n_rows:literal $n_registers:literal
     [$load:ident $store:ident $splat:ident $fma:ident $max:ident $min:ident] [$($row:literal)*] $registers:tt) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(job: &Channels<'_>, channel: usize, out: &mut [f32]) {
            let (n_channels, n_lines) = (job.bias.len(), job.lines.len());
            // SAFETY: `convolve`'s caller promises that all that is read and written here lies inside the slices.
            unsafe {
                let bias = job.bias.as_ptr().wrapping_add(channel);
                let mut sums = [[$splat(0.0); $n_registers]; $n_rows];
                $(kernels!(@each $registers register => {
                    sums[$row][register] = $load(bias.wrapping_add(register * $lanes));
                });)*
                let mut weights = job.weights.as_ptr().wrapping_add(channel);
                for line in job.lines {
                    for tap in 0..n_lines {
                        let seen = line.list.as_ptr().wrapping_add(job.first + tap);
                        let mut taken = [$splat(0.0); $n_registers];
                        kernels!(@each $registers register => {
                            taken[register] = $load(weights.wrapping_add(register * $lanes));
                        });
                        weights = weights.wrapping_add(n_channels);
                        $(
                            let pixel = (*seen.wrapping_add($row * job.step)).as_ptr().wrapping_add(channel);
                            kernels!(@each $registers register => {
                                let value = $load(pixel.wrapping_add(register * $lanes));
                                sums[$row][register] = $fma(value, taken[register], sums[$row][register]);
                            });
                        )*
                    }
                }
                let [least, most] = job.bounds.map(|bound| $splat(bound));
                let out = out.as_mut_ptr().wrapping_add(channel);
                $(kernels!(@each $registers register => {
                    let held = $min(most, $max(least, sums[$row][register]));
                    $store(out.wrapping_add($row * n_channels + register * $lanes), held);
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
    [_mm256_load_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_fmadd_ps _mm256_add_ps _mm256_max_ps _mm256_min_ps],
    1 two_by_1 one_by_1 two_of_1 one_of_1 [0]
    2 two_by_2 one_by_2 two_of_2 one_of_2 [0 1]
    3 two_by_3 one_by_3 two_of_3 one_of_3 [0 1 2]
    4 two_by_4 one_by_4 two_of_4 one_of_4 [0 1 2 3]
    5 two_by_5 one_by_5 two_of_5 one_of_5 [0 1 2 3 4]
    6 two_by_6 one_by_6 two_of_6 one_of_6 [0 1 2 3 4 5]
}

#[cfg(target_arch = "x86_64")]
kernels! {
    avx512, "avx512f", 16,
    [_mm512_load_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_fmadd_ps _mm512_add_ps _mm512_max_ps _mm512_min_ps],
    1 two_by_1 one_by_1 two_of_1 one_of_1 [0]
    2 two_by_2 one_by_2 two_of_2 one_of_2 [0 1]
    3 two_by_3 one_by_3 two_of_3 one_of_3 [0 1 2]
    4 two_by_4 one_by_4 two_of_4 one_of_4 [0 1 2 3]
    5 two_by_5 one_by_5 two_of_5 one_of_5 [0 1 2 3 4]
    6 two_by_6 one_by_6 two_of_6 one_of_6 [0 1 2 3 4 5]
    7 two_by_7 one_by_7 two_of_7 one_of_7 [0 1 2 3 4 5 6]
    8 two_by_8 one_by_8 two_of_8 one_of_8 [0 1 2 3 4 5 6 7]
    9 two_by_9 one_by_9 two_of_9 one_of_9 [0 1 2 3 4 5 6 7 8]
    10 two_by_10 one_by_10 two_of_10 one_of_10 [0 1 2 3 4 5 6 7 8 9]
    11 two_by_11 one_by_11 two_of_11 one_of_11 [0 1 2 3 4 5 6 7 8 9 10]
    12 two_by_12 one_by_12 two_of_12 one_of_12 [0 1 2 3 4 5 6 7 8 9 10 11]
}

#[cfg(test)]
mod tests;
