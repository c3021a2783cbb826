//! A model in ONNX Runtime: as many sessions as there are threads that run it.
//!
//! A session is used by one thread at a time, which is what the crate asks for; each computes on the thread that calls it.
//! Rows that are computed at once by several sessions cost less time and memory than one session with several threads, and a
//! row's bits do not depend on what is computed beside it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use engine::data::DType;
use ort::ep::ArenaExtendStrategy;
use ort::ep::{CUDA, ExecutionProviderDispatch, TensorRT};
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::{DynValue, TensorElementType, TensorRef};

use super::element::Element;
use super::error::OnnxError;
use super::library::Library;
use super::prefix::{PIXELS, Prefix};
use crate::weights::Mapped;

/// What computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The processor.
    Cpu,
    /// The process's first GPU, by ONNX Runtime's own kernels and NVIDIA's libraries.
    Cuda,
    /// The same GPU by TensorRT, and what that cannot do by [`Provider::Cuda`].
    TensorRt {
        /// Where engines are kept, which take minutes to build.
        cache: PathBuf,
    },
}

impl Provider {
    /// What is asked for, in order. A provider that is not there is an error, and nothing falls back to the processor.
    fn dispatches(&self) -> Vec<ExecutionProviderDispatch> {
        // By default the arena doubles, and never gives anything back.
        let cuda =
            || CUDA::default().with_device_id(0).with_arena_extend_strategy(ArenaExtendStrategy::SameAsRequested);
        let cuda = || cuda().build().error_on_failure();
        match self {
            Provider::Cpu => Vec::new(),
            Provider::Cuda => vec![cuda()],
            Provider::TensorRt { cache } => {
                let tensorrt = TensorRT::default().with_device_id(0).with_engine_cache(true);
                let tensorrt = tensorrt.with_engine_cache_path(cache.display()).with_timing_cache(true);
                let tensorrt = tensorrt.with_timing_cache_path(cache.display());
                vec![tensorrt.build().error_on_failure(), cuda()]
            }
        }
    }
}

/// A loaded model.
pub struct Sessions {
    path: PathBuf,
    prefix: Option<Prefix>,
    input: String,
    outputs: Vec<String>,
    provider: Provider,
    idle: Mutex<Vec<Session>>,
}

/// What one input of a model gets.
#[derive(Clone, Copy, Debug)]
pub enum Feed<'a> {
    /// `[rows, height, width, 3]`: to a model with a [`Prefix`].
    Pixels(&'a [u8]),
    /// The numbers themselves: to a model without.
    Numbers(&'a [f32]),
}

/// What a model gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its dimensions, the rows first.
    pub shape: Vec<usize>,
    /// The type of its elements: see [`Element::dtype`].
    pub dtype: DType,
    /// Its elements.
    pub bytes: Vec<u8>,
}

impl Sessions {
    /// Loads the model, whose input `input` gets pixels as `prefix` makes them, or its own numbers; it will give `outputs`.
    ///
    /// # Errors
    /// No ONNX Runtime, or one that does not take the model.
    pub fn load(
        path: &Path,
        prefix: Option<Prefix>,
        input: &str,
        outputs: Vec<String>,
        provider: Provider,
    ) -> Result<Self, OnnxError> {
        let idle = Mutex::default();
        let sessions = Self { path: path.to_owned(), prefix, input: input.to_owned(), outputs, provider, idle };
        let session = sessions.open()?;
        sessions.give_back(session);
        Ok(sessions)
    }

    fn open(&self) -> Result<Session, OnnxError> {
        let library = Library::of_process()?;
        let broken =
            |error: prost::DecodeError| OnnxError::NotAModel { path: self.path.clone(), reason: error.to_string() };
        let refused =
            |error: &dyn std::fmt::Display| OnnxError::Refused { path: self.path.clone(), reason: error.to_string() };
        let file = Mapped::open(&self.path)?;
        let model = self.prefix.map(|prefix| prefix.put_before(&file, &self.input)).transpose().map_err(broken)?;
        let folder = self.path.parent().unwrap_or(Path::new("")).to_string_lossy().into_owned();
        let builder = Session::builder(&library.environment).map_err(|error| refused(&error))?;
        let builder =
            builder.with_optimization_level(GraphOptimizationLevel::Level3).map_err(|error| refused(&error))?;
        let builder = builder.with_intra_threads(1).map_err(|error| refused(&error))?;
        let builder = builder.with_inter_threads(1).map_err(|error| refused(&error))?;
        // The model comes from memory, and its weights may lie beside the file.
        let builder = builder
            .with_config_entry("session.model_external_initializers_file_folder_path", &folder)
            .map_err(|error| refused(&error))?;
        let builder = builder.with_execution_providers(self.provider.dispatches()).map_err(|error| refused(&error))?;
        let mut builder = match self.provider {
            Provider::Cpu => builder,
            Provider::Cuda | Provider::TensorRt { .. } => {
                builder.with_disable_cpu_fallback().map_err(|error| refused(&error))?
            }
        };
        builder.commit_from_memory(model.as_deref().unwrap_or(&file)).map_err(|error| refused(&error))
    }

