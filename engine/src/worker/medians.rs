//! How long batches of a shape usually take.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::data::Tensor;

/// So many of the latest are remembered: enough for a median that one slow batch does not move.
const REMEMBERED: usize = 31;

type Key = (usize, usize, Vec<Vec<usize>>);

/// The times of recent batches, by worker, model and shape.
#[derive(Debug, Default)]
pub(super) struct Medians {
    recent: HashMap<Key, VecDeque<Duration>>,
}

impl Medians {
    /// A batch of these inputs took so long.
    pub(super) fn note(&mut self, worker: usize, model: usize, inputs: &[Tensor], taken: Duration) {
        let recent = self.recent.entry(key(worker, model, inputs)).or_default();
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(taken);
    }

    /// The median for inputs of these shapes, if there was any.
    pub(super) fn of(&self, worker: usize, model: usize, inputs: &[Tensor]) -> Option<Duration> {
        let mut recent: Vec<_> = self.recent.get(&key(worker, model, inputs))?.iter().copied().collect();
        recent.sort_unstable();
        recent.get(recent.len() / 2).copied()
    }
}

fn key(worker: usize, model: usize, inputs: &[Tensor]) -> Key {
    (worker, model, inputs.iter().map(|input| input.shape().to_vec()).collect())
}
