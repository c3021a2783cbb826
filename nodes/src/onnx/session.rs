//! A model in ONNX Runtime, for any number of threads: each computes on itself.
//!
//! Rows that are computed at once by several threads cost less time and memory than one row by several, and a row's bits do not
//! depend on what is computed beside it.

use std::ffi::CString;
use std::fmt;
use std::path::{Path, PathBuf};

use engine::data::DType;
use ort::ep::ArenaExtendStrategy;
use ort::ep::{CUDA, ExecutionProviderDispatch, TensorRT};
use ort::session::builder::GraphOptimizationLevel;
use ort::value::{DynValue, TensorElementType, TensorRef};

use super::call::call;
use super::element::Element;
use super::error::OnnxError;
use super::library::Library;
use super::prefix::{PIXELS, Prefix};
use super::rewrite::Rewrite;
use super::signature::Signature;
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
pub struct Session {
    path: PathBuf,
    /// The name of its input.
    input: CString,
    outputs: Vec<CString>,
    session: ort::session::Session,
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

impl Session {
    /// Loads the model, whose input `input` gets pixels as `prefix` makes them, or its own numbers; it will give `outputs`.
    ///
    /// # Errors
    /// No ONNX Runtime, or one that does not take the model.
    pub fn load(
        path: &Path,
        prefix: Option<Prefix>,
        input: &str,
        outputs: Vec<String>,
        provider: &Provider,
    ) -> Result<Self, OnnxError> {
        let named = |name: &str| {
            let reason = "a name in it has a zero byte".to_owned();
            CString::new(name).map_err(|_| OnnxError::NotAModel { path: path.to_owned(), reason })
        };
        let session = open(path, prefix, input, provider)?;
        let input = named(if prefix.is_some() { PIXELS } else { input })?;
        let outputs = outputs.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
        Ok(Self { path: path.to_owned(), input, outputs, session })
    }

    /// Computes an input of this shape on the calling thread. Several may do so at once on the processor, one on a GPU.
    ///
    /// # Errors
    /// What ONNX Runtime says, or an output of a type that there is no column for.
    pub fn run(&self, feed: Feed<'_>, shape: [usize; 4]) -> Result<Vec<Output>, OnnxError> {
        let failed = |error: ort::Error| OnnxError::Run(error.to_string());
        let shape = shape.map(|side| side as i64);
        let input = match feed {
            Feed::Pixels(pixels) => TensorRef::from_array_view((shape, pixels)).map(TensorRef::into_dyn),
            Feed::Numbers(numbers) => TensorRef::from_array_view((shape, numbers)).map(TensorRef::into_dyn),
        };
        let values =
            input.and_then(|input| call(&self.session, (&self.input, &input), &self.outputs)).map_err(failed)?;
        values.iter().zip(&self.outputs).map(|(value, name)| Output::of(value, &name.to_string_lossy())).collect()
    }
}

fn open(
    path: &Path,
    prefix: Option<Prefix>,
    input: &str,
    provider: &Provider,
) -> Result<ort::session::Session, OnnxError> {
    let library = Library::of_process()?;
    let broken = |error: prost::DecodeError| OnnxError::NotAModel { path: path.to_owned(), reason: error.to_string() };
    let refused = |error: &dyn fmt::Display| OnnxError::Refused { path: path.to_owned(), reason: error.to_string() };
    let file = Mapped::open(path)?;
    // Only the processor computes with the weights where they are, and the file itself is what it may map, not a link to it. One that
    // has its weights in other files names them from its own folder.
    let is_whole = *provider == Provider::Cpu && Signature::parse(&file, path)?.files.len() == 1;
    let real = if is_whole { path.canonicalize().ok() } else { None };
    let weights_in = real.as_deref().and_then(|real| real.file_name()?.to_str());
    let rewrite = Rewrite { prefix: prefix.map(|prefix| (prefix, input)), weights_in };
    let model = rewrite.apply(&file).map_err(broken)?;
    let folder = real.as_deref().unwrap_or(path).parent().unwrap_or(Path::new("")).to_string_lossy().into_owned();
    let builder = ort::session::Session::builder(&library.environment).map_err(|error| refused(&error))?;
    let builder = builder.with_optimization_level(GraphOptimizationLevel::Level3).map_err(|error| refused(&error))?;
    let builder = builder.with_intra_threads(1).map_err(|error| refused(&error))?;
    let builder = builder.with_inter_threads(1).map_err(|error| refused(&error))?;
    // The model comes from memory, and its weights from files in this folder.
    let builder = builder
        .with_config_entry("session.model_external_initializers_file_folder_path", &folder)
        .map_err(|error| refused(&error))?;
    let builder = builder.with_execution_providers(provider.dispatches()).map_err(|error| refused(&error))?;
    let mut builder = match provider {
        Provider::Cpu => builder,
        Provider::Cuda | Provider::TensorRt { .. } => {
            builder.with_disable_cpu_fallback().map_err(|error| refused(&error))?
        }
    };
    builder.commit_from_memory(&model).map_err(|error| refused(&error))
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.path.display())
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
