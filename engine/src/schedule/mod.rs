//! `Graph` to [`Plan`]: placement, pool sizes and queue bounds.
//!
//! But for [`Inventory`] and [`GpuGauge`], which ask the system, these are pure functions of the graph and an inventory:
//! nothing is opened, started or measured. `flowgpu plan` prints the value that `run` uses.

mod gpu;
mod host_memory;
mod inventory;
mod memory;
mod nvml;
mod place;
mod placement;
mod plan;
mod policy;
mod visible;
mod worker_binary;

pub use gpu::{Gpu, GpuUser};
pub use host_memory::{HostMemory, ModelHostMemory, PROGRAM_BYTES};
pub use inventory::Inventory;
pub use memory::{Bytes, CONTEXT_BYTES, ModelMemory, WorkerMemory};
pub use nvml::{GpuGauge, GpuSample, NVML_VARIABLE};
pub use place::{PlaceOptions, place};
pub use placement::{DevicePlace, Placement, WorkerPlace};
pub use plan::{Plan, PlanError, Pools, Room, SLOTS_PER_MODEL, STREAMS_PER_MODEL};
pub use policy::{Need, PlaceError};
pub use worker_binary::{NotFound, WORKER_NAME, WORKER_VARIABLE, cuda_worker};
