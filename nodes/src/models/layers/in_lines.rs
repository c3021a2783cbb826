//! An inverted residual block line by line on the CPU: pixels widened, each channel convolved, pixels narrowed again.
//!
//! The wide values of a whole image are several times what a core's cache holds, so writing them out and reading them back takes
//! much of the time of the layers one after the other. Here only as many lines of them exist as a window is high. The sums are the
//! same ones, bit for bit.

use candle_core::{Result, Tensor, bail};
use rayon::prelude::*;

use super::{
    Conv,
    conv::Pointwise,
    depthwise::Depthwise,
    kernel::Pieces,
    matrix::{Finish, Plain},
    values::{images_of, pixels_of, with_values},
};

/// Bytes of wide values from which on this is faster; below, a whole layer at once fills more tiles.
const LEAST: usize = 1 << 20;

/// Lines of the output that a thread takes at least: the first ones of each part are widened twice.
const LEAST_LINES: usize = 14;

/// Whether a block with so many wide channels, on an image of this height and width, is faster line by line.
pub(crate) fn are_computed_in_lines(n_wide: usize, height: usize, width: usize) -> bool {
    n_wide * height * width * size_of::<f32>() >= LEAST
}

/// A block of these layers over `[rows, channels, height, width]`, its input added to the end if it `is_residual`. `None` if they
/// are better computed, or can only be computed, one after the other.
pub(crate) fn in_lines(convs: &[Conv], is_residual: bool, images: &Tensor) -> Result<Option<Tensor>> {
    let (widen, middle, narrow) = match convs {
        [middle, narrow] => (None, middle, narrow),
        [widen, middle, narrow] => (Some(widen), middle, narrow),
        _ => return Ok(None),
    };
    let (n_rows, n_in, height, width) = images.dims4()?;
    let (Some(depthwise), Some(narrow)) = (middle.depthwise([height, width])?, narrow.pointwise()) else {
        return Ok(None);
    };
    let widen = match widen.map(Conv::pointwise) {
        None => None,
        Some(None) => return Ok(None),
        Some(widen) => widen,
    };
    let n_wide = depthwise.bias.len();
    if !are_computed_in_lines(n_wide, height, width) {
        return Ok(None);
    }
    let n_out = narrow.matrix.n_columns();
    let fits = widen.as_ref().map_or(n_in, |widen| widen.matrix.n_columns()) == n_wide;
    let reads = widen.as_ref().map_or(n_wide, |widen| widen.matrix.n_summed());
    let shape = [n_rows, n_out, depthwise.y.n_out, depthwise.x.n_out];
    if !fits || reads != n_in || narrow.matrix.n_summed() != n_wide {
        bail!("a block of {n_in}, {n_wide} and {n_out} channels");
    }
    if is_residual && shape != [n_rows, n_in, height, width] {
        bail!("{shape:?} joined by {:?}", images.dims());
    }
    let block = Block { widen, depthwise, narrow, is_residual, n_in };
    let mut out = vec![0.0_f32; shape.iter().product()];
    with_values(&pixels_of(images)?, |pixels| {
        block.compute(pixels, &mut out);
        Ok(())
    })?;
    images_of(out, shape).map(Some)
}

struct Block<'a> {
    widen: Option<Pointwise<'a>>,
    depthwise: Depthwise<'a>,
    narrow: Pointwise<'a>,
    is_residual: bool,
    n_in: usize,
}

