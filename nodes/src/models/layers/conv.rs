//! A convolution with its bias and activation.

use candle_core::{D, Result, Tensor, bail};

use super::{
    Activation, Axis,
    depthwise::Depthwise,
    finish::{Along, BiasActivation},
    has_kernels,
    im2col::Im2Col,
    parameter::Parameter,
};

/// How a convolution runs over an image.
#[derive(Debug, Clone, Copy)]
pub struct ConvSpec {
    /// Step between windows, the same both ways.
    pub stride: usize,
    /// What stands around the image.
    pub padding: Padding,
    /// Whether each channel is convolved by itself.
    pub channels: Channels,
    /// What follows.
    pub activation: Activation,
}

/// How many zeros stand around an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// None.
    None,
    /// Half a window on each side, as PyTorch models have it.
    Centred,
    /// TensorFlow's `SAME`: as many as the windows need, the odd one after the image.
    Same,
}

/// Which input channels an output channel reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// All of them.
    Mixed,
    /// The one of the same number.
    Separate,
}

/// A convolution layer. Weights are shared when it is cloned.
#[derive(Debug, Clone)]
pub struct Conv {
    /// `[out, in, k, k]`, or `[channels, 1, k, k]` where channels are separate.
    weight: Tensor,
    /// `[out, in · k · k]`, the same values.
    matrix: Tensor,
    bias: Parameter,
    /// The weight again, where each channel is convolved by itself.
    filters: Option<Parameter>,
    kernel: usize,
    spec: ConvSpec,
}

impl Conv {
    /// A layer of these weights.
    pub fn new(weight: Tensor, bias: Tensor, spec: ConvSpec) -> Result<Self> {
        let (n_out, n_in, kernel, kernel_width) = weight.dims4()?;
        if kernel != kernel_width || bias.dims() != [n_out] {
            bail!("a convolution of weight {:?} and bias {:?}", weight.dims(), bias.dims());
        }
        let weight = weight.contiguous()?;
        let matrix = weight.reshape((n_out, n_in * kernel * kernel))?;
        let filters = (spec.channels == Channels::Separate).then(|| Parameter::new(&weight)).transpose()?;
        Ok(Self { weight, matrix, bias: Parameter::new(&bias)?, filters, kernel, spec })
    }

    /// Runs over `[rows, in, height, width]`; the output is a new tensor that nothing else shares.
    pub fn forward(&self, images: &Tensor) -> Result<Tensor> {
        if has_kernels(images.device()) { self.forward_kernels(images) } else { self.forward_candle(images) }
    }

    /// By the kernels of this folder and candle's matrix product.
    fn forward_kernels(&self, images: &Tensor) -> Result<Tensor> {
        let (n_rows, n_in, height, width) = images.dims4()?;
        let [y, x] = [self.axis(height)?, self.axis(width)?];
        let images = images.contiguous()?;
        if let Some(filters) = &self.filters {
            return images.apply_op1_no_bwd(&Depthwise {
                weight: filters,
                bias: &self.bias,
                kernel: self.kernel,
                stride: self.spec.stride,
                y,
                x,
                activation: self.spec.activation,
            });
        }
        let columns = if self.kernel == 1 && self.spec.stride == 1 {
            images.reshape((n_rows, n_in, height * width))?
        } else {
            images.apply_op1_no_bwd(&Im2Col { kernel: self.kernel, stride: self.spec.stride, y, x })?
        };
        let (n_out, n_summed) = self.matrix.dims2()?;
        let matrix = self.matrix.broadcast_as((n_rows, n_out, n_summed))?;
        let sums = matrix.matmul(&columns)?;
        sums.inplace_op1(&BiasActivation {
            bias: &self.bias,
            along: Along::Channels,
            activation: self.spec.activation,
        })?;
        sums.reshape((n_rows, n_out, y.n_out, x.n_out))
    }

    /// The same by candle's own operations, which run on every device.
    fn forward_candle(&self, images: &Tensor) -> Result<Tensor> {
        let (_, n_in, height, width) = images.dims4()?;
        let [y, x] = [self.axis(height)?, self.axis(width)?];
        let groups = if self.spec.channels == Channels::Separate { n_in } else { 1 };
        let half = self.kernel / 2;
        let (padded, padding) = if [y, x].iter().all(|axis| (axis.before, axis.after) == (half, half)) {
            (images.clone(), half)
        } else {
            let padded =
                images.pad_with_zeros(D::Minus2, y.before, y.after)?.pad_with_zeros(D::Minus1, x.before, x.after)?;
            (padded, 0)
        };
        let sums = padded.conv2d(&self.weight, padding, self.spec.stride, 1, groups)?;
        let bias = self.bias.tensor().reshape((1, (), 1, 1))?;
        self.spec.activation.apply(&sums.broadcast_add(&bias)?)
    }

