//! Weights as the CPU multiplies by them: packed once into panels, and what runs rows over them.

use std::{ops::Range, sync::Arc};

use rayon::prelude::*;

use super::{
    Activation,
    kernel::{Isa, LINE, Pieces, Tile},
    window::Unfolded,
};

/// Rows that are taken through all panels while they are in the cache.
const BLOCK: usize = 200;

/// A matrix `[summed, columns]` in panels of a few columns, each row by row. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    values: Arc<Vec<f32>>,
    /// Where the first line of the cache begins in `values`.
    start: usize,
    n_summed: usize,
    n_columns: usize,
    isa: Isa,
}

/// What becomes of the sums.
#[derive(Clone, Copy)]
pub(super) struct Finish<'a> {
    /// One for each column.
    pub bias: &'a [f32],
    /// Laid out as the output, added before the activation.
    pub added: Option<&'a [f32]>,
    pub activation: Activation,
}

/// What is multiplied: rows that lie in one piece, or in one for each tap of a window.
pub(super) trait Rows: Sync {
    /// Pieces of a row, and values of a piece.
    fn pieces(&self) -> [usize; 2];

    /// Puts one piece of each of these rows in.
    fn take<'a>(&'a self, rows: Range<usize>, piece_idx: usize, pieces: &mut Pieces<'a>);
}

/// Rows of so many values, one behind the other; each begins `stride` behind the one before.
pub(super) struct Plain<'a> {
    pub values: &'a [f32],
    pub n_summed: usize,
    pub stride: usize,
}

impl Rows for Plain<'_> {
    fn pieces(&self) -> [usize; 2] {
        [1, self.n_summed]
    }

    fn take<'a>(&'a self, rows: Range<usize>, _piece_idx: usize, pieces: &mut Pieces<'a>) {
        rows.for_each(|row_idx| pieces.push(&self.values[row_idx * self.stride..][..self.n_summed]));
    }
}

impl Matrix {
    /// Packs the value that `weight` gives for each summed place and column.
    pub(super) fn new([n_summed, n_columns]: [usize; 2], weight: impl Fn(usize, usize) -> f32) -> Self {
        let isa = Isa::best();
        let n_wide = n_columns.next_multiple_of(isa.lanes());
        let mut values = vec![0.0_f32; n_summed * n_wide + LINE];
        let start = values.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let mut place = start;
        for (first, width) in panels(isa, n_columns) {
            for summed_idx in 0..n_summed {
                for column in first..(first + width).min(n_columns) {
                    values[place + column - first] = weight(summed_idx, column);
                }
                place += width;
            }
        }
        Self { values: Arc::new(values), start, n_summed, n_columns, isa }
    }

    pub(super) fn n_columns(&self) -> usize {
        self.n_columns
    }

    pub(super) fn n_summed(&self) -> usize {
        self.n_summed
    }

    /// All rows times this matrix, in blocks side by side on the caller's pool. `out` is `[rows, columns]`.
    pub(super) fn multiply(&self, rows: &impl Rows, finish: Finish<'_>, out: &mut [f32]) {
        let n_columns = self.n_columns;
        let n_rows = out.len() / n_columns.max(1);
        if n_rows == 0 {
            return;
        }
        // Blocks of one size, and for every thread one if there are rows enough.
        let least = n_rows.div_ceil(rayon::current_num_threads()).clamp(2 * self.isa.n_rows(), BLOCK);
        let n_block = n_rows.div_ceil(n_rows.div_ceil(least));
        out.par_chunks_mut(n_block * n_columns).enumerate().for_each(|(block_idx, out)| {
            let first = block_idx * n_block;
            let added = finish.added.map(|added| &added[first * n_columns..][..out.len()]);
            let n_rows = out.len() / n_columns;
            self.multiply_block(rows, [first, n_rows], Finish { added, ..finish }, out, n_columns);
        });
    }

