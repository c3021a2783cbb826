//! A loaded model: an architecture, its network, and the rules for what may go in.
//!
//! Promises that on a CPU a row's bits depend on that row alone: rows are computed one by one, in parallel on the
//! rayon pool that the caller installed. On other devices the whole batch is one call, and the caller pads it.

use candle_core::{DType, Device, Tensor};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{
    arch::{Arch, InputSize},
    load::{self, LoadError},
    network::{Network, Outputs},
    params::TensorSource,
    reader::{ParamReader, compute_dtype},
};

/// An architecture with weights, ready to run. Cheap to share behind an `Arc`.
pub struct ImageModel {
    arch: &'static dyn Arch,
    n_classes: usize,
    dtype: DType,
    device: Device,
    network: Box<dyn Network>,
}

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
        arch: &'static dyn Arch,
        source: &dyn TensorSource,
        dtype: DType,
        device: &Device,
    ) -> Result<Self, LoadError> {
        let checked = load::check(arch, source)?;
        let reader = ParamReader::new(arch, source, checked, dtype, device);
        let network = arch.build(&reader)?;
        Ok(Self { arch, n_classes: checked.n_classes, dtype, device: device.clone(), network })
    }

    /// The architecture.
    pub fn arch(&self) -> &'static dyn Arch {
        self.arch
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
        let wanted = self.arch.input_size();
        if !wanted.admits(height, width) {
            return Err(ForwardError::Size { arch, height, width, wanted });
        }
        self.compute(images, n_rows, outputs).map_err(|error| ForwardError::Compute { arch, error })
    }

    fn compute(&self, images: &Tensor, n_rows: usize, outputs: Outputs) -> candle_core::Result<Tensor> {
        if n_rows == 0 {
            return Tensor::zeros((0, self.n_outputs(outputs)), DType::F32, images.device());
        }
        let images = images.to_device(&self.device)?.to_dtype(compute_dtype(self.dtype, &self.device))?.contiguous()?;
        let rows = if self.device.is_cpu() {
            let rows = (0..n_rows)
                .into_par_iter()
                .map(|row_idx| self.network.forward(&images.narrow(0, row_idx, 1)?, outputs))
                .collect::<candle_core::Result<Vec<_>>>()?;
            Tensor::cat(&rows, 0)?
        } else {
            self.network.forward(&images, outputs)?
        };
        rows.to_dtype(DType::F32)
    }
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
