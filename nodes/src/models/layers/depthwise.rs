//! A convolution of each channel by itself, on the CPU.
//!
//! Images lie pixel by pixel, so that channels are computed side by side, for several pixels of a line at once.

use rayon::prelude::*;

use super::{
    Activation, Axis,
    kernel::{Channels, Isa, Pieces},
};

/// The layer's figures, borrowed for one call.
pub(super) struct Depthwise<'a> {
    /// `[kernel, kernel, channels]`.
    pub weight: &'a [f32],
    pub bias: &'a [f32],
    pub kernel: usize,
    pub stride: usize,
    pub y: Axis,
    pub x: Axis,
    pub activation: Activation,
}

impl Depthwise<'_> {
    /// `[rows, height, width, channels]` to the same with the output's height and width, line by line side by side.
    pub(super) fn convolve(&self, pixels: &[f32], out: &mut [f32]) {
        let n_channels = self.bias.len();
        let image_len = self.y.n_in * self.x.n_in * n_channels;
        let zeros = vec![0.0_f32; n_channels];
        let empty = || (0..self.kernel).map(|_| Pieces::new(n_channels)).collect::<Vec<_>>();
        out.par_chunks_exact_mut((self.x.n_out * n_channels).max(1)).enumerate().for_each_init(
            empty,
            |lines, (line_idx, out)| {
                let (image_idx, out_y) = (line_idx / self.y.n_out, line_idx % self.y.n_out);
                let image = &pixels[image_idx * image_len..][..image_len];
                for (tap_y, line) in lines.iter_mut().enumerate() {
                    let seen = self.y.read(out_y * self.stride + tap_y);
                    let seen = seen.map(|y| &image[y * self.x.n_in * n_channels..][..self.x.n_in * n_channels]);
                    self.take_line(seen, &zeros, line);
                }
                self.convolve_line(lines, out);
            },
        );
    }

    /// The pixels of a line of the input with the zeros around it; all of a line outside of the image are zeros.
    pub(super) fn take_line<'a>(&self, seen: Option<&'a [f32]>, zeros: &'a [f32], line: &mut Pieces<'a>) {
        let n_channels = zeros.len();
        line.clear();
        for place in 0..self.x.before + self.x.n_in + self.x.after {
            line.push(match (seen, self.x.read(place)) {
                (Some(seen), Some(x)) => &seen[x * n_channels..][..n_channels],
                _ => zeros,
            });
        }
    }

    /// A line of the output, of the lines of the input that its windows see.
    pub(super) fn convolve_line(&self, lines: &[Pieces<'_>], out: &mut [f32]) {
        let isa = Isa::best();
        let (n_channels, n_out) = (self.bias.len(), self.x.n_out);
        let n_parts = n_out.div_ceil(isa.n_rows());
        for part_idx in 0..n_parts {
            let [start, end] = [part_idx, part_idx + 1].map(|part_idx| part_idx * n_out / n_parts);
            let job = Channels {
                lines,
                first: start * self.stride,
                step: self.stride,
                n_rows: end - start,
                weights: self.weight,
                bias: self.bias,
                bounds: self.activation.bounds(),
            };
            isa.convolve(&job, &mut out[start * n_channels..end * n_channels]);
        }
        if !self.activation.is_bounds() {
            self.activation.apply_to(out);
        }
    }
}