    fn take(&self) -> Result<Session, OnnxError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.open(), Ok)
    }

    fn give_back(&self, session: Session) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    /// Computes an input of this shape on the calling thread.
    ///
    /// # Errors
    /// What ONNX Runtime says, or an output of a type that there is no column for.
    pub fn run(&self, feed: Feed<'_>, shape: [usize; 4]) -> Result<Vec<Output>, OnnxError> {
        let failed = |error: ort::Error| OnnxError::Run(error.to_string());
        let mut session = self.take()?;
        let shape = shape.map(|side| side as i64);
        let values = match feed {
            Feed::Pixels(pixels) => {
                let input = TensorRef::from_array_view((shape, pixels)).map_err(failed)?;
                session.run(ort::inputs![PIXELS => input])
            }
            Feed::Numbers(numbers) => {
                let input = TensorRef::from_array_view((shape, numbers)).map_err(failed)?;
                session.run(ort::inputs![self.input.as_str() => input])
            }
        };
        let mut values = values.map_err(failed)?;
        let outputs = self.outputs.iter().map(|name| {
            let value = values.remove(name).ok_or_else(|| OnnxError::Run(format!("it gave no `{name}`")))?;
            Output::of(&value, name)
        });
        let outputs = outputs.collect();
        drop(values);
        // A session that failed is not used again.
        self.give_back(session);
        outputs
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sessions({})", self.path.display())
    }
}

impl Output {
    fn of(value: &DynValue, name: &str) -> Result<Self, OnnxError> {
        let failed = |error: ort::Error| OnnxError::Run(format!("`{name}`: {error}"));
        let element = match value.dtype().tensor_type() {
            Some(TensorElementType::Float32) => Element::FLOAT,
            Some(TensorElementType::Float64) => Element::DOUBLE,
            Some(TensorElementType::Float16) => Element::FLOAT16,
            Some(TensorElementType::Bfloat16) => Element::BFLOAT16,
            Some(TensorElementType::Int32) => Element::INT32,
            Some(TensorElementType::Int64) => Element::INT64,
            Some(TensorElementType::Uint8) => Element::UINT8,
            Some(TensorElementType::Bool) => Element::BOOL,
            _ => return Err(OnnxError::Run(format!("`{name}` is {}, which no column can hold", value.dtype()))),
        };
        let dtype = element.dtype().expect("each of these has one");
        let sides = |shape: &ort::value::Shape| shape.iter().map(|&side| usize::try_from(side).unwrap_or(0)).collect();
        let (shape, bytes) = match element {
            Element::FLOAT => {
                let (shape, values) = value.try_extract_tensor::<f32>().map_err(failed)?;
                (sides(shape), bytemuck::cast_slice(values).to_vec())
            }
            Element::DOUBLE => {
                let (shape, values) = value.try_extract_tensor::<f64>().map_err(failed)?;
                (sides(shape), values.iter().flat_map(|&value| (value as f32).to_ne_bytes()).collect())
            }
            Element::INT32 => {
                let (shape, values) = value.try_extract_tensor::<i32>().map_err(failed)?;
                (sides(shape), values.iter().flat_map(|&value| i64::from(value).to_ne_bytes()).collect())
            }
            Element::INT64 => {
                let (shape, values) = value.try_extract_tensor::<i64>().map_err(failed)?;
                (sides(shape), bytemuck::cast_slice(values).to_vec())
            }
            Element::BOOL => {
                let (shape, values) = value.try_extract_tensor::<bool>().map_err(failed)?;
                (sides(shape), values.iter().map(|&value| u8::from(value)).collect())
            }
            Element::UINT8 => {
                let (shape, values) = value.try_extract_tensor::<u8>().map_err(failed)?;
                (sides(shape), values.to_vec())
            }
            Element::FLOAT16 => {
                let (shape, values) = value.try_extract_tensor::<half::f16>().map_err(failed)?;
                (sides(shape), bytemuck::cast_slice(values).to_vec())
            }
            _ => {
                let (shape, values) = value.try_extract_tensor::<half::bf16>().map_err(failed)?;
                (sides(shape), bytemuck::cast_slice(values).to_vec())
            }
        };
        Ok(Self { shape, dtype, bytes })
    }
}
