//! Row work between the model and the sink.

pub mod join;
mod labels;
pub mod select;
pub mod topk;