    /// The same for windows that are copied first, block by block.
    pub(super) fn multiply_unfolded(&self, windows: &Unfolded<'_>, finish: Finish<'_>, out: &mut [f32]) {
        let (n_columns, n_summed) = (self.n_columns, self.n_summed);
        out.par_chunks_mut(BLOCK * n_columns.max(1)).enumerate().for_each_init(Vec::new, |copy, (block_idx, out)| {
            let n_rows = out.len() / n_columns;
            windows.copy(block_idx * BLOCK, n_rows, copy);
            let rows = Plain { values: copy, n_summed, stride: n_summed };
            self.multiply_block(&rows, [0, n_rows], finish, out, n_columns);
        });
    }

    /// `n_rows` rows from `first` on, on this thread. The rows of `out`, and of what is added, lie `stride` apart.
    pub(super) fn multiply_block(
        &self,
        rows: &impl Rows,
        [first, n_rows]: [usize; 2],
        finish: Finish<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let [n_pieces, depth] = rows.pieces();
        assert_eq!(n_pieces * depth, self.n_summed, "rows of another length");
        let n_tiles = n_rows.div_ceil(self.isa.n_rows()).max(1);
        let start_of = |tile_idx: usize| tile_idx * n_rows / n_tiles;
        let mut pieces = Pieces::new(depth);
        for tile_idx in 0..n_tiles {
            for piece_idx in 0..n_pieces {
                rows.take(first + start_of(tile_idx)..first + start_of(tile_idx + 1), piece_idx, &mut pieces);
            }
        }
        let mut panel_start = self.start;
        let bounds = finish.activation.bounds();
        for (column, width) in panels(self.isa, self.n_columns) {
            let panel = &self.values[panel_start..][..self.n_summed * width];
            panel_start += panel.len();
            let is_whole = column + width <= self.n_columns;
            for tile_idx in 0..n_tiles {
                let [start, end] = [start_of(tile_idx), start_of(tile_idx + 1)];
                let at = start * stride + column;
                let added = finish.added.map(|added| &added[at..]);
                let out = &mut out[at..];
                let tile = Tile {
                    pieces: &pieces,
                    range: start * n_pieces..end * n_pieces,
                    n_rows: end - start,
                    panel,
                    bias: &finish.bias[column..],
                    width,
                    bounds,
                };
                if is_whole {
                    self.isa.multiply(&tile, out, added, stride);
                } else {
                    self.multiply_part(tile, self.n_columns - column, out, added, stride);
                }
                if !finish.activation.is_bounds() {
                    let width = width.min(self.n_columns - column);
                    for row_idx in 0..end - start {
                        finish.activation.apply_to(&mut out[row_idx * stride..][..width]);
                    }
                }
            }
        }
    }

    /// A tile of fewer columns than the panel has.
    fn multiply_part(&self, tile: Tile<'_>, n_columns: usize, out: &mut [f32], added: Option<&[f32]>, stride: usize) {
        // Two registers by as many rows as there are, of the largest kernels.
        let mut spare = [0.0_f32; 2 * LINE * 12];
        let mut bias = [0.0_f32; 2 * LINE];
        bias[..n_columns].copy_from_slice(&tile.bias[..n_columns]);
        let Tile { n_rows, width, bounds: [least, most], .. } = tile;
        let unbound = Activation::Identity.bounds();
        self.isa.multiply(&Tile { bias: &bias, bounds: unbound, ..tile }, &mut spare, None, width);
        for row_idx in 0..n_rows {
            let sums = &mut spare[row_idx * width..][..n_columns];
            if let Some(added) = added {
                sums.iter_mut().zip(&added[row_idx * stride..]).for_each(|(sum, added)| *sum += added);
            }
            for (out, sum) in out[row_idx * stride..].iter_mut().zip(sums) {
                *out = sum.clamp(least, most);
            }
        }
    }
}

/// The first column and the width of each panel: two registers, the last one if that is enough.
fn panels(isa: Isa, n_columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let n_lanes = isa.lanes();
    (0..n_columns).step_by(2 * n_lanes).map(move |first| {
        let is_narrow = n_columns - first <= n_lanes;
        (first, if is_narrow { n_lanes } else { 2 * n_lanes })
    })
}
