//! A convolution with its bias and activation.

use std::sync::Arc;

use candle_core::{D, DType, Result, Tensor, bail};

use super::{
    Activation, Axis, add_and_activate,
    depthwise::Depthwise,
    matrix::{Finish, Matrix, Plain},
    parameter::Parameter,
    values::{images_of, pixels_of, with_values},
    window::{Unfolded, Windows},
};

/// Below so many input channels, windows are copied together: a tap of so few would be a loop of two or three steps.
const FEW: usize = 8;

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
    weights: Weights,
    bias: Parameter,
    n_in: usize,
    n_out: usize,
    kernel: usize,
    spec: ConvSpec,
}

/// A layer that reads one pixel at a time.
pub(super) struct Pointwise<'a> {
    pub matrix: &'a Matrix,
    /// One for each column.
    pub bias: &'a [f32],
    pub activation: Activation,
}

/// A weight as what computes reads it.
#[derive(Debug, Clone)]
enum Weights {
    /// On the CPU: a row for each tap of a window and each of its channels.
    PixelByPixel(Matrix),
    /// On the CPU, for few channels: a row for each channel of a window and each of its taps.
    ChannelByChannel(Matrix),
    /// On the CPU, where channels are separate: `[k, k, channels]`.
    Filters(Arc<Vec<f32>>),
    /// Elsewhere: `[out, in, k, k]`, or `[channels, 1, k, k]` where channels are separate.
    Tensor(Parameter, Tensor),
}

impl Weights {
    fn new(weight: Tensor, spec: ConvSpec) -> Result<Self> {
        let weight = weight.contiguous()?;
        if !weight.device().is_cpu() {
            return Ok(Self::Tensor(Parameter::new(&weight)?, weight));
        }
        let (n_out, n_in, kernel, _) = weight.dims4()?;
        let n_taps = kernel * kernel;
        let shape = [n_in * n_taps, n_out];
        with_values(&weight.to_dtype(DType::F32)?, |values| {
            Ok(match spec.channels {
                Channels::Separate => {
                    let by_tap = (0..n_taps).flat_map(|tap_idx| (0..n_out).map(move |n| n * n_taps + tap_idx));
                    Self::Filters(Arc::new(by_tap.map(|place| values[place]).collect()))
                }
                Channels::Mixed if n_in < FEW => {
                    Self::ChannelByChannel(Matrix::new(shape, |place, out| values[out * n_in * n_taps + place]))
                }
                Channels::Mixed => Self::PixelByPixel(Matrix::new(shape, |place, out| {
                    values[(out * n_in + place % n_in) * n_taps + place / n_in]
                })),
            })
        })
    }
}

impl Conv {
    /// A layer of these weights.
    pub fn new(weight: Tensor, bias: Tensor, spec: ConvSpec) -> Result<Self> {
        let (n_out, n_read, kernel, kernel_width) = weight.dims4()?;
        let is_separate = spec.channels == Channels::Separate;
        if kernel != kernel_width || bias.dims() != [n_out] || (is_separate && n_read != 1) {
            bail!("a convolution of weight {:?} and bias {:?}", weight.dims(), bias.dims());
        }
        let n_in = if is_separate { n_out } else { n_read };
        Ok(Self { weights: Weights::new(weight, spec)?, bias: Parameter::new(&bias)?, n_in, n_out, kernel, spec })
    }

    /// Runs over `[rows, in, height, width]`; the output is a new tensor that nothing else shares.
    pub fn forward(&self, images: &Tensor) -> Result<Tensor> {
        self.forward_with(images, None, self.spec.activation)
    }

    /// The same, with `added`, which has the output's shape, added to it and activated: how a residual branch joins.
    pub fn forward_and_add(&self, images: &Tensor, added: &Tensor, activation: Activation) -> Result<Tensor> {
        if self.spec.activation == Activation::Identity {
            return self.forward_with(images, Some(added), activation);
        }
        add_and_activate(self.forward(images)?, added, activation)
    }

    fn forward_with(&self, images: &Tensor, added: Option<&Tensor>, activation: Activation) -> Result<Tensor> {
        let (_, n_in, height, width) = images.dims4()?;
        if n_in != self.n_in {
            bail!("a convolution of {} channels over {:?}", self.n_in, images.dims());
        }
        let [y, x] = [self.axis(height)?, self.axis(width)?];
        let found = match &self.weights {
            Weights::PixelByPixel(matrix) => return self.multiply(matrix, images, [y, x], added, activation),
            Weights::ChannelByChannel(matrix) => self.multiply_unfolded(matrix, images, [y, x])?,
            Weights::Filters(filters) => self.convolve_channels(filters, images, [y, x])?,
            Weights::Tensor(filters, weight) => self.forward_elsewhere(filters, weight, images, [y, x])?,
        };
        match added {
            Some(added) => add_and_activate(found, added, activation),
            None => Ok(found),
        }
    }

