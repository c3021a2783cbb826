//! A batch under way on the device.

use std::sync::Arc;

use engine::data::{DType, HeapPool, Tensor};
use engine::node::{Computed, ModelError, Pending, monotonic_ns};

use super::error::model_error;
use super::slot::Taken;
use super::streams::Streams;
use super::timing::spans;

/// A batch of which everything has been handed to the streams. It keeps what they work on: the host's bytes, the slot
/// and the output on the device.
pub(super) struct Flight {
    pub(super) slot: Taken,
    pub(super) streams: Arc<Streams>,
    /// Read by the upload stream.
    pub(super) _input: Tensor,
    /// Read by the download stream, and freed on the compute stream.
    pub(super) output: candle_core::Tensor,
    pub(super) alloc: HeapPool,
    pub(super) started_ns: u64,
}

impl Flight {
    /// Waits for the last mark.
    pub(super) fn land(&self) -> Result<(), ModelError> {
        self.streams.bind().map_err(|error| model_error(&error))?;
        self.slot.marks.downloaded.synchronize().map_err(|error| model_error(&error))
    }

    fn computed(&self) -> Result<Computed, ModelError> {
        self.land()?;
        let ended_ns = monotonic_ns();
        let n_values = self.output.elem_count();
        let values = self.slot.values(n_values).map_err(|error| model_error(&error))?;
        let shape = self.output.dims().to_vec();
        let outputs = vec![Tensor::from_slice(&self.alloc, DType::F32, shape, values)];
        let elapsed_ms = self.slot.marks.elapsed_ms().map_err(|error| model_error(&error))?;
        Ok(Computed { outputs, spans: spans(elapsed_ms, self.started_ns, ended_ns) })
    }
}

impl Pending for Flight {
    fn wait(self: Box<Self>) -> Result<Computed, ModelError> {
        self.computed()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Also if nobody waited for the batch, or in vain: the slot and the bytes go back only when no stream works on
        // them. A GPU that fails does not.
        let _ = self.land();
    }
}
