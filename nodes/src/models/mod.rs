//! Model architectures in candle, one file each.

pub mod params;

pub use params::{Params, ReadTensorError, TensorSource};