    fn multiply(
        &self,
        matrix: &Matrix,
        images: &Tensor,
        [y, x]: [Axis; 2],
        added: Option<&Tensor>,
        activation: Activation,
    ) -> Result<Tensor> {
        let shape = [images.dim(0)?, self.n_out, y.n_out, x.n_out];
        let added = match added {
            Some(added) if added.dims() != shape => bail!("{shape:?} joined by {:?}", added.dims()),
            added => added.map(pixels_of).transpose()?,
        };
        let mut out = vec![0.0_f32; shape.iter().product()];
        with_values(&pixels_of(images)?, |pixels| {
            let mut compute = |added: Option<&[f32]>| {
                let finish = Finish { bias: self.bias.host(), added, activation };
                if self.kernel == 1 && self.spec.stride == 1 {
                    let rows = Plain { values: pixels, n_summed: self.n_in, stride: self.n_in };
                    matrix.multiply(&rows, finish, &mut out);
                } else {
                    let zeros = vec![0.0; self.n_in];
                    let (kernel, stride) = (self.kernel, self.spec.stride);
                    matrix.multiply(&Windows { pixels, zeros: &zeros, kernel, stride, y, x }, finish, &mut out);
                }
                Ok(())
            };
            match &added {
                Some(added) => with_values(added, |added| compute(Some(added))),
                None => compute(None),
            }
        })?;
        images_of(out, shape)
    }

    fn multiply_unfolded(&self, matrix: &Matrix, images: &Tensor, [y, x]: [Axis; 2]) -> Result<Tensor> {
        let shape = [images.dim(0)?, self.n_out, y.n_out, x.n_out];
        let mut out = vec![0.0_f32; shape.iter().product()];
        with_values(images, |images| {
            let (kernel, stride) = (self.kernel, self.spec.stride);
            let windows = Unfolded { images, n_channels: self.n_in, kernel, stride, y, x };
            let finish = Finish { bias: self.bias.host(), added: None, activation: self.spec.activation };
            matrix.multiply_unfolded(&windows, finish, &mut out);
            Ok(())
        })?;
        images_of(out, shape)
    }

