//! `Graph` to [`Plan`]: placement, pool sizes and queue bounds.
//!
//! Pure functions of the graph and an [`Inventory`]: nothing is opened, started or measured here. `flowgpu plan` prints
//! the value that `run` uses.

mod inventory;
mod plan;
mod policy;

pub use inventory::Inventory;
pub use plan::{Plan, PlanError, Pools, Room};
pub use policy::{Need, Place, PlaceError, Placement, Policy, Replicate};
