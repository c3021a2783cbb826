//! An image model on the GPU, with the normalisation of its pixels before it.

use candle_core::{DType, Device, Tensor};
use engine::node::ModelError;

use super::error::model_error;
use super::model::DeviceNetwork;
use super::ops::planes;
use crate::models::{ImageModel, Normalize, Outputs};

/// From pixels as bytes, a quarter of what numbers would take on the way to the GPU, to what is read off the model.
pub(crate) struct ImageNetwork {
    model: ImageModel,
    /// What each byte becomes in each channel: the same numbers as on the CPU.
    tables: Tensor,
    dtype: DType,
    outputs: Outputs,
}

impl ImageNetwork {
    /// `model` was loaded onto `device` with weights of `dtype`.
    pub(crate) fn new(
        model: ImageModel,
        normalize: Normalize,
        dtype: DType,
        outputs: Outputs,
        device: &Device,
    ) -> candle_core::Result<Self> {
        let tables = Tensor::from_slice(normalize.tables().as_flattened(), (3, 256), device)?;
        Ok(ImageNetwork { model, tables, dtype, outputs })
    }
}

impl DeviceNetwork for ImageNetwork {
    fn forward(&self, pixels: &Tensor) -> Result<Tensor, ModelError> {
        let images = planes(pixels, &self.tables, self.dtype).map_err(|error| model_error(&error))?;
        self.model.forward(&images, self.outputs).map_err(|error| model_error(&error))
    }

    fn n_outputs(&self) -> usize {
        self.model.n_outputs(self.outputs)
    }
}