    /// What the layer does to each pixel of the CPU, where it does nothing else.
    pub(super) fn pointwise(&self) -> Option<Pointwise<'_>> {
        match &self.weights {
            Weights::PixelByPixel(matrix) if self.kernel == 1 && self.spec.stride == 1 => {
                Some(Pointwise { matrix, bias: self.bias.host(), activation: self.spec.activation })
            }
            _ => None,
        }
    }

    /// The layer over images of the CPU of this height and width, where channels are separate.
    pub(super) fn depthwise(&self, [height, width]: [usize; 2]) -> Result<Option<Depthwise<'_>>> {
        match &self.weights {
            Weights::Filters(filters) => Ok(Some(self.depthwise_of(filters, [self.axis(height)?, self.axis(width)?]))),
            _ => Ok(None),
        }
    }

    fn depthwise_of<'a>(&'a self, weight: &'a [f32], [y, x]: [Axis; 2]) -> Depthwise<'a> {
        let ConvSpec { stride, activation, .. } = self.spec;
        Depthwise { weight, bias: self.bias.host(), kernel: self.kernel, stride, y, x, activation }
    }

    fn convolve_channels(&self, filters: &[f32], images: &Tensor, [y, x]: [Axis; 2]) -> Result<Tensor> {
        let shape = [images.dim(0)?, self.n_out, y.n_out, x.n_out];
        let mut out = vec![0.0_f32; shape.iter().product()];
        with_values(&pixels_of(images)?, |pixels| {
            self.depthwise_of(filters, [y, x]).convolve(pixels, &mut out);
            Ok(())
        })?;
        images_of(out, shape)
    }

    fn forward_elsewhere(
        &self,
        _filters: &Parameter,
        weight: &Tensor,
        images: &Tensor,
        axes: [Axis; 2],
    ) -> Result<Tensor> {
        #[cfg(feature = "cuda")]
        if images.device().is_cuda() {
            return self.forward_cuda(_filters, weight, images, axes);
        }
        self.forward_candle(weight, images, axes)
    }

    /// By the kernels of CUDA and candle's matrix product.
    #[cfg(feature = "cuda")]
    fn forward_cuda(&self, filters: &Parameter, weight: &Tensor, images: &Tensor, [y, x]: [Axis; 2]) -> Result<Tensor> {
        use super::on_cuda::{Along, BiasActivation, Depthwise, Im2Col};

        let (n_rows, n_in, height, width) = images.dims4()?;
        let images = images.contiguous()?;
        let (kernel, ConvSpec { stride, activation, .. }) = (self.kernel, self.spec);
        let bias = &self.bias;
        if self.spec.channels == Channels::Separate {
            return images.apply_op1_no_bwd(&Depthwise { weight: filters, bias, kernel, stride, y, x, activation });
        }
        let columns = if kernel == 1 && stride == 1 {
            images.reshape((n_rows, n_in, height * width))?
        } else {
            images.apply_op1_no_bwd(&Im2Col { kernel, stride, y, x })?
        };
        let n_summed = n_in * kernel * kernel;
        let matrix = weight.reshape((self.n_out, n_summed))?.broadcast_as((n_rows, self.n_out, n_summed))?;
        let sums = matrix.matmul(&columns)?;
        sums.inplace_op1(&BiasActivation { bias, along: Along::Channels, activation })?;
        sums.reshape((n_rows, self.n_out, y.n_out, x.n_out))
    }

    /// By candle's own operations, which run on every device.
    fn forward_candle(&self, weight: &Tensor, images: &Tensor, [y, x]: [Axis; 2]) -> Result<Tensor> {
        let groups = if self.spec.channels == Channels::Separate { self.n_in } else { 1 };
        let half = self.kernel / 2;
        let (padded, padding) = if [y, x].iter().all(|axis| (axis.before, axis.after) == (half, half)) {
            (images.clone(), half)
        } else {
            let padded =
                images.pad_with_zeros(D::Minus2, y.before, y.after)?.pad_with_zeros(D::Minus1, x.before, x.after)?;
            (padded, 0)
        };
        let sums = padded.conv2d(weight, padding, self.spec.stride, 1, groups)?;
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

    /// More than a panel has on any processor, and no multiple of anything.
    const N_OUT: usize = 83;

    fn check(kernel: usize, stride: usize, padding: Padding, channels: Channels, n_in: usize, size: [usize; 2]) {
        let n_read = if channels == Channels::Separate { 1 } else { n_in };
        let weight = noise(&[N_OUT, n_read, kernel, kernel], 1);
        let spec = ConvSpec { stride, padding, channels, activation: Activation::Relu6 };
        let conv = Conv::new(weight.clone(), noise(&[N_OUT], 2), spec).expect("a layer");
        let images = (noise(&[3, n_in, size[0], size[1]], 3) * 2.0).expect("images");
        let found = conv.forward(&images).expect("our kernels");
        let axes = size.map(|side| conv.axis(side).expect("an axis"));
        let wanted = conv.forward_candle(&weight, &images, axes).expect("candle");
        assert_eq!(found.dims(), wanted.dims());
        let difference = (&found - &wanted)
            .and_then(|difference| difference.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>())
            .expect("a difference");
        assert!(difference < 2e-4, "{kernel} {stride} {padding:?} {channels:?} {n_in} {size:?}: {difference}");
        let spread = found.flatten_all().and_then(|v| v.max(0)?.to_dtype(DType::F32)?.to_scalar::<f32>());
        assert!(spread.expect("a value") > 0.5, "all values were cut off");
    }

    #[test]
    fn our_kernels_agree_with_candle() {
        for size in [[32, 32], [33, 47], [7, 9], [2, 1]] {
            for stride in [1, 2] {
                for padding in [Padding::Centred, Padding::Same] {
                    for kernel in [1, 3, 5, 7] {
                        check(kernel, stride, padding, Channels::Mixed, 6, size);
                        check(kernel, stride, padding, Channels::Mixed, 10, size);
                        check(kernel, stride, padding, Channels::Separate, N_OUT, size);
                    }
                }
            }
        }
        check(16, 16, Padding::None, Channels::Mixed, 3, [48, 32]);
    }

    #[test]
    fn what_is_added_is_added_before_the_activation() {
        for n_in in [3, 10] {
            let spec =
                |activation| ConvSpec { stride: 1, padding: Padding::Centred, channels: Channels::Mixed, activation };
            let [weight, bias] = [noise(&[N_OUT, n_in, 3, 3], 1), noise(&[N_OUT], 2)];
            let conv = Conv::new(weight, bias, spec(Activation::Identity)).expect("a layer");
            let images = noise(&[2, n_in, 9, 7], 3);
            let added = noise(&[2, N_OUT, 9, 7], 4);
            let found = conv.forward_and_add(&images, &added, Activation::Relu).expect("our kernels");
            let wanted = conv.forward(&images).and_then(|sums| (sums + &added)?.relu()).expect("candle");
            let all = |tensor: &Tensor| tensor.flatten_all().and_then(|flat| flat.to_vec1::<f32>()).expect("values");
            assert_eq!(all(&found), all(&wanted));
            assert!(conv.forward_and_add(&images, &noise(&[2, N_OUT, 9, 8], 4), Activation::Relu).is_err());
        }
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
