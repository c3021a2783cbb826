//! Every kernel that this processor has, against sums that are taken one by one.

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

/// The first `n` values that begin at a line of the cache.
fn aligned(values: &[f32], n: usize) -> &[f32] {
    &values[values.as_ptr().align_offset(LINE * size_of::<f32>())..][..n]
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
    let [values, unaligned, bias] =
        [n_taps * n_rows * depth, n_taps * depth * width + LINE, width].map(|n| noise(n, n as u32 + 1));
    let panel = aligned(&unaligned, n_taps * depth * width);
    let mut pieces = Pieces::new(depth);
    values.chunks_exact(depth).for_each(|piece| pieces.push(piece));
    let added = noise(n_rows * stride, 7);
    let mut out = vec![f32::NAN; n_rows * stride];
    let bounds = [-1.5, 2.0];
    let tile = Tile { pieces: &pieces, range: 0..n_taps * n_rows, n_rows, panel, bias: &bias, width, bounds };
    isa.multiply(&tile, &mut out, Some(&added), stride);
    for (place, found) in out.iter().enumerate() {
        let (row_idx, column) = (place / stride, place % stride);
        if column >= width {
            assert!(found.is_nan(), "{isa:?} wrote behind its columns");
            continue;
        }
        let mut sum = bias[column];
        for (step, weights) in panel.chunks_exact(width).enumerate() {
            let value = pieces.list[step / depth * n_rows + row_idx][step % depth];
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
#[should_panic(expected = "a short piece")]
fn a_short_piece_is_refused() {
    Pieces::new(2).push(&[1.0]);
}

#[test]
fn channels_by_themselves_are_the_same_with_every_kernel() {
    for (n_channels, n_lines, step) in [(83, 3, 2), (48, 5, 1), (3, 3, 1)] {
        for isa in known() {
            for n_rows in 1..=isa.n_rows() {
                check_channels(isa, n_channels, n_lines, step, n_rows);
            }
        }
    }
}

fn check_channels(isa: Isa, n_channels: usize, n_lines: usize, step: usize, n_rows: usize) {
    let n_pixels = 1 + (n_rows - 1) * step + n_lines;
    let values = noise(n_lines * n_pixels * n_channels, 3);
    let lines: Vec<Pieces<'_>> = values
        .chunks_exact(n_pixels * n_channels)
        .map(|line| {
            let mut pieces = Pieces::new(n_channels);
            line.chunks_exact(n_channels).for_each(|pixel| pieces.push(pixel));
            pieces
        })
        .collect();
    let (weights, bias) = (noise(n_lines * n_lines * n_channels, 4), noise(n_channels, 5));
    let (weights, bias, bounds) = (&*weights, &*bias, [-0.5, 1.0]);
    let mut out = vec![f32::NAN; n_rows * n_channels + 1];
    isa.convolve(&Channels { lines: &lines, first: 1, step, n_rows, weights, bias, bounds }, &mut out);
    for (place, found) in out[..n_rows * n_channels].iter().enumerate() {
        let (row_idx, channel) = (place / n_channels, place % n_channels);
        let mut sum = bias[channel];
        for tap_idx in 0..n_lines * n_lines {
            let (y, x) = (tap_idx / n_lines, 1 + row_idx * step + tap_idx % n_lines);
            let (value, weight) = (lines[y].list[x][channel], weights[tap_idx * n_channels + channel]);
            sum = if isa == Isa::Portable {
                add_product::<FUSED>(sum, value, weight)
            } else {
                value.mul_add(weight, sum)
            };
        }
        assert_eq!(found.to_bits(), sum.clamp(-0.5, 1.0).to_bits(), "{isa:?} {n_rows} at {row_idx} {channel}");
    }
    assert!(out[n_rows * n_channels].is_nan(), "{isa:?} wrote behind its pixels");
}

#[test]
fn a_nan_passes_the_bounds() {
    for isa in known() {
        let width = isa.lanes();
        let (ones, bias, mut out) = ([1.0; 2 * LINE], vec![0.0; width], vec![0.0; width]);
        let bounds = [0.0, 6.0];
        let panel = aligned(&ones, width);
        let mut pieces = Pieces::new(1);
        pieces.push(&[f32::NAN]);
        let tile = Tile { pieces: &pieces, range: 0..1, n_rows: 1, panel, bias: &bias, width, bounds };
        isa.multiply(&tile, &mut out, None, width);
        assert!(out.iter().all(|value| value.is_nan()), "{isa:?}");
    }
}

#[test]
#[should_panic(expected = "a short output")]
fn a_short_output_is_refused() {
    let isa = Isa::best();
    let width = isa.lanes();
    let mut pieces = Pieces::new(1);
    [1.0, 2.0].iter().for_each(|value| pieces.push(std::slice::from_ref(value)));
    let tile = Tile {
        pieces: &pieces,
        range: 0..2,
        n_rows: 2,
        panel: aligned(&[1.0; 2 * LINE], width),
        bias: &vec![0.0; width],
        width,
        bounds: [0.0, 1.0],
    };
    isa.multiply(&tile, &mut vec![0.0; 2 * width - 1], None, width);
}
