//! Which model runs where.

use super::Inventory;
use crate::config::Devices;

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

/// Where one model runs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// The index of its node.
    pub node: usize,
    /// The device's name: `cpu`.
    pub device: String,
    /// Instances of the model, each on a thread of its own.
    pub instances: usize,
}

/// Where all models run.
pub type Placement = Vec<Place>;

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
    fn place(&self, needs: &[Need], _have: &Inventory) -> Result<Placement, PlaceError> {
        let place = |need: &Need| match &need.devices {
            Devices::Auto | Devices::Cpu => Ok(Place { node: need.node, device: "cpu".to_owned(), instances: 1 }),
            Devices::Cuda(_) => Err(PlaceError {
                message: format!("`{}` asks for a GPU, and this build of flowgpu computes on the CPU only", need.name),
                help: "use `device: auto` or `device: cpu`".to_owned(),
            }),
        };
        needs.iter().map(place).collect()
    }
}