    fn axis(&self, n_in: usize) -> Result<Axis> {
        let (kernel, stride) = (self.kernel, self.spec.stride);
        let n_padding = match self.spec.padding {
            Padding::None => 0,
            Padding::Centred => 2 * (kernel / 2),
            Padding::Same => ((n_in.div_ceil(stride).max(1) - 1) * stride + kernel).saturating_sub(n_in),
        };
        if n_in + n_padding < kernel {
            bail!("an image of {n_in} pixels under a window of {kernel}");
        }
        let n_out = (n_in + n_padding - kernel) / stride + 1;
        let before = n_padding / 2;
        let n_read = (n_out - 1) * stride + kernel;
        Ok(Axis { n_in, n_out, before, after: n_read.saturating_sub(n_in + before) })
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    /// Numbers between −1 and 1 without a pattern.
    fn noise(shape: &[usize], seed: u32) -> Tensor {
        let mut state = seed;
        let values: Vec<f32> = (0..shape.iter().product::<usize>())
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect();
        Tensor::from_vec(values, shape, &Device::Cpu).expect("a tensor")
    }

    fn check(kernel: usize, stride: usize, padding: Padding, channels: Channels, size: [usize; 2]) {
        let n_in = if channels == Channels::Separate { 1 } else { 6 };
        let weight = noise(&[6, n_in, kernel, kernel], 1);
        let spec = ConvSpec { stride, padding, channels, activation: Activation::Relu6 };
        let conv = Conv::new(weight, noise(&[6], 2), spec).expect("a layer");
        let images = (noise(&[3, 6, size[0], size[1]], 3) * 2.0).expect("images");
        let found = conv.forward_kernels(&images).expect("our kernels");
        let wanted = conv.forward_candle(&images).expect("candle");
        assert_eq!(found.dims(), wanted.dims());
        let difference = (&found - &wanted)
            .and_then(|difference| difference.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>())
            .expect("a difference");
        assert!(difference < 1e-4, "{kernel} {stride} {padding:?} {channels:?} {size:?}: {difference}");
        let spread = found.flatten_all().and_then(|v| v.max(0)?.to_dtype(DType::F32)?.to_scalar::<f32>());
        assert!(spread.expect("a value") > 0.5, "all values were cut off");
    }

    #[test]
    fn our_kernels_agree_with_candle() {
        for size in [[32, 32], [33, 47], [7, 9], [2, 1]] {
            for stride in [1, 2] {
                for padding in [Padding::Centred, Padding::Same] {
                    for kernel in [1, 3, 5, 7] {
                        check(kernel, stride, padding, Channels::Mixed, size);
                        check(kernel, stride, padding, Channels::Separate, size);
                    }
                }
            }
        }
        check(16, 16, Padding::None, Channels::Mixed, [48, 32]);
    }

    #[test]
    fn a_window_larger_than_the_image_is_an_error() {
        let spec =
            ConvSpec { stride: 1, padding: Padding::None, channels: Channels::Mixed, activation: Activation::Identity };
        let conv = Conv::new(noise(&[2, 2, 3, 3], 1), noise(&[2], 2), spec).expect("a layer");
        assert!(conv.forward(&noise(&[1, 2, 2, 5], 3)).is_err());
    }

    #[test]
    fn a_nan_in_the_input_shows_in_the_output() {
        for channels in [Channels::Mixed, Channels::Separate] {
            let n_in = if channels == Channels::Separate { 1 } else { 2 };
            let spec = ConvSpec { stride: 1, padding: Padding::Centred, channels, activation: Activation::Relu6 };
            let conv = Conv::new(noise(&[2, n_in, 3, 3], 1), noise(&[2], 2), spec).expect("a layer");
            let images = (noise(&[1, 2, 4, 4], 3) * f64::NAN).expect("images");
            let found = conv.forward(&images).and_then(|v| v.flatten_all()?.to_vec1::<f32>()).expect("values");
            assert!(found.iter().all(|value| value.is_nan()), "{channels:?}");
        }
    }
}
