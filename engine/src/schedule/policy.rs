//! Which model runs where.

use super::{DevicePlace, Inventory, Placement, WorkerPlace};
use crate::config::{Devices, Isolation};

/// What a model needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The index of its node.
    pub node: usize,
    /// The node's name, for messages.
    pub name: String,
    /// The devices that the pipeline allows.
    pub devices: Devices,
}

/// Why models cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlaceError {
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// A way to place models. Pure: the same needs and inventory always give the same placement.
pub trait Policy {
    /// Places every model.
    ///
    /// # Errors
    /// If one cannot be placed.
    fn place(&self, needs: &[Need], have: &Inventory) -> Result<Placement, PlaceError>;
}

/// Every model on every device that holds them all. Without GPUs that is one instance of each model on the CPU, whose
/// arithmetic shares the model pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replicate;

impl Policy for Replicate {
    fn place(&self, needs: &[Need], have: &Inventory) -> Result<Placement, PlaceError> {
        if let Some(need) = needs.iter().find(|need| matches!(need.devices, Devices::Cuda(_))) {
            return Err(PlaceError {
                message: format!("`{}` asks for a GPU, and this build of flowgpu computes on the CPU only", need.name),
                help: "use `device: auto` or `device: cpu`".to_owned(),
            });
        }
        let models: Vec<_> = needs.iter().map(|need| need.node).collect();
        let worker = WorkerPlace { device: DevicePlace::Cpu, models, threads: have.cores, memory: 0 };
        let workers = if needs.is_empty() { Vec::new() } else { vec![worker] };
        Ok(Placement { isolation: Isolation::Thread, workers })
    }
}
