//! What can be wrong with a model of ONNX, or with running it.

use std::path::PathBuf;

use crate::weights::WeightsError;

/// Why a model cannot be read, changed, loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] WeightsError),
    /// The file is no ONNX model, or one of a kind that is not run.
    #[error("`{}` is no ONNX model that can be run: {reason}", path.display())]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is no ONNX Runtime.
    #[error("there is no ONNX Runtime: {0}")]
    NoLibrary(String),
    /// ONNX Runtime refuses the model.
    #[error("ONNX Runtime cannot load `{}`: {reason}", path.display())]
    Refused {
        /// The model.
        path: PathBuf,
        /// What it says.
        reason: String,
    },
    /// ONNX Runtime failed while it computed.
    #[error("ONNX Runtime: {0}")]
    Run(String),
}
