//! A convolution of each channel by itself, on the CPU.
//!
//! Images lie pixel by pixel, so that a tap is a run of memory and channels are computed side by side. What lies outside of
//! the image is left out.

use rayon::prelude::*;

use super::{
    Activation, Axis,
    kernel::{Isa, Work, add_product},
};

/// Channels that are computed together: four of the widest registers.
const LANES: usize = 64;

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
        let isa = Isa::best();
        let n_channels = self.bias.len();
        let image_len = self.y.n_in * self.x.n_in * n_channels;
        let line_len = self.x.n_out * n_channels;
        if out.is_empty() {
            return;
        }
        out.par_chunks_exact_mut(line_len).enumerate().for_each(|(line_idx, out)| {
            let (image_idx, out_y) = (line_idx / self.y.n_out, line_idx % self.y.n_out);
            let image = &pixels[image_idx * image_len..][..image_len];
            isa.run(Line { layer: self, image, out_y, out });
            self.activation.apply_to(out);
        });
    }
}

/// One line of the output.
struct Line<'a> {
    layer: &'a Depthwise<'a>,
    image: &'a [f32],
    out_y: usize,
    out: &'a mut [f32],
}

impl Work for Line<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { layer, image, out_y, out } = self;
        let n_channels = layer.bias.len();
        for (out_x, out) in out.chunks_exact_mut(n_channels).enumerate() {
            let mut first = 0;
            while first + LANES <= n_channels {
                layer.pixel::<LANES, FUSED>(image, [out_y, out_x], first, out);
                first += LANES;
            }
            while first + 16 <= n_channels {
                layer.pixel::<16, FUSED>(image, [out_y, out_x], first, out);
                first += 16;
            }
            while first < n_channels {
                layer.pixel::<1, FUSED>(image, [out_y, out_x], first, out);
                first += 1;
            }
        }
    }
}

impl Depthwise<'_> {
    /// `N` channels of one pixel of the output, from `first` on.
    #[inline(always)]
    fn pixel<const N: usize, const FUSED: bool>(
        &self,
        image: &[f32],
        [out_y, out_x]: [usize; 2],
        first: usize,
        out: &mut [f32],
    ) {
        let n_channels = self.bias.len();
        let mut sums = [0.0_f32; N];
        sums.copy_from_slice(&self.bias[first..first + N]);
        for tap_y in 0..self.kernel {
            let Some(y) = self.y.read(out_y * self.stride + tap_y) else { continue };
            for tap_x in 0..self.kernel {
                let Some(x) = self.x.read(out_x * self.stride + tap_x) else { continue };
                let values = &image[(y * self.x.n_in + x) * n_channels + first..][..N];
                let weights = &self.weight[(tap_y * self.kernel + tap_x) * n_channels + first..][..N];
                for lane in 0..N {
                    sums[lane] = add_product::<FUSED>(sums[lane], values[lane], weights[lane]);
                }
            }
        }
        out[first..first + N].copy_from_slice(&sums);
    }
}
