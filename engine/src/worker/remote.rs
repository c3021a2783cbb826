//! A model in worker processes, behind the seam that the runtime knows.

use std::sync::Arc;

use crossbeam_channel::Receiver;

use super::arena::Arena;
use super::fleet::Shared;
use super::{AtWork, Done, Executor, Job, JobId};
use crate::data::{Alloc, Tensor};
use crate::node::Fault;

/// One model of a [`super::Fleet`]. All workers that hold it pull its jobs from one queue.
pub struct Remote {
    shared: Arc<Shared>,
    model: usize,
    done: Receiver<Done>,
    /// For inputs that do not lie in shared memory yet.
    staging: Arena,
}

impl Remote {
    pub(super) fn new(shared: Arc<Shared>, model: usize, done: Receiver<Done>, staging: Arena) -> Self {
        Remote { shared, model, done, staging }
    }

    /// The tensor in memory that the workers can map: itself if it lies there, else a copy.
    fn placed(&self, tensor: Tensor) -> Result<Tensor, Fault> {
        if tensor.shared().is_some_and(|at| self.shared.knows(at.arena)) {
            return Ok(tensor);
        }
        let bytes = tensor.bytes();
        let Some(mut buffer) = self.staging.try_alloc(bytes.len()) else {
            let message = format!("there is no shared memory for a batch of {} bytes", bytes.len());
            return Err(Fault::transient(message).help("make the batch smaller, or give the run more memory"));
        };
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(Tensor::new(tensor.dtype(), tensor.shape().to_vec(), buffer.freeze()))
    }
}

impl Executor for Remote {
    fn alloc(&self) -> &dyn Alloc {
        &self.staging
    }

    fn capacity(&self) -> usize {
        self.shared.lock().dispatch.capacity(self.model)
    }

    fn submit(&mut self, job: Job) -> Result<(), Fault> {
        let inputs = job.inputs.into_iter().map(|input| self.placed(input)).collect::<Result<Vec<_>, _>>()?;
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        self.shared.change(|state, now| state.dispatch.submit(self.model, Job { inputs, ..job }, now));
        Ok(())
    }

    fn completions(&self) -> &Receiver<Done> {
        &self.done
    }

    fn at_work(&self) -> Option<Arc<dyn AtWork>> {
        Some(Arc::new(OfFleet { shared: self.shared.clone(), model: self.model }))
    }

    fn fault(&self) -> Option<Fault> {
        self.shared.lock().fault(self.model)
    }

    fn cancel(&mut self) {
        self.shared.change(|state, _| state.dispatch.cancel(self.model));
    }
}

/// Asks the fleet.
struct OfFleet {
    shared: Arc<Shared>,
    model: usize,
}

impl AtWork for OfFleet {
    fn worker_of(&self, id: JobId) -> Option<usize> {
        self.shared.lock().dispatch.worker_of(self.model, id)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.cancel();
    }
}
