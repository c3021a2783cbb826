//! Models on an NVIDIA GPU, through candle and the CUDA driver.
//!
//! A process opens one GPU, the only one that it is shown ([`OpenCuda`]). Each model on it has three streams: one copies
//! batches to the GPU, one computes, one copies results back. Events order them, and nothing on a batch's way waits for
//! the whole GPU: so the copies of one batch hide behind the computing of another, and two models share the GPU side by
//! side. What one batch needs beside the weights is a slot; there are a few per model.
//!
//! Of models only `image_network` and the layers' kernels (`ops`) know anything, and nothing here of worker processes, of
//! plans or of files. Errors are sorted into those that a smaller batch may mend, those that only a new process mends,
//! and the rest (`error`).
//!
//! `unsafe` stands in `device`, `host_memory`, `ops`, `slot` and `streams`, where CUDA is called.

mod device;
mod error;
mod flight;
mod host_memory;
mod image_network;
mod model;
pub(crate) mod ops;
mod slot;
mod streams;
mod timing;

pub(crate) use device::load_fault;
pub use device::{CudaDevice, OpenCuda};
pub use error::model_error;
pub(crate) use image_network::ImageNetwork;

/// The kernels of `kernels.cu`, compiled by the build script.
const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));
