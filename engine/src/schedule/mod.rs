//! `Graph` to [`Plan`]: placement, pool sizes and queue bounds.
//!
//! Pure functions of the graph and an [`Inventory`]: nothing is opened, started or measured here. `flowgpu plan` prints
//! the value that `run` uses.

mod gpu;
mod inventory;
mod placement;
mod plan;
mod policy;

pub use gpu::{Gpu, GpuUser};
pub use inventory::Inventory;
pub use placement::{DevicePlace, Placement, WorkerPlace};
pub use plan::{Plan, PlanError, Pools, Room};
pub use policy::{Need, PlaceError, Policy, Replicate};
