//! A matrix product with a bias and an activation.

use candle_core::{DType, Device, Result, Tensor, bail};

use super::{
    Activation, add_and_activate,
    matrix::{Finish, Matrix, Plain},
    parameter::Parameter,
    values::with_values,
};

/// A linear layer over the last dimension.
#[derive(Debug, Clone)]
pub struct Linear {
    weight: Weight,
    bias: Parameter,
    activation: Activation,
}

#[derive(Debug, Clone)]
enum Weight {
    /// On the CPU.
    Packed(Matrix),
    /// Elsewhere: `[in, out]`, a view of the stored `[out, in]`.
    Tensor(Tensor),
}

impl Linear {
    /// A layer of a weight `[out, in]` and a bias `[out]` that were checked against the architecture.
    pub fn new(weight: Tensor, bias: Tensor, activation: Activation) -> Result<Self> {
        let (n_out, n_in) = weight.dims2()?;
        if bias.dims() != [n_out] {
            bail!("a linear layer of weight {:?} and bias {:?}", weight.dims(), bias.dims());
        }
        let weight = if weight.device().is_cpu() {
            with_values(&weight.to_dtype(DType::F32)?, |values| {
                Ok(Weight::Packed(Matrix::new([n_in, n_out], |place, out| values[out * n_in + place])))
            })?
        } else {
            Weight::Tensor(weight.t()?)
        };
        Ok(Self { weight, bias: Parameter::new(&bias)?, activation })
    }

    /// Runs over `[…, in]`; the output is a new tensor that nothing else shares.
    pub fn forward(&self, values: &Tensor) -> Result<Tensor> {
        match &self.weight {
            Weight::Packed(matrix) => self.multiply(matrix, values, None),
            Weight::Tensor(weight) => self.forward_elsewhere(weight, values),
        }
    }

    /// The same, with `added`, which has the output's shape, added before the activation.
    pub fn forward_and_add(&self, values: &Tensor, added: &Tensor) -> Result<Tensor> {
        match &self.weight {
            Weight::Packed(matrix) => self.multiply(matrix, values, Some(added)),
            Weight::Tensor(weight) if self.activation == Activation::Identity => {
                add_and_activate(self.forward_elsewhere(weight, values)?, added, Activation::Identity)
            }
            Weight::Tensor(_) => bail!("something added before an activation"),
        }
    }

    fn multiply(&self, matrix: &Matrix, values: &Tensor, added: Option<&Tensor>) -> Result<Tensor> {
        let (n_in, n_out) = (matrix.n_summed(), matrix.n_columns());
        let mut shape = values.dims().to_vec();
        match shape.last_mut() {
            Some(last) if *last == n_in => *last = n_out,
            _ => bail!("a linear layer of {n_in} over {:?}", values.dims()),
        }
        if let Some(added) = added
            && added.dims() != shape
        {
            bail!("{shape:?} joined by {:?}", added.dims());
        }
        let mut out = vec![0.0_f32; shape.iter().product()];
        with_values(values, |values| {
            let rows = Plain { values, n_summed: n_in, stride: n_in };
            let mut compute = |added: Option<&[f32]>| {
                let finish = Finish { bias: self.bias.host(), added, activation: self.activation };
                matrix.multiply(&rows, finish, &mut out);
                Ok(())
            };
            match added {
                Some(added) => with_values(added, |added| compute(Some(added))),
                None => compute(None),
            }
        })?;
        Tensor::from_vec(out, shape, &Device::Cpu)
    }

    fn forward_elsewhere(&self, weight: &Tensor, values: &Tensor) -> Result<Tensor> {
        let (n_in, n_out) = weight.dims2()?;
        let mut shape = values.dims().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = n_out;
        }
        let sums = values.reshape(((), n_in))?.matmul(weight)?;
        #[cfg(feature = "cuda")]
        if sums.device().is_cuda() {
            use super::on_cuda::{Along, BiasActivation};

            let (bias, activation) = (&self.bias, self.activation);
            sums.inplace_op1(&BiasActivation { bias, along: Along::Columns, activation })?;
            return sums.reshape(shape);
        }
        self.activation.apply(&sums.broadcast_add(self.bias.tensor())?)?.reshape(shape)
    }
}
