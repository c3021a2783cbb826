//! What models of images are given.

use std::fmt;

use engine::data::Tensor;
use engine::node::ModelError;

/// The one input of a model of images, and how many of which height and width it has.
pub(super) fn images(inputs: &[Tensor]) -> Result<(Tensor, [usize; 3]), ModelError> {
    let [input] = inputs else {
        return Err(ModelError::Failed(format!("one input is wanted, not {}", inputs.len())));
    };
    let &[n_rows, height, width, 3] = input.shape() else {
        let shape = input.shape();
        return Err(ModelError::Failed(format!("images [rows, height, width, 3] are wanted, not {shape:?}")));
    };
    Ok((input.clone(), [n_rows, height, width]))
}

/// A failure as the engine is told of it.
pub(super) fn failed(error: &dyn fmt::Display) -> ModelError {
    ModelError::Failed(error.to_string())
}
