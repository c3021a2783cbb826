//! How many rows of a shape fit into a device's memory at once: learnt by running out of it.

use std::collections::HashMap;

use super::frame::Cap;
use crate::data::Tensor;

/// One row's shape, input by input.
pub(super) type RowShape = Vec<Vec<usize>>;

/// Jobs at a cap before a larger piece is tried again; twice as many after each time that it did not fit.
const PATIENCE: u32 = 64;

/// What is known of one model on one device.
#[derive(Debug, Default)]
pub(super) struct Caps {
    known: HashMap<RowShape, Known>,
}

#[derive(Debug)]
struct Known {
    rows: usize,
    /// Jobs computed since without trouble.
    quiet: u32,
    patience: u32,
}

impl Caps {
    /// With what is known from before.
    pub(super) fn new(caps: Vec<Cap>) -> Self {
        let known = |cap: Cap| (cap.shape, Known { rows: cap.rows.max(1), quiet: 0, patience: PATIENCE });
        Caps { known: caps.into_iter().map(known).collect() }
    }

    /// The shape under which a job's cap is known.
    pub(super) fn shape(inputs: &[Tensor]) -> RowShape {
        inputs.iter().map(|input| input.shape().get(1..).unwrap_or_default().to_vec()).collect()
    }

    /// The rows to compute at once, of `n_rows`.
    pub(super) fn rows(&self, shape: &RowShape, n_rows: usize) -> usize {
        self.known.get(shape).map_or(n_rows, |known| known.rows.min(n_rows))
    }

    /// More than `rows` rows did not fit.
    pub(super) fn met(&mut self, shape: &RowShape, rows: usize) {
        let known = self.known.entry(shape.clone()).or_insert(Known { rows, quiet: 0, patience: PATIENCE / 2 });
        known.rows = rows;
        known.quiet = 0;
        known.patience = known.patience.saturating_mul(2);
    }

    /// A job was computed without trouble. The memory may have been short for a while only: after many such, twice as
    /// much is tried.
    pub(super) fn passed(&mut self, shape: &RowShape) {
        let Some(known) = self.known.get_mut(shape) else { return };
        known.quiet += 1;
        if known.quiet >= known.patience {
            known.quiet = 0;
            known.rows = known.rows.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_grows_back_with_more_patience_each_time() {
        let shape = vec![vec![3, 2]];
        let mut caps = Caps::new(Vec::new());
        assert_eq!(caps.rows(&shape, 64), 64);
        caps.met(&shape, 16);
        (1..PATIENCE).for_each(|_| caps.passed(&shape));
        assert_eq!((caps.rows(&shape, 64), caps.rows(&shape, 5), caps.rows(&vec![vec![3]], 64)), (16, 5, 64));
        caps.passed(&shape);
        assert_eq!(caps.rows(&shape, 64), 32);
        caps.met(&shape, 16);
        (1..PATIENCE * 2).for_each(|_| caps.passed(&shape));
        assert_eq!(caps.rows(&shape, 64), 16);
        caps.passed(&shape);
        assert_eq!(caps.rows(&shape, 64), 32);
    }

    #[test]
    fn what_was_known_before_is_known_and_no_cap_is_below_one_row() {
        let shape = vec![vec![7], vec![]];
        let caps = Caps::new(vec![Cap { shape: shape.clone(), rows: 0 }]);
        assert_eq!(caps.rows(&shape, 9), 1);
    }
}
