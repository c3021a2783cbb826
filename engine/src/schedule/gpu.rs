//! A GPU that models may be placed on.

use serde::Serialize;

/// A GPU, or a part of one (MIG), that this process may hand to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// The number N in `cuda:N`: its place among the devices that are visible.
    pub index: u32,
    /// What a worker's `CUDA_VISIBLE_DEVICES` is set to, so that it sees this device and no other.
    pub token: String,
    /// Its UUID: `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// Its name, such as `NVIDIA A10`.
    pub name: String,
    /// Bytes of memory built in.
    pub total: u64,
    /// Bytes of memory that nobody uses.
    pub free: u64,
    /// Other processes that use it.
    pub users: Vec<GpuUser>,
    /// The driver's version.
    pub driver: String,
    /// Whether it is a part of a GPU.
    pub mig: bool,
}

/// A process that uses a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GpuUser {
    /// The process.
    pub pid: u32,
    /// Bytes that it has taken, where the driver says so.
    pub bytes: Option<u64>,
}
