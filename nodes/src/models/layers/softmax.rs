//! The softmax of rows, in place.

use super::{kernel::Work, sigmoid::exp};

/// Values that are reduced side by side.
const LANES: usize = 16;

/// Makes each row of `n_columns` values its softmax.
pub(super) struct Softmax<'a> {
    pub rows: &'a mut [f32],
    pub n_columns: usize,
}

impl Work for Softmax<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for row in self.rows.chunks_exact_mut(self.n_columns.max(1)) {
            let largest = reduce(row, f32::NEG_INFINITY, larger, larger);
            for value in row.iter_mut() {
                *value = exp::<FUSED>(*value - largest);
            }
            let scale = 1.0 / reduce(row, 0.0, add, add);
            for value in row.iter_mut() {
                *value *= scale;
            }
        }
    }
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline(always)]
pub(super) fn add(a: f32, b: f32) -> f32 {
    a + b
}

/// Folds values in lanes, and then joins the lanes.
#[inline(always)]
pub(super) fn reduce(
    values: &[f32],
    start: f32,
    fold: impl Fn(f32, f32) -> f32,
    join: impl Fn(f32, f32) -> f32,
) -> f32 {
    let mut lanes = [start; LANES];
    let mut chunks = values.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = fold(*lane, *value);
        }
    }
    let mut folded = start;
    for value in chunks.remainder() {
        folded = fold(folded, *value);
    }
    lanes.iter().fold(folded, |folded, lane| join(folded, *lane))
}
