//! Loads an ONNX model, and runs it as the engine wants models to run.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use engine::data::{HeapPool, Tensor};
use engine::node::{Fault, LoadModel, Model, ModelError};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::onnx_model::Fitted;
use crate::onnx::{Feed, HELP, OnnxError, Output, Sessions};

/// What to load and how to run it. All instances share sessions.
pub(super) struct OnnxLoader {
    path: PathBuf,
    fitted: Fitted,
    loaded: Mutex<Option<Arc<Sessions>>>,
}

impl OnnxLoader {
    pub(super) fn new(path: PathBuf, fitted: Fitted) -> Self {
        OnnxLoader { path, fitted, loaded: Mutex::new(None) }
    }

    fn open(&self) -> Result<Sessions, Fault> {
        let Fitted { input, prefix, outputs, .. } = &self.fitted;
        let outputs = outputs.iter().map(|output| output.name.clone()).collect();
        Sessions::load(&self.path, Some(*prefix), input, outputs).map_err(|error| {
            let fault = Fault::permanent(error.to_string());
            if matches!(error, OnnxError::NoLibrary(_)) { fault.help(HELP) } else { fault }
        })
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
        let sessions = match &*loaded {
            Some(sessions) => sessions.clone(),
            None => loaded.insert(Arc::new(self.open()?)).clone(),
        };
        let names = self.fitted.outputs.iter().map(|output| output.name.clone()).collect();
        Ok(Box::new(Runner { sessions, names, alloc: HeapPool::new() }))
    }
}

struct Runner {
    sessions: Arc<Sessions>,
    names: Vec<String>,
    alloc: HeapPool,
}

impl Model for Runner {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let [input] = inputs else {
            return Err(ModelError::Failed(format!("one input is wanted, not {}", inputs.len())));
        };
        let &[n_rows, height, width, 3] = input.shape() else {
            let shape = input.shape();
            return Err(ModelError::Failed(format!("images [rows, height, width, 3] are wanted, not {shape:?}")));
        };
        let (bytes, n_bytes) = (input.bytes(), input.row_bytes());
        let rows = (0..n_rows).into_par_iter().map(|row| {
            let pixels = &bytes[row * n_bytes..][..n_bytes];
            self.sessions.run(Feed::Pixels(pixels), [1, height, width, 3])
        });
        let rows: Vec<_> = rows.collect::<Result<_, _>>().map_err(|error| failed(&error))?;
        (0..self.names.len()).map(|place| self.joined(place, &rows)).collect()
    }
}

impl Runner {
    /// One output of all rows.
    fn joined(&self, place: usize, rows: &[Vec<Output>]) -> Result<Tensor, ModelError> {
        let name = &self.names[place];
        let mut bytes = Vec::new();
        for row in rows {
            let (output, first) = (&row[place], &rows[0][place]);
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
            bytes.extend_from_slice(&output.bytes);
        }
        let Some(first) = rows.first() else { return Err(failed(&"a batch of no rows")) };
        let mut shape = first[place].shape.clone();
        shape[0] = rows.len();
        Ok(Tensor::from_slice(&self.alloc, first[place].dtype, shape, &bytes))
    }
}

fn failed(error: &dyn fmt::Display) -> ModelError {
    ModelError::Failed(error.to_string())
}
