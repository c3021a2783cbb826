//! Runs a loaded ONNX model as the engine wants models to run.

use std::sync::Arc;

use engine::data::{Alloc, HeapPool, Tensor};
use engine::node::{Model, ModelError, Pending};

use super::input::{failed, images};
use super::side_by_side::{SLOTS, SideBySide};
use crate::onnx::{Feed, Output, Session};

/// A model on the processor: each row is computed by itself, on one thread.
pub(super) struct OnCpu {
    session: Arc<Session>,
    outputs: Outputs,
    rows: SideBySide,
}

impl OnCpu {
    pub(super) fn new(session: Arc<Session>, outputs: Outputs) -> Self {
        OnCpu { session, outputs, rows: SideBySide::default() }
    }
}

impl Model for OnCpu {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(self.start(inputs)?.wait()?.outputs)
    }

    fn start(&mut self, inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        let (input, [n_rows, height, width]) = images(inputs)?;
        let (session, outputs) = (self.session.clone(), self.outputs.clone());
        let row = move |row_idx| {
            let pixels = &input.bytes()[row_idx * input.row_bytes()..][..input.row_bytes()];
            session.run(Feed::Pixels(pixels), [1, height, width, 3]).map_err(|error| failed(&error))
        };
        Ok(self.rows.start(n_rows, row, move |rows| outputs.joined(&rows)))
    }

    fn slots(&self) -> usize {
        SLOTS
    }
}

/// A model on a GPU: a batch is one call.
#[cfg(feature = "cuda")]
pub(super) struct OnGpu {
    session: Session,
    outputs: Outputs,
}

#[cfg(feature = "cuda")]
impl OnGpu {
    pub(super) fn new(session: Session, outputs: Outputs) -> Self {
        OnGpu { session, outputs }
    }
}

#[cfg(feature = "cuda")]
impl Model for OnGpu {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let (input, [n_rows, height, width]) = images(inputs)?;
        let outputs = self.session.run(Feed::Pixels(input.bytes()), [n_rows, height, width, 3]);
        self.outputs.whole(outputs.map_err(|error| gpu_error(error.to_string()))?, n_rows)
    }
}

/// Makes tensors of what ONNX Runtime gave.
#[derive(Clone)]
pub(super) struct Outputs {
    names: Vec<String>,
    alloc: HeapPool,
}

impl Outputs {
    pub(super) fn new(names: Vec<String>) -> Self {
        Outputs { names, alloc: HeapPool::new() }
    }

    /// Those of a batch that was computed in one call.
    #[cfg(feature = "cuda")]
    fn whole(&self, outputs: Vec<Output>, n_rows: usize) -> Result<Vec<Tensor>, ModelError> {
        let tensor = |(output, name): (Output, &String)| {
            if output.shape.first() != Some(&n_rows) {
                let shape = &output.shape;
                return Err(failed(&format_args!(
                    "`{name}` is {shape:?} for {n_rows} images: its first dimension has to be that"
                )));
            }
            Ok(Tensor::from_slice(&self.alloc, output.dtype, output.shape, &output.bytes))
        };
        outputs.into_iter().zip(&self.names).map(tensor).collect()
    }

    /// Those of rows that were computed one by one.
    fn joined(&self, rows: &[Vec<Output>]) -> Result<Vec<Tensor>, ModelError> {
        (0..self.names.len()).map(|place| self.column(place, rows)).collect()
    }

    fn column(&self, place: usize, rows: &[Vec<Output>]) -> Result<Tensor, ModelError> {
        let name = &self.names[place];
        let Some(first) = rows.first().map(|first| &first[place]) else { return Err(failed(&"a batch of no rows")) };
        let n_bytes = first.bytes.len();
        let mut buffer = self.alloc.alloc(rows.len() * n_bytes);
        for (row, into) in rows.iter().zip(buffer.bytes_mut().chunks_exact_mut(n_bytes.max(1))) {
            let output = &row[place];
            if output.shape.first() != Some(&1) {
                let shape = &output.shape;
                return Err(failed(&format_args!(
                    "`{name}` is {shape:?} for one image: its first dimension has to be 1"
                )));
            }
            if output.shape != first.shape {
                let (a, b) = (&first.shape, &output.shape);
                return Err(failed(&format_args!("`{name}` is {a:?} for one image and {b:?} for another")));
            }
            into.copy_from_slice(&output.bytes);
        }
        let mut shape = first.shape.clone();
        shape[0] = rows.len();
        Ok(Tensor::new(first.dtype, shape, buffer.freeze()))
    }
}

/// What a failure on a GPU means. ONNX Runtime has one code for all, so its words have to tell.
#[cfg(any(feature = "cuda", test))]
fn gpu_error(message: String) -> ModelError {
    let says = |words: &str| message.contains(words);
    if says("out of memory") || says("Failed to allocate memory") || says("CUBLAS_STATUS_ALLOC_FAILED") {
        return ModelError::OutOfMemory(message);
    }
    // Whatever else CUDA fails with, all further calls of the process fail with too.
    if says("CUDA failure") || says("CUDNN failure") || says("CUBLAS failure") {
        return ModelError::DeviceLost(message);
    }
    ModelError::Failed(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_on_a_gpu_is_told_by_its_words() {
        // As ONNX Runtime 1.32 writes them: onnxruntime/core/framework/bfc_arena.cc, providers/cuda/cuda_call.cc.
        let arena = "Failed to allocate memory for requested buffer of size 1073741824";
        assert!(matches!(gpu_error(arena.to_owned()), ModelError::OutOfMemory(_)));
        let driver =
            "CUDA failure 2: out of memory ; GPU=0 ; hostname=x ; file=a.cc ; line=1 ; expr=cudaMalloc(p, size);";
        assert!(matches!(gpu_error(driver.to_owned()), ModelError::OutOfMemory(_)));
        let lost = "CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=x";
        assert!(matches!(gpu_error(lost.to_owned()), ModelError::DeviceLost(_)));
        let shape = "Got invalid dimensions for input: input for the following indices";
        assert!(matches!(gpu_error(shape.to_owned()), ModelError::Failed(_)));
    }
}
