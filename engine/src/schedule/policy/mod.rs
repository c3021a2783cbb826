//! Which GPUs get which models. Policies are pure: the same needs and GPUs always give the same answer.
//!
//! A policy deals models; how many workers share a GPU, and what it all comes to, is for [`super::place`]. A new one is a
//! file here and a line in [`chosen`].

mod allowed;
mod cpu;
mod fixed;
mod refusal;
mod replicate;
mod spread;

pub(super) use allowed::{Allowed, allowed};
pub(super) use cpu::on_cpu;
pub use fixed::Fixed;
pub(super) use refusal::{Failed, too_many_workers, too_much};
pub use replicate::Replicate;
pub use spread::Spread;

use super::WorkerMemory;
use crate::config::{Devices, PlacementPolicy};
use crate::node::ModelNeed;

/// A model to be placed, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The index of its node.
    pub node: usize,
    /// The node's name, for messages.
    pub name: String,
    /// What it takes of a device; all zero where the node does not say.
    pub model: ModelNeed,
    /// Rows of its planned batches.
    pub rows: usize,
    /// The devices that the pipeline allows.
    pub devices: Devices,
}

/// A GPU while models are dealt.
#[derive(Clone, Debug)]
pub struct Room<'a> {
    /// Its name: `cuda:1`.
    pub name: String,
    /// Bytes that nobody uses.
    pub free: u64,
    /// Workers that share it, each with all of its models.
    pub workers: u64,
    /// The models that it has got.
    pub models: Vec<&'a Need>,
}

impl<'a> Room<'a> {
    /// Bytes that its workers take if it gets `more`; nothing if it has no models.
    pub fn bytes_with(&self, more: &[&'a Need]) -> u64 {
        let models: Vec<_> = self.models.iter().chain(more).copied().collect();
        if models.is_empty() { 0 } else { WorkerMemory::of(models).bytes().saturating_mul(self.workers) }
    }

    /// Whether it holds `more` beside what it has.
    pub fn holds(&self, more: &[&'a Need]) -> bool {
        self.bytes_with(more) <= self.free
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.free.saturating_sub(self.bytes_with(&[]))
    }
}

/// A model and the GPUs that it may be dealt to, by their places among the rooms.
pub type Wish<'a> = (&'a Need, Vec<usize>);

/// A way to deal models over GPUs.
pub trait Policy {
    /// Deals every model to at least one of the GPUs that it may be dealt to, on top of what they hold.
    ///
    /// # Errors
    /// The models that found no place.
    fn deal<'a>(&self, wishes: &[Wish<'a>], rooms: &mut [Room<'a>]) -> Result<(), Vec<&'a Need>>;
}

/// The policy that a pipeline asks for.
pub fn chosen(placement: PlacementPolicy) -> &'static dyn Policy {
    match placement {
        PlacementPolicy::Replicate => &Replicate,
        PlacementPolicy::Spread => &Spread,
    }
}

/// Why models cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlaceError {
    /// What is wrong; the sum in lines of its own.
    pub message: String,
    /// What to do.
    pub help: String,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A model of so many MiB of weights, activations a row and workspace, at batches of 32.
    pub(in super::super) fn need(name: &str, weights: u64, per_row: u64, workspace: u64) -> Need {
        let model = ModelNeed {
            weights: weights << 20,
            activations_per_row: per_row << 20,
            workspace: workspace << 20,
            ..ModelNeed::default()
        };
        Need { node: 0, name: name.to_owned(), model, rows: 32, devices: Devices::Auto }
    }

    /// The names of the models that each GPU gets, or of those that get none. Each need comes with its GPUs, each GPU with
    /// its free MiB.
    pub(super) fn deal(policy: &dyn Policy, needs: &[(Need, Vec<usize>)], free: &[u64]) -> Result<Vec<String>, String> {
        let join = |models: &[&Need]| models.iter().map(|need| need.name.as_str()).collect::<Vec<_>>().join("+");
        let mut rooms: Vec<_> = free
            .iter()
            .enumerate()
            .map(|(at, free)| Room { name: format!("cuda:{at}"), free: free << 20, workers: 1, models: Vec::new() })
            .collect();
        let wishes: Vec<Wish<'_>> = needs.iter().map(|(need, gpus)| (need, gpus.clone())).collect();
        policy.deal(&wishes, &mut rooms).map_err(|homeless| join(&homeless))?;
        Ok(rooms.iter().map(|room| join(&room.models)).collect())
    }

    #[test]
    fn an_empty_gpu_takes_nothing_and_the_first_model_brings_the_context() {
        let (need, small) = (need("a", 100, 0, 0), need("b", 10, 0, 0));
        let mut room = Room { name: "cuda:0".to_owned(), free: 1120 << 20, workers: 2, models: Vec::new() };
        assert_eq!(room.left(), 1120 << 20);
        assert!(room.holds(&[&need, &small]));
        room.models.push(&need);
        assert_eq!(room.left(), 20 << 20);
        assert!(room.holds(&[&small]));
        room.free -= 1;
        assert!(!room.holds(&[&small]));
    }
}
