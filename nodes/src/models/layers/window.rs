//! What a convolution multiplies: the windows of images, as rows of a matrix product.

use std::ops::Range;

use super::{Axis, kernel::Pieces, matrix::Rows};

/// Windows over images that lie pixel by pixel. Each tap of a window is a pixel, so nothing is copied.
pub(super) struct Windows<'a> {
    /// `[rows, height, width, channels]`.
    pub pixels: &'a [f32],
    /// As many as there are channels: what stands around an image.
    pub zeros: &'a [f32],
    pub kernel: usize,
    pub stride: usize,
    pub y: Axis,
    pub x: Axis,
}

impl Rows for Windows<'_> {
    fn pieces(&self) -> [usize; 2] {
        [self.kernel * self.kernel, self.zeros.len()]
    }

    fn take<'a>(&'a self, rows: Range<usize>, piece_idx: usize, pieces: &mut Pieces<'a>) {
        let n_windows = self.y.n_out * self.x.n_out;
        let (mut image_idx, window_idx) = (rows.start / n_windows, rows.start % n_windows);
        let (mut out_y, mut out_x) = (window_idx / self.x.n_out, window_idx % self.x.n_out);
        let (tap_y, tap_x) = (piece_idx / self.kernel, piece_idx % self.kernel);
        let n_channels = self.zeros.len();
        for _ in rows {
            let (y, x) = (self.y.read(out_y * self.stride + tap_y), self.x.read(out_x * self.stride + tap_x));
            pieces.push(match (y, x) {
                (Some(y), Some(x)) => {
                    let pixel = (image_idx * self.y.n_in + y) * self.x.n_in + x;
                    &self.pixels[pixel * n_channels..][..n_channels]
                }
                _ => self.zeros,
            });
            out_x += 1;
            if out_x == self.x.n_out {
                (out_y, out_x) = (out_y + 1, 0);
            }
            if out_y == self.y.n_out {
                (image_idx, out_y) = (image_idx + 1, 0);
            }
        }
    }
}

/// Windows over images that lie channel by channel. Where there are few channels, a window is copied into one piece.
pub(super) struct Unfolded<'a> {
    /// `[rows, channels, height, width]`.
    pub images: &'a [f32],
    pub n_channels: usize,
    pub kernel: usize,
    pub stride: usize,
    pub y: Axis,
    pub x: Axis,
}

impl Unfolded<'_> {
    /// Copies `n_windows` windows from number `first` on, `[channels, kernel, kernel]` each.
    pub(super) fn copy(&self, first: usize, n_windows: usize, out: &mut Vec<f32>) {
        let n_summed = self.n_channels * self.kernel * self.kernel;
        out.clear();
        out.resize(n_windows * n_summed, 0.0);
        for (n, window) in out.chunks_exact_mut(n_summed).enumerate() {
            let n_of_image = self.y.n_out * self.x.n_out;
            let (image_idx, window_idx) = ((first + n) / n_of_image, (first + n) % n_of_image);
            let image_len = self.n_channels * self.y.n_in * self.x.n_in;
            let image = &self.images[image_idx * image_len..][..image_len];
            self.copy_one(image, window_idx / self.x.n_out, window_idx % self.x.n_out, window);
        }
    }

    fn copy_one(&self, image: &[f32], out_y: usize, out_x: usize, window: &mut [f32]) {
        // Taps from `first` to `end` see the image; before and behind them stand zeros.
        let left = out_x * self.stride;
        let first = self.x.before.saturating_sub(left).min(self.kernel);
        let end = (self.x.before + self.x.n_in).saturating_sub(left).min(self.kernel);
        if first >= end {
            return;
        }
        let start = left + first - self.x.before;
        let planes = image.chunks_exact(self.y.n_in * self.x.n_in);
        for (plane, taps) in planes.zip(window.chunks_exact_mut(self.kernel * self.kernel)) {
            for (tap_y, taps) in taps.chunks_exact_mut(self.kernel).enumerate() {
                let Some(y) = self.y.read(out_y * self.stride + tap_y) else {
                    continue;
                };
                let seen = &plane[y * self.x.n_in + start..][..end - first];
                // A loop and not a copy: most windows are three wide, and a copy is a call.
                taps[first..end].iter_mut().zip(seen).for_each(|(tap, seen)| *tap = *seen);
            }
        }
    }
}
