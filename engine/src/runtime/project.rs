//! The output columns of a node from its inputs' columns and its new ones.

use crate::data::{Batch, Column};
use crate::node::{From, NodeSpec};

/// The rows of `inputs` (aligned batches, one for each input) with the columns that `spec` passes on and the `new` ones.
pub(super) fn project(spec: &NodeSpec, inputs: &[&Batch], new: Vec<Column>) -> Batch {
    let mut new = new.into_iter();
    let columns = spec.outputs.iter().map(|output| match output.from {
        From::Input { input, column } => inputs[input].columns()[column].clone(),
        From::New => new.next().expect("a node makes the columns that its spec says"),
    });
    inputs[0].with_columns(columns.collect())
}