impl Block<'_> {
    /// `[rows, height, width, channels]` to the same with the output's; parts of an image side by side on the caller's pool.
    fn compute(&self, pixels: &[f32], out: &mut [f32]) {
        let Depthwise { y, x, .. } = self.depthwise;
        let [n_image, line_len] = [y.n_in * x.n_in * self.n_in, x.n_out * self.narrow.matrix.n_columns()];
        let n_parts = rayon::current_num_threads().min(y.n_out.div_ceil(LEAST_LINES)).max(1);
        let n_lines = y.n_out.div_ceil(n_parts);
        let images = out.par_chunks_exact_mut(y.n_out * line_len).zip(pixels.par_chunks_exact(n_image));
        images.for_each(|(out, image)| {
            let parts = out.par_chunks_mut(n_lines * line_len).enumerate();
            parts.for_each(|(part_idx, out)| self.compute_lines(image, part_idx * n_lines, out));
        });
    }

    /// The lines of one image's output from number `first` on.
    fn compute_lines(&self, image: &[f32], first: usize, out: &mut [f32]) {
        let Depthwise { kernel, stride, y, x, bias, .. } = self.depthwise;
        let n_wide = bias.len();
        let zeros = vec![0.0_f32; n_wide];
        // A line of the input is in the buffer of its number, until the one that many behind it comes.
        let n_kept = if self.widen.is_some() { kernel } else { 0 };
        let mut widened: Vec<Vec<f32>> = (0..n_kept).map(|_| vec![0.0; x.n_in * n_wide]).collect();
        let mut convolved = vec![0.0_f32; x.n_out * n_wide];
        let line_of = |at: usize| &image[at * x.n_in * self.n_in..][..x.n_in * self.n_in];
        let mut next = (first * stride).saturating_sub(y.before);
        for (place, out) in out.chunks_exact_mut(x.n_out * self.narrow.matrix.n_columns()).enumerate() {
            let top = (first + place) * stride;
            if let Some(widen) = &self.widen {
                let end = (top + kernel).saturating_sub(y.before).min(y.n_in);
                for at in next..end {
                    let rows = Plain { values: line_of(at), n_summed: self.n_in, stride: self.n_in };
                    let finish = Finish { bias: widen.bias, added: None, activation: widen.activation };
                    widen.matrix.multiply_block(&rows, [0, x.n_in], finish, &mut widened[at % kernel], n_wide);
                }
                next = next.max(end);
            }
            let mut lines: Vec<_> = (0..kernel).map(|_| Pieces::new(n_wide)).collect();
            for (tap_y, line) in lines.iter_mut().enumerate() {
                let seen = y.read(top + tap_y).map(|at| match &self.widen {
                    Some(_) => &widened[at % kernel][..],
                    None => line_of(at),
                });
                self.depthwise.take_line(seen, &zeros, line);
            }
            self.depthwise.convolve_line(&lines, &mut convolved);
            let rows = Plain { values: &convolved, n_summed: n_wide, stride: n_wide };
            let added = self.is_residual.then(|| line_of(first + place));
            let finish = Finish { bias: self.narrow.bias, added, activation: self.narrow.activation };
            self.narrow.matrix.multiply_block(&rows, [0, x.n_out], finish, out, self.narrow.matrix.n_columns());
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::super::{Activation, Channels, ConvSpec, Padding};
    use super::*;

    /// Numbers between −1 and 1 without a pattern.
    fn noise(shape: &[usize], seed: f64) -> Tensor {
        let values: Vec<f32> =
            (0..shape.iter().product::<usize>()).map(|n| ((n as f64 + seed) * 12.9898).sin() as f32).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).expect("a tensor")
    }

    fn layer(shape: [usize; 4], stride: usize, padding: Padding, channels: Channels, activation: Activation) -> Conv {
        let spec = ConvSpec { stride, padding, channels, activation };
        Conv::new(noise(&shape, 1.0), noise(&shape[..1], 2.0), spec).expect("a layer")
    }

    fn bits(tensor: &Tensor) -> Vec<u32> {
        let flat = tensor.to_dtype(DType::F32).and_then(|tensor| tensor.flatten_all()?.to_vec1::<f32>());
        flat.expect("values").into_iter().map(f32::to_bits).collect()
    }

    /// Of 3 rows, the last lines of the parts shorter than the others.
    fn check(kernel: usize, stride: usize, padding: Padding, is_widened: bool, size: [usize; 2]) {
        let (n_in, n_wide) = (if is_widened { 11 } else { 45 }, 45);
        let is_residual = stride == 1;
        let n_out = if is_residual { n_in } else { 19 };
        let relu6 = Activation::Relu6;
        let mut convs = vec![
            layer([n_wide, 1, kernel, kernel], stride, padding, Channels::Separate, relu6),
            layer([n_out, n_wide, 1, 1], 1, padding, Channels::Mixed, Activation::Identity),
        ];
        if is_widened {
            convs.insert(0, layer([n_wide, n_in, 1, 1], 1, padding, Channels::Mixed, relu6));
        }
        let images = noise(&[3, n_in, size[0], size[1]], 3.0);
        let found = in_lines(&convs, is_residual, &images).expect("computed").expect("in lines");
        let (last, rest) = convs.split_last().expect("layers");
        let wide = rest.iter().fold(images.clone(), |values, conv| conv.forward(&values).expect("computed"));
        let wanted = match is_residual {
            true => last.forward_and_add(&wide, &images, Activation::Identity),
            false => last.forward(&wide),
        };
        let wanted = wanted.expect("computed");
        assert_eq!(found.dims(), wanted.dims());
        assert!(bits(&found) == bits(&wanted), "{kernel} {stride} {padding:?} {is_widened} {size:?}");
    }

    #[test]
    fn it_has_the_bits_of_the_layers_one_after_the_other() {
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a pool");
        for n_threads in [1, 3] {
            pool(n_threads).install(|| {
                for size in [[80, 80], [97, 75], [61, 120]] {
                    for (kernel, stride) in [(3, 1), (3, 2), (5, 1), (5, 2)] {
                        for padding in [Padding::Centred, Padding::Same] {
                            check(kernel, stride, padding, true, size);
                            check(kernel, stride, padding, false, size);
                        }
                    }
                }
            });
        }
    }

    #[test]
    fn what_fits_into_a_cache_is_left_to_the_layers() {
        let convs = [
            layer([9, 1, 3, 3], 1, Padding::Centred, Channels::Separate, Activation::Relu6),
            layer([9, 9, 1, 1], 1, Padding::Centred, Channels::Mixed, Activation::Identity),
        ];
        assert!(in_lines(&convs, true, &noise(&[1, 9, 14, 14], 1.0)).expect("shapes that fit").is_none());
    }
}
