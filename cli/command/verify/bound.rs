//! How far pixels may be from Pillow's.

use serde::Serialize;

/// The largest difference of one sample that is allowed, and the mean one over a picture, of 255.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Bound {
    /// The largest.
    pub(super) most: u8,
    /// The mean.
    pub(super) mean: f64,
}

impl Bound {
    /// That of every kind of file: decoders and resampling do Pillow's own arithmetic, so what is measured is nothing. One step is
    /// left to a Pillow that was built with another library.
    pub(super) const PILLOW: Self = Self { most: 1, mean: 0.01 };

    /// Whether a picture is within it.
    pub(super) fn holds(self, most: u8, mean: f64) -> bool {
        most <= self.most && mean <= self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_figures_count() {
        assert!(Bound::PILLOW.holds(1, 0.01));
        assert!(!Bound::PILLOW.holds(2, 0.0) && !Bound::PILLOW.holds(1, 0.011));
    }
}
