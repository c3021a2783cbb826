//! A loaded model: an architecture, its network, and the rules for what may go in.
//!
//! Promises that on a CPU a row's bits depend on that row alone: rows are computed one by one, in parallel on the
//! rayon pool that the caller installed. On other devices the whole batch is one call, and the caller pads it.

use candle_core::{DType, Device, Tensor};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{
    arch::{Arch, ArchRef, InputSize},
    load::{self, LoadError},
    network::{Network, Outputs},
    params::TensorSource,
    reader::{ParamReader, compute_dtype},
};

/// An architecture with weights, ready to run. Cheap to share behind an `Arc`.
pub struct ImageModel {
    arch: ArchRef,
    n_classes: usize,
    dtype: DType,
    device: Device,
    network: Box<dyn Network>,
    length: Length,
}

/// What becomes of the length of a row of output, by Euclid's measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Length {
    /// It stays as the network gives it.
    #[default]
    Kept,
    /// Rows are divided by it, so that it is one: dot products of two rows are cosines.
    One,
}

/// The least that a row is divided by, so that one of zeros stays as it is.
const LEAST_LENGTH: f64 = 1e-12;

/// A batch could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The input is no batch of images at all.
    #[error("`{arch}` takes images as [rows, 3, height, width], found {found:?}")]
    Shape {
        /// The architecture.
        arch: &'static str,
        /// The shape that came.
        found: Vec<usize>,
    },
    /// The images have a size that the network cannot take.
    #[error("`{arch}` takes images of {wanted}, found {height}×{width}")]
    Size {
        /// The architecture.
        arch: &'static str,
        /// Height of the images that came.
        height: usize,
        /// Width of the images that came.
        width: usize,
        /// What the network takes.
        wanted: InputSize,
    },
    /// The network does not give that.
    #[error("`{arch}` gives no {}", .wanted.name())]
    Outputs {
        /// The architecture.
        arch: &'static str,
        /// What was asked for.
        wanted: Outputs,
    },
    /// The computation failed.
    #[error("`{arch}`: {error}")]
    Compute {
        /// The architecture.
        arch: &'static str,
        /// What failed.
        #[source]
        error: candle_core::Error,
    },
}

impl ImageModel {
    /// Loads `arch` from `source`: weights rounded to `dtype`, on `device`.
    pub fn load(
        arch: impl Into<ArchRef>,
        source: &dyn TensorSource,
        dtype: DType,
        device: &Device,
    ) -> Result<Self, LoadError> {
        let arch = arch.into();
        let checked = load::check(&*arch, source)?;
        let network = arch.build(&ParamReader::new(&*arch, source, checked, dtype, device))?;
        let length = Length::Kept;
        Ok(Self { arch, n_classes: checked.n_classes, dtype, device: device.clone(), network, length })
    }

    /// The same, with rows of output of this length.
    pub fn with_length(self, length: Length) -> Self {
        Self { length, ..self }
    }

    /// The architecture.
    pub fn arch(&self) -> &dyn Arch {
        &*self.arch
    }

    /// How many classes the weights tell apart.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The length of one row of output.
    pub fn n_outputs(&self, outputs: Outputs) -> usize {
        match outputs {
            Outputs::Logits => self.n_classes,
            Outputs::Features => self.arch.n_features(),
        }
    }

    /// Runs normalised images `[rows, 3, height, width]` of any float type; gives f32 `[rows, n_outputs]`.
    pub fn forward(&self, images: &Tensor, outputs: Outputs) -> Result<Tensor, ForwardError> {
        let arch = self.arch.name();
        let &[n_rows, 3, height, width] = images.dims() else {
            return Err(ForwardError::Shape { arch, found: images.dims().to_vec() });
        };
        self.check(height, width, outputs)?;
        let rows = if self.device.is_cpu() {
            self.side_by_side(images, n_rows, outputs)
        } else {
            self.together(images, n_rows, outputs)
        };
        rows.map_err(|error| ForwardError::Compute { arch, error })
    }

    fn check(&self, height: usize, width: usize, outputs: Outputs) -> Result<(), ForwardError> {
        let (arch, wanted) = (self.arch.name(), self.arch.input_size());
        if !wanted.admits(height, width) {
            return Err(ForwardError::Size { arch, height, width, wanted });
        }
        if !self.arch.outputs().contains(&outputs) {
            return Err(ForwardError::Outputs { arch, wanted: outputs });
        }
        Ok(())
    }

    fn side_by_side(&self, images: &Tensor, n_rows: usize, outputs: Outputs) -> candle_core::Result<Tensor> {
        let row = |row_idx| self.network.forward(&images.narrow(0, row_idx, 1)?.to_dtype(DType::F32)?, outputs);
        // One row is computed where it is asked for.
        let rows = match n_rows {
            0 => return self.no_rows(outputs),
            1 => row(0)?,
            _ => Tensor::cat(&(0..n_rows).into_par_iter().map(row).collect::<candle_core::Result<Vec<_>>>()?, 0)?,
        };
        self.finished(rows)
    }

    fn together(&self, images: &Tensor, n_rows: usize, outputs: Outputs) -> candle_core::Result<Tensor> {
        if n_rows == 0 {
            return self.no_rows(outputs);
        }
        let images = images.to_device(&self.device)?.to_dtype(compute_dtype(self.dtype, &self.device))?.contiguous()?;
        self.finished(self.network.forward(&images, outputs)?)
    }

    fn no_rows(&self, outputs: Outputs) -> candle_core::Result<Tensor> {
        Tensor::zeros((0, self.n_outputs(outputs)), DType::F32, &self.device)
    }

    fn finished(&self, rows: Tensor) -> candle_core::Result<Tensor> {
        let rows = rows.to_dtype(DType::F32)?;
        match self.length {
            Length::Kept => Ok(rows),
            Length::One => to_unit_length(rows),
        }
    }
}

/// Divides each row of f32 by its length.
fn to_unit_length(rows: Tensor) -> candle_core::Result<Tensor> {
    if !rows.device().is_cpu() {
        let lengths = rows.sqr()?.sum_keepdim(1)?.sqrt()?.maximum(LEAST_LENGTH)?;
        return rows.broadcast_div(&lengths);
    }
    let (n_rows, n_values) = rows.dims2()?;
    let mut values = rows.flatten_all()?.to_vec1::<f32>()?;
    for row in values.chunks_exact_mut(n_values.max(1)) {
        let length = row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt().max(LEAST_LENGTH);
        row.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
    Tensor::from_vec(values, (n_rows, n_values), &Device::Cpu)
}

impl std::fmt::Debug for ImageModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageModel")
            .field("arch", &self.arch.name())
            .field("n_classes", &self.n_classes)
            .field("dtype", &self.dtype)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
