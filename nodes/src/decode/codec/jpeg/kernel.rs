//! The inner loops over samples.

use super::colour::ycc_pixel;
use super::idct::{Block, transform_plainly};

/// Writes the 8×8 samples of a block.
#[inline(always)]
pub(super) fn transform(block: &Block, out: &mut [u8], stride: usize) {
    transform_plainly(block, out, stride);
}

/// Twice as many samples, weighed along the line.
pub(super) fn stretch_along(near: &[u8], out: &mut [u8]) {
    let n = near.len();
    let at = |x: usize| u16::from(near[x]);
    out[0] = near[0];
    out[1] = ((at(0) * 3 + at(1) + 2) >> 2) as u8;
    for x in 1..n - 1 {
        out[x * 2] = ((at(x) * 3 + at(x - 1) + 1) >> 2) as u8;
        out[x * 2 + 1] = ((at(x) * 3 + at(x + 1) + 2) >> 2) as u8;
    }
    out[n * 2 - 2] = ((at(n - 1) * 3 + at(n - 2) + 1) >> 2) as u8;
    out[n * 2 - 1] = near[n - 1];
}

/// Twice as many samples, weighed along the line and with the neighbouring line.
pub(super) fn stretch_both(near: &[u8], far: &[u8], out: &mut [u8]) {
    let n = near.len();
    let at = |x: usize| u16::from(near[x]) * 3 + u16::from(far[x]);
    out[0] = ((at(0) * 4 + 8) >> 4) as u8;
    out[1] = ((at(0) * 3 + at(1) + 7) >> 4) as u8;
    for x in 1..n - 1 {
        out[x * 2] = ((at(x) * 3 + at(x - 1) + 8) >> 4) as u8;
        out[x * 2 + 1] = ((at(x) * 3 + at(x + 1) + 7) >> 4) as u8;
    }
    out[n * 2 - 2] = ((at(n - 1) * 3 + at(n - 2) + 8) >> 4) as u8;
    out[n * 2 - 1] = ((at(n - 1) * 4 + 7) >> 4) as u8;
}

/// Pixels of a line of luminance and two of colour.
pub(super) fn ycc_to_rgb(lines: [&[u8]; 3], row: &mut [u8]) {
    let [luma, cb, cr] = lines;
    for (((pixel, &luma), &cb), &cr) in row.chunks_exact_mut(3).zip(luma).zip(cb).zip(cr) {
        pixel.copy_from_slice(&ycc_pixel(luma, cb, cr));
    }
}
