//! Hands checked weights to an architecture, layer by layer.
//!
//! Promises that whatever is computed on the way (folding batch norms, stacking) is computed in f32 on the CPU, so that
//! the weights are the same numbers under every naming scheme and on every device.

use candle_core::{DType, Device, Tensor};

use super::{
    arch::Arch,
    layers::{Activation, Conv, ConvSpec, LayerNorm, Linear},
    load::{Checked, LoadError},
    params::{ReadTensorError, TensorSource},
    scheme::Location,
};

/// Reads tensors by their canonical names.
pub struct ParamReader<'a> {
    arch: &'static str,
    source: &'a dyn TensorSource,
    checked: Checked,
    dtype: DType,
    device: Device,
}

impl<'a> ParamReader<'a> {
    /// A reader of weights that were found to fit `arch`.
    pub fn new(arch: &dyn Arch, source: &'a dyn TensorSource, checked: Checked, dtype: DType, device: &Device) -> Self {
        Self { arch: arch.name(), source, checked, dtype, device: device.clone() }
    }

    /// One tensor in f32 on the CPU.
    pub fn values(&self, canonical: &str) -> Result<Tensor, LoadError> {
        match (self.checked.scheme.locate)(canonical) {
            Location::Whole(name) => self.load(&name),
            Location::Stacked(names) => {
                let parts = names.iter().map(|name| self.load(name)).collect::<Result<Vec<_>, _>>()?;
                Tensor::cat(&parts, 0).map_err(|error| self.device_error(error))
            }
        }
    }

    /// One tensor as the network uses it.
    pub fn tensor(&self, canonical: &str) -> Result<Tensor, LoadError> {
        self.place(self.values(canonical)?)
    }

    /// A convolution without a bias, followed by a batch norm that is folded into it.
    pub fn conv_norm(&self, conv: &str, norm: &str, eps: f64, spec: ConvSpec) -> Result<Conv, LoadError> {
        let weight = self.values(&format!("{conv}.weight"))?;
        let [gamma, beta, mean, var] = [
            self.values(&format!("{norm}.weight"))?,
            self.values(&format!("{norm}.bias"))?,
            self.values(&format!("{norm}.running_mean"))?,
            self.values(&format!("{norm}.running_var"))?,
        ];
        let folded = fold(&weight, [&gamma, &beta, &mean, &var], eps);
        let (weight, bias) = folded.map_err(|error| self.device_error(error))?;
        self.conv_of(weight, bias, spec)
    }

    /// A convolution with a bias of its own.
    pub fn conv(&self, name: &str, spec: ConvSpec) -> Result<Conv, LoadError> {
        let weight = self.values(&format!("{name}.weight"))?;
        let bias = self.values(&format!("{name}.bias"))?;
        self.conv_of(weight, bias, spec)
    }

    /// A convolution that has no bias.
    pub fn conv_without_bias(&self, name: &str, spec: ConvSpec) -> Result<Conv, LoadError> {
        let weight = self.values(&format!("{name}.weight"))?;
        let bias = self.zeros(&weight)?;
        self.conv_of(weight, bias, spec)
    }

    /// A linear layer, followed by an activation.
    pub fn linear(&self, name: &str, activation: Activation) -> Result<Linear, LoadError> {
        self.linear_of(self.values(&format!("{name}.weight"))?, self.values(&format!("{name}.bias"))?, activation)
    }

    /// A linear layer that has no bias.
    pub fn linear_without_bias(&self, name: &str) -> Result<Linear, LoadError> {
        let weight = self.values(&format!("{name}.weight"))?;
        let bias = self.zeros(&weight)?;
        self.linear_of(weight, bias, Activation::Identity)
    }

    /// A linear layer whose outputs are multiplied by the tensor `scale`, which is folded into it.
    pub fn linear_scaled(&self, name: &str, scale: &str) -> Result<Linear, LoadError> {
        let [weight, bias, scale] =
            [&format!("{name}.weight"), &format!("{name}.bias"), scale].map(|name| self.values(name));
        let (weight, bias, scale) = (weight?, bias?, scale?);
        let scaled = scale.unsqueeze(1).and_then(|rows| Ok((weight.broadcast_mul(&rows)?, (bias * &scale)?)));
        let (weight, bias) = scaled.map_err(|error| self.device_error(error))?;
        self.linear_of(weight, bias, Activation::Identity)
    }

