//! What one batch needs on the device and of locked memory while it is under way, kept for the next.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use candle_core::op::BackpropOp;
use candle_core::{CudaStorage, Storage, Tensor};
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, DevicePtr, DriverError};

use super::error::model_error;
use super::host_memory::{LockedPages, Staging};
use super::streams::{Marks, Streams};
use engine::node::ModelError;

/// One slot's memory and marks. Buffers grow to the largest batch that came.
pub(super) struct Slot {
    input: Option<Input>,
    staging: Option<Staging<u8>>,
    output: Option<Staging<f32>>,
    pub(super) marks: Marks,
    /// That the input's memory is there, told to the upload stream by the compute stream that it was allocated on.
    allocated: CudaEvent,
}

/// A batch's bytes on the device.
struct Input {
    /// All of the memory, as bytes in one dimension.
    bytes: Tensor,
    address: CUdeviceptr,
}

impl Slot {
    pub(super) fn new(streams: &Streams) -> Result<Self, DriverError> {
        let allocated = streams.context.new_event(None)?;
        Ok(Slot { input: None, staging: None, output: None, marks: Marks::new(&streams.context)?, allocated })
    }

    /// Begins to copy `bytes` to the device, from where they lie if their pages are locked, from memory that is
    /// otherwise; gives them as a tensor of `shape`, which the upload stream has written when its next mark is passed.
    /// The caller keeps `bytes` until then.
    pub(super) fn upload(
        &mut self,
        streams: &Streams,
        locked: &LockedPages,
        bytes: &[u8],
        shape: &[usize],
    ) -> Result<Tensor, ModelError> {
        let input = match self.input.take() {
            Some(input) if input.bytes.elem_count() >= bytes.len() => self.input.insert(input),
            // The smaller one is freed first.
            smaller => {
                drop(smaller);
                self.input.insert(Input::new(streams, bytes.len(), &self.allocated)?)
            }
        };
        let from = if locked.holds(bytes) {
            bytes
        } else {
            let staging = match self.staging.take() {
                Some(staging) if staging.len() >= bytes.len() => self.staging.insert(staging),
                _ => self.staging.insert(Staging::new(&streams.context, bytes.len()).map_err(|e| model_error(&e))?),
            };
            let room = staging.as_mut_slice().map_err(|error| model_error(&error))?;
            room[..bytes.len()].copy_from_slice(bytes);
            &staging.as_slice().map_err(|error| model_error(&error))?[..bytes.len()]
        };
        self.marks.uploading.record(&streams.upload).map_err(|error| model_error(&error))?;
        // SAFETY: the input has room, and the upload stream waits for its allocation. The bytes are the slot's, which is
        // not used again before the copy is done, or the caller's, who keeps them.
        unsafe { streams.copy_in(from, input.address) }.map_err(|error| model_error(&error))?;
        self.marks.uploaded.record(&streams.upload).map_err(|error| model_error(&error))?;
        let used = input.bytes.narrow(0, 0, bytes.len()).and_then(|used| used.reshape(shape));
        used.map_err(|error| model_error(&error))
    }

    /// Begins to copy `values`, f32 and contiguous, to the host. The caller keeps them until the last mark is passed.
    pub(super) fn download(&mut self, streams: &Streams, values: &Tensor) -> Result<(), ModelError> {
        let n_values = values.elem_count();
        let output = match self.output.take() {
            Some(output) if output.len() >= n_values => self.output.insert(output),
            _ => self.output.insert(Staging::new(&streams.context, n_values).map_err(|error| model_error(&error))?),
        };
        let address = address_of(values, streams).map_err(|error| model_error(&error))?;
        let room = &mut output.as_mut_slice().map_err(|error| model_error(&error))?[..n_values];
        self.marks.downloading.record(&streams.download).map_err(|error| model_error(&error))?;
        // SAFETY: the device has this many values at the address, kept by the caller; the slot keeps the room, which is
        // read only once the last mark has been waited for.
        unsafe { streams.copy_out(address, room) }.map_err(|error| model_error(&error))?;
        self.marks.downloaded.record(&streams.download).map_err(|error| model_error(&error))
    }

    /// The first `n_values` of what was copied to the host. The last mark has been waited for.
    pub(super) fn values(&self, n_values: usize) -> Result<&[f32], DriverError> {
        match &self.output {
            Some(output) => Ok(&output.as_slice()?[..n_values]),
            None => Ok(&[]),
        }
    }
}

impl Input {
    fn new(streams: &Streams, n_bytes: usize, allocated: &CudaEvent) -> Result<Self, ModelError> {
        // A slot that came back is written anew, so its content does not matter; zeros are the safe way to get memory.
        let slice = streams.device.alloc_zeros::<u8>(n_bytes).map_err(|error| model_error(&error))?;
        allocated.record(&streams.compute).map_err(|error| model_error(&error))?;
        streams.upload.wait(allocated).map_err(|error| model_error(&error))?;
        let address = slice.device_ptr(&streams.compute).0;
        let storage = Storage::Cuda(CudaStorage::wrap_cuda_slice(slice, streams.device.clone()));
        let bytes = Tensor::from_storage(storage, n_bytes, BackpropOp::none(), false);
        Ok(Input { bytes, address })
    }
}

fn address_of(values: &Tensor, streams: &Streams) -> candle_core::Result<CUdeviceptr> {
    let (storage, layout) = values.storage_and_layout();
    let (Storage::Cuda(storage), Some((start, end))) = (&*storage, layout.contiguous_offsets()) else {
        candle_core::bail!("the model's output is not on the GPU or not contiguous");
    };
    Ok(storage.as_cuda_slice::<f32>()?.slice(start..end).device_ptr(&streams.download).0)
}

/// The slots of one model that no batch has.
pub(super) struct Slots {
    free: Mutex<Vec<Slot>>,
    returned: Condvar,
}

impl Slots {
    pub(super) fn new(streams: &Streams, n: usize) -> Result<Self, DriverError> {
        let free = (0..n).map(|_| Slot::new(streams)).collect::<Result<_, _>>()?;
        Ok(Slots { free: Mutex::new(free), returned: Condvar::new() })
    }

    /// A free slot; waits for one where more batches are under way than there are slots.
    pub(super) fn take(self: &Arc<Self>) -> Taken {
        let mut free = self.free();
        loop {
            if let Some(slot) = free.pop() {
                return Taken { slot: Some(slot), slots: self.clone() };
            }
            free = self.returned.wait(free).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.free.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A slot in use. Whoever drops it has seen to it that no stream works on it any more.
pub(super) struct Taken {
    slot: Option<Slot>,
    slots: Arc<Slots>,
}

impl std::ops::Deref for Taken {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        self.slot.as_ref().expect("there until it is dropped")
    }
}

impl std::ops::DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Slot {
        self.slot.as_mut().expect("there until it is dropped")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.slots.free().push(slot);
            self.slots.returned.notify_one();
        }
    }
}
