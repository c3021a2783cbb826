//! A model on the GPU: batches go through it as through a pipeline.

use std::collections::HashSet;
use std::sync::Arc;

use candle_core::Device;
use engine::data::{DType, HeapPool, Tensor};
use engine::node::{Computed, Model, ModelError, Pending, monotonic_ns};

use super::error::model_error;
use super::flight::Flight;
use super::host_memory::LockedPages;
use super::slot::{Slot, Slots};
use super::streams::Streams;

/// Batches under way at once: one being uploaded, one computed, one downloaded.
const N_SLOTS: usize = 3;

/// What a model computes on the device, from its input as it was uploaded.
pub(crate) trait DeviceNetwork: Send {
    /// Enqueues the whole computation on the device of `input`, without waiting for it; gives f32 `[rows, …]`.
    fn forward(&self, input: &candle_core::Tensor) -> Result<candle_core::Tensor, ModelError>;

    /// Numbers in one row of its output.
    fn n_outputs(&self) -> usize;
}

/// A model whose uploads, computations and downloads run side by side, each batch's in that order.
pub(crate) struct CudaModel {
    network: Box<dyn DeviceNetwork>,
    streams: Arc<Streams>,
    locked: Arc<LockedPages>,
    slots: Arc<Slots>,
    alloc: HeapPool,
    /// Shapes that have been computed. The first time, kernels are compiled and memory is asked for.
    warm: HashSet<Vec<usize>>,
}

impl CudaModel {
    /// A model on streams of its own; `build` loads its weights onto the device that it is given. All copies of weights
    /// have been made when this returns.
    pub(super) fn new<E: From<ModelError>>(
        locked: Arc<LockedPages>,
        build: impl FnOnce(&Device) -> Result<Box<dyn DeviceNetwork>, E>,
    ) -> Result<Self, E> {
        let streams = Streams::open().map_err(|error| model_error(&error))?;
        let network = build(&Device::Cuda(streams.device.clone()))?;
        streams.compute.synchronize().map_err(|error| model_error(&error))?;
        let slots = Slots::new(&streams, N_SLOTS).map_err(|error| model_error(&error))?;
        Ok(CudaModel {
            network,
            streams: Arc::new(streams),
            locked,
            slots: Arc::new(slots),
            alloc: HeapPool::new(),
            warm: HashSet::new(),
        })
    }

    /// Hands a batch to the streams.
    fn launch(&self, input: &Tensor) -> Result<Flight, ModelError> {
        self.streams.bind().map_err(|error| model_error(&error))?;
        let mut slot = self.slots.take();
        let started_ns = monotonic_ns();
        match self.enqueue(&mut slot, input) {
            Ok(output) => Ok(Flight {
                slot,
                streams: self.streams.clone(),
                _input: input.clone(),
                output,
                alloc: self.alloc.clone(),
                started_ns,
            }),
            Err(error) => {
                // Copies may be under way from bytes that go back to their owner with this error.
                self.streams.settle();
                if let ModelError::OutOfMemory(_) = error {
                    // If even that fails, the next batch says why.
                    let _ = self.streams.release_unused();
                }
                Err(error)
            }
        }
    }

    fn enqueue(&self, slot: &mut Slot, input: &Tensor) -> Result<candle_core::Tensor, ModelError> {
        let streams = &self.streams;
        let failed = |error: cudarc::driver::DriverError| model_error(&error);
        let pixels = slot.upload(streams, &self.locked, input.bytes(), input.shape())?;
        streams.compute.wait(&slot.marks.uploaded).map_err(failed)?;
        slot.marks.computing.record(&streams.compute).map_err(failed)?;
        let output = self.network.forward(&pixels)?.contiguous().map_err(|error| model_error(&error))?;
        slot.marks.computed.record(&streams.compute).map_err(failed)?;
        streams.download.wait(&slot.marks.computed).map_err(failed)?;
        slot.download(streams, &output)?;
        Ok(output)
    }
}

impl Model for CudaModel {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(self.start(inputs)?.wait()?.outputs)
    }

    fn start(&mut self, inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        let [input] = inputs else {
            return Err(ModelError::Failed(format!("one input is wanted, not {}", inputs.len())));
        };
        if input.dtype() != DType::U8 {
            return Err(ModelError::Failed(format!("pixels are bytes, not {}", input.dtype())));
        }
        // A GPU has no tensors of no elements.
        if input.n_rows() == 0 {
            let nothing = Tensor::from_slice::<f32>(&self.alloc, DType::F32, vec![0, self.network.n_outputs()], &[]);
            return Ok(Box::new(Computed { outputs: vec![nothing], spans: Vec::new() }));
        }
        if !self.warm.contains(input.shape()) {
            // Computed twice, so that what is measured is what every later batch takes.
            self.launch(input)?.land()?;
            self.warm.insert(input.shape().to_vec());
        }
        Ok(Box::new(self.launch(input)?))
    }

    fn slots(&self) -> usize {
        N_SLOTS
    }
}
