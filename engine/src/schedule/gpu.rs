//! A GPU that models may be placed on.

use std::fmt;

use serde::Serialize;

use super::Bytes;

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
    /// Other processes that use it, the largest first.
    pub users: Vec<GpuUser>,
    /// The driver's version.
    pub driver: String,
    /// Whether it is a part of a GPU.
    pub mig: bool,
}

/// A process that uses a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GpuUser {
    /// The process, by the number that the driver knows: inside a container it may have another one.
    pub pid: u32,
    /// Bytes that it has taken, where the driver says so.
    pub bytes: Option<u64>,
}

/// `pid 4121 uses 14 GiB`.
impl fmt::Display for GpuUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            Some(bytes) => write!(f, "pid {} uses {}", self.pid, Bytes(bytes)),
            None => write!(f, "pid {} uses it", self.pid),
        }
    }
}