    /// A linear layer of values that were put together otherwise.
    pub fn linear_of(&self, weight: Tensor, bias: Tensor, activation: Activation) -> Result<Linear, LoadError> {
        Linear::new(self.place(weight)?, self.place(bias)?, activation).map_err(|error| self.device_error(error))
    }

    /// A layer norm.
    pub fn layer_norm(&self, name: &str, eps: f64) -> Result<LayerNorm, LoadError> {
        let weight = self.tensor(&format!("{name}.weight"))?;
        let bias = self.tensor(&format!("{name}.bias"))?;
        LayerNorm::new(weight, bias, eps).map_err(|error| self.device_error(error))
    }

    fn conv_of(&self, weight: Tensor, bias: Tensor, spec: ConvSpec) -> Result<Conv, LoadError> {
        Conv::new(self.place(weight)?, self.place(bias)?, spec).map_err(|error| self.device_error(error))
    }

    /// Rounds to the data type of the weights and moves to the device. The CPU's matrix products know no bf16 and are
    /// slow in f16, so there the rounded values are kept as f32.
    pub fn place(&self, values: Tensor) -> Result<Tensor, LoadError> {
        let kept = compute_dtype(self.dtype, &self.device);
        values
            .to_dtype(self.dtype)
            .and_then(|tensor| tensor.to_dtype(kept))
            .and_then(|tensor| tensor.to_device(&self.device))
            .map_err(|error| self.device_error(error))
    }

    fn load(&self, name: &str) -> Result<Tensor, LoadError> {
        let tensor = self
            .source
            .load(name, DType::F32, &Device::Cpu)
            .map_err(|error| LoadError::Read { arch: self.arch, error })?;
        // The networks index by the checked shape, so a source that breaks its word is caught here.
        if Some(tensor.dims().to_vec()) != self.source.shape(name) {
            let error = ReadTensorError::new(name, format!("it came with shape {:?}", tensor.dims()));
            return Err(LoadError::Read { arch: self.arch, error });
        }
        Ok(tensor)
    }

    /// A bias of nothing for a layer of this weight.
    fn zeros(&self, weight: &Tensor) -> Result<Tensor, LoadError> {
        let n_out = weight.dim(0).map_err(|error| self.device_error(error))?;
        Tensor::zeros(n_out, DType::F32, &Device::Cpu).map_err(|error| self.device_error(error))
    }

    /// What a failed computation of an architecture's own is told as.
    pub fn device_error(&self, error: candle_core::Error) -> LoadError {
        LoadError::Device { arch: self.arch, error }
    }
}

/// The data type that arithmetic is done in, for weights of `dtype` on `device`.
pub fn compute_dtype(dtype: DType, device: &Device) -> DType {
    if device.is_cpu() { DType::F32 } else { dtype }
}

/// A convolution's weight scaled, and the bias that it gets, so that it does what the batch norm after it would do.
fn fold(weight: &Tensor, norm: [&Tensor; 4], eps: f64) -> candle_core::Result<(Tensor, Tensor)> {
    let shape = weight.shape().clone();
    let mut weight: Vec<f32> = weight.flatten_all()?.to_vec1()?;
    let [gamma, beta, mean, var]: [Vec<f32>; 4] =
        [norm[0].to_vec1()?, norm[1].to_vec1()?, norm[2].to_vec1()?, norm[3].to_vec1()?];
    let mut bias = Vec::with_capacity(gamma.len());
    let n_per_channel = weight.len() / gamma.len();
    for (channel_idx, weights) in weight.chunks_exact_mut(n_per_channel).enumerate() {
        let scale = f64::from(gamma[channel_idx]) / (f64::from(var[channel_idx]) + eps).sqrt();
        bias.push((f64::from(beta[channel_idx]) - f64::from(mean[channel_idx]) * scale) as f32);
        weights.iter_mut().for_each(|weight| *weight = (f64::from(*weight) * scale) as f32);
    }
    Ok((Tensor::from_vec(weight, shape, &Device::Cpu)?, Tensor::new(bias, &Device::Cpu)?))
}
