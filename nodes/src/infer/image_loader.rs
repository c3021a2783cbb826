//! Loads an image model, and runs it as the engine wants models to run.

#[cfg(feature = "cuda")]
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use candle_core::Device;
use engine::data::{DType, HeapPool, Tensor};
use engine::node::{Fault, LoadModel, Model, ModelError, Pending};

use super::input::{failed, images};
use super::model_ref::Resolved;
use super::side_by_side::{SLOTS, SideBySide};
#[cfg(feature = "cuda")]
use crate::cuda::{CudaDevice, ImageNetwork, load_fault};
#[cfg(not(feature = "cuda"))]
use crate::models::LoadError;
use crate::models::{ImageModel, Length, Normalize, Outputs};
use crate::weights;

/// What to load and how to run it. All instances share one copy of the weights.
pub(super) struct ImageLoader {
    resolved: Resolved,
    dtype: candle_core::DType,
    normalize: Normalize,
    outputs: Outputs,
    length: Length,
    loaded: Mutex<Option<Arc<ImageModel>>>,
}

impl ImageLoader {
    pub(super) fn new(
        resolved: Resolved,
        dtype: candle_core::DType,
        normalize: Normalize,
        (outputs, length): (Outputs, Length),
    ) -> Self {
        ImageLoader { resolved, dtype, normalize, outputs, length, loaded: Mutex::new(None) }
    }

    fn read(&self, device: &Device) -> Result<ImageModel, Fault> {
        let Resolved { arch, n_classes, values, .. } = &self.resolved;
        let source = values.open(&**arch, *n_classes).map_err(|error| Fault::permanent(error.to_string()))?;
        let model = ImageModel::load(arch.clone(), &*source, self.dtype, device);
        let model = model.map_err(|error| load_fault(&error))?.with_length(self.length);
        drop(source);
        weights::give_back();
        Ok(model)
    }
}

impl fmt::Debug for ImageLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ImageLoader({}, {:?})", self.resolved.arch.name(), self.resolved.values)
    }
}

impl LoadModel for ImageLoader {
    fn load(&self) -> Result<Box<dyn Model>, Fault> {
        // Instances load side by side: the first reads, the others wait for it.
        let mut loaded = self.loaded.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let model = match &*loaded {
            Some(model) => model.clone(),
            None => loaded.insert(Arc::new(self.read(&Device::Cpu)?)).clone(),
        };
        let (rows, alloc) = (SideBySide::default(), HeapPool::new());
        Ok(Box::new(Runner { model, normalize: self.normalize, outputs: self.outputs, rows, alloc }))
    }

    #[cfg(feature = "cuda")]
    fn load_on(&self, device: &dyn Any) -> Result<Box<dyn Model>, Fault> {
        let Some(device) = device.downcast_ref::<CudaDevice>() else {
            return Err(Fault::bug("a device of another kind than the ones that this model knows"));
        };
        // Streams cannot share tensors, so each instance has weights of its own.
        device.place(|on| {
            let network = ImageNetwork::new(self.read(on)?, self.normalize, self.dtype, self.outputs, on);
            Ok(Box::new(network.map_err(|error| load_fault(&error))?))
        })
    }
}

/// A fault of loading.
#[cfg(not(feature = "cuda"))]
fn load_fault(error: &LoadError) -> Fault {
    Fault::permanent(error.to_string())
}

struct Runner {
    model: Arc<ImageModel>,
    normalize: Normalize,
    outputs: Outputs,
    rows: SideBySide,
    alloc: HeapPool,
}

impl Model for Runner {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(self.start(inputs)?.wait()?.outputs)
    }

    fn start(&mut self, inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        let (input, [n_rows, height, width]) = images(inputs)?;
        let (model, normalize, outputs) = (self.model.clone(), self.normalize, self.outputs);
        let row = move |row_idx| {
            let pixels = &input.bytes()[row_idx * input.row_bytes()..][..input.row_bytes()];
            let image = normalize.to_tensor(pixels, 1, height, width).map_err(|error| failed(&error))?;
            let row = model.forward(&image, outputs).map_err(|error| failed(&error))?;
            row.flatten_all().and_then(|row| row.to_vec1::<f32>()).map_err(|error| failed(&error))
        };
        let (n_outputs, alloc) = (self.model.n_outputs(outputs), self.alloc.clone());
        let join = move |rows: Vec<Vec<f32>>| {
            Ok(vec![Tensor::from_slice(&alloc, DType::F32, vec![n_rows, n_outputs], &rows.concat())])
        };
        Ok(self.rows.start(n_rows, row, join))
    }

    fn slots(&self) -> usize {
        SLOTS
    }
}
