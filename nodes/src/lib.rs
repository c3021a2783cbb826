//! The kinds of node that flowgpu ships, and [`registry`], the one list of them.

pub mod decode;
pub mod models;
pub mod sink;
pub mod source;
pub mod transform;
pub mod weights;
