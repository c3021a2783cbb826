//! Loads an ONNX model, and runs it as the engine wants models to run.

#[cfg(feature = "cuda")]
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use engine::data::{Alloc, HeapPool, Tensor};
#[cfg(feature = "cuda")]
use engine::node::{Computed, Span, SpanStage, monotonic_ns};
use engine::node::{Fault, LoadModel, Model, ModelError, Pending};

use super::GpuProvider;
use super::image_loader::{failed, images};
use super::onnx_model::Fitted;
use super::side_by_side::{self, SideBySide};
#[cfg(feature = "cuda")]
use crate::cuda::CudaDevice;
use crate::onnx::{Feed, HELP, OnnxError, Output, Provider, Session};
use crate::weights;

/// What to load and how to run it. All instances on the processor share it.
pub(super) struct OnnxLoader {
    path: PathBuf,
    fitted: Fitted,
    /// What computes on a GPU.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "this program has no GPUs"))]
    provider: GpuProvider,
    loaded: Mutex<Option<Arc<Session>>>,
}

impl OnnxLoader {
    pub(super) fn new(path: PathBuf, fitted: Fitted, provider: GpuProvider) -> Self {
        OnnxLoader { path, fitted, provider, loaded: Mutex::new(None) }
    }

    fn runner(&self, session: Arc<Session>, rows: Rows) -> Box<dyn Model> {
        let names = self.fitted.outputs.iter().map(|output| output.name.clone()).collect();
        Box::new(Runner { session, rows, outputs: Outputs { names, alloc: HeapPool::new() } })
    }

    fn open(&self, provider: &Provider) -> Result<Session, Fault> {
        let Fitted { input, prefix, outputs, .. } = &self.fitted;
        let outputs = outputs.iter().map(|output| output.name.clone()).collect();
        let session = Session::load(&self.path, Some(*prefix), input, outputs, provider).map_err(|error| {
            let fault = Fault::permanent(error.to_string());
            if matches!(error, OnnxError::NoLibrary(_)) { fault.help(HELP) } else { fault }
        })?;
        weights::give_back();
        Ok(session)
    }
}

impl fmt::Debug for OnnxLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnnxLoader({})", self.path.display())
    }
}

impl LoadModel for OnnxLoader {
    fn load(&self) -> Result<Box<dyn Model>, Fault> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match &*loaded {
            Some(session) => session.clone(),
            None => loaded.insert(Arc::new(self.open(&Provider::Cpu)?)).clone(),
        };
        Ok(self.runner(session, Rows::EachAlone(SideBySide::default())))
    }

    #[cfg(feature = "cuda")]
    fn load_on(&self, device: &dyn Any) -> Result<Box<dyn Model>, Fault> {
        if device.downcast_ref::<CudaDevice>().is_none() {
            return Err(Fault::bug("a device of another kind than the ones that this model knows"));
        }
        let provider = match self.provider {
            GpuProvider::Cuda => Provider::Cuda,
            GpuProvider::Tensorrt => {
                let cache = engine_cache().ok_or_else(|| {
                    let fault = Fault::permanent("there is no folder to keep the engines of TensorRT in");
                    fault.help("set `XDG_CACHE_HOME` or `HOME`")
                })?;
                let made = std::fs::create_dir_all(&cache);
                made.map_err(|error| Fault::permanent(format!("cannot make `{}`: {error}", cache.display())))?;
                Provider::TensorRt { cache }
            }
        };
        // Instances have streams and memory of their own.
        Ok(self.runner(Arc::new(self.open(&provider)?), Rows::Together))
    }
}

/// Where the engines of TensorRT are kept.
#[cfg(feature = "cuda")]
fn engine_cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(root.join("flowgpu/tensorrt"))
}

/// How the rows of a batch are computed.
enum Rows {
    /// Side by side, each on a thread.
    EachAlone(SideBySide),
    /// In one call.
    #[cfg(feature = "cuda")]
    Together,
}

struct Runner {
    session: Arc<Session>,
    rows: Rows,
    outputs: Outputs,
}

impl Model for Runner {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(self.start(inputs)?.wait()?.outputs)
    }

    fn start(&mut self, inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        let (input, [n_rows, height, width]) = images(inputs)?;
        match &self.rows {
            Rows::EachAlone(rows) => {
                let session = self.session.clone();
                let row = move |row_idx| {
                    let pixels = &input.bytes()[row_idx * input.row_bytes()..][..input.row_bytes()];
                    session.run(Feed::Pixels(pixels), [1, height, width, 3]).map_err(|error| failed(&error))
                };
                let outputs = self.outputs.clone();
                Ok(rows.start(n_rows, row, move |rows| outputs.joined(&rows)))
            }
            #[cfg(feature = "cuda")]
            Rows::Together => {
                let start_ns = monotonic_ns();
                let outputs = self.session.run(Feed::Pixels(input.bytes()), [n_rows, height, width, 3]);
                let outputs = outputs.map_err(|error| gpu_error(error.to_string()))?;
                let outputs = self.outputs.whole(outputs, n_rows)?;
                let spans = vec![Span { stage: SpanStage::Compute, start_ns, end_ns: monotonic_ns() }];
                Ok(Box::new(Computed { outputs, spans }))
            }
        }
    }

    fn slots(&self) -> usize {
        match self.rows {
            Rows::EachAlone(_) => side_by_side::SLOTS,
            #[cfg(feature = "cuda")]
            Rows::Together => 1,
        }
    }
}

/// Makes tensors of what ONNX Runtime gave.
#[derive(Clone)]
struct Outputs {
    names: Vec<String>,
    alloc: HeapPool,
}

impl Outputs {
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
