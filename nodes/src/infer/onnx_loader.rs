//! Loads an ONNX model.

#[cfg(feature = "cuda")]
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use engine::node::{Fault, LoadModel, Model};

use super::GpuProvider;
use super::onnx_model::Fitted;
#[cfg(feature = "cuda")]
use super::onnx_runner::OnGpu;
use super::onnx_runner::{OnCpu, Outputs};
#[cfg(feature = "cuda")]
use crate::cuda::CudaDevice;
use crate::onnx::{HELP, OnnxError, Provider, Session};
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

    fn outputs(&self) -> Outputs {
        Outputs::new(self.fitted.outputs.iter().map(|output| output.name.clone()).collect())
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
        Ok(Box::new(OnCpu::new(session, self.outputs())))
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
        Ok(Box::new(OnGpu::new(self.open(&provider)?, self.outputs())))
    }
}

/// Where the engines of TensorRT are kept.
#[cfg(feature = "cuda")]
fn engine_cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(root.join("flowgpu/tensorrt"))
}
