//! Decoding to a fraction of the size.

use super::super::super::geometry::Geometry;
use super::super::super::preprocess::Preprocess;

/// How much smaller than it is stored a picture is decoded.
///
/// Each block becomes fewer samples, by a smaller cosine transform. That is much faster than to decode all of the picture and
/// then to make it smaller, and gives other pixels: those of Pillow's `draft`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scale {
    /// As it is stored.
    #[default]
    Full,
    /// Half as wide and high, rounded up.
    Half,
    /// A quarter as wide and high, rounded up.
    Quarter,
    /// An eighth as wide and high, rounded up.
    Eighth,
}

impl Scale {
    /// Samples along the side of a block.
    pub(super) fn block(self) -> usize {
        match self {
            Self::Full => 8,
            Self::Half => 4,
            Self::Quarter => 2,
            Self::Eighth => 1,
        }
    }

    /// By what lengths are divided.
    pub(super) fn denominator(self) -> u32 {
        8 / self.block() as u32
    }
}

/// Which [`Scale`] a picture is decoded at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// This one, whatever the size.
    Fixed(Scale),
    /// The smallest that leaves each side at least [`Scaling::GAP`] times as long as these options resize it.
    Toward(Preprocess),
}

impl Default for Scaling {
    fn default() -> Self {
        Self::Fixed(Scale::Full)
    }
}

impl Scaling {
    /// How many times as many pixels as are wanted stay along each side, for the filter to choose from. It is the
    /// `reducing_gap` that Pillow's `thumbnail` has by default, and from which its manual calls the result hard to tell apart.
    pub const GAP: u64 = 2;

    /// The scale for a picture that is `width`×`height` when it stands upright.
    pub(super) fn of(self, width: u32, height: u32) -> Scale {
        match self {
            Self::Fixed(scale) => scale,
            Self::Toward(options) => {
                let resized = Geometry::of(width, height, &options).resized;
                let leaves_enough = |scale: &Scale| {
                    let least = resized.map(|side| side.saturating_mul(Self::GAP * u64::from(scale.denominator())));
                    u64::from(width) >= least[0] && u64::from(height) >= least[1]
                };
                [Scale::Eighth, Scale::Quarter, Scale::Half].into_iter().find(leaves_enough).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scale, Scaling};
    use crate::decode::{Crop, Letterbox, Preprocess, Resize};

    #[test]
    fn twice_the_wanted_pixels_are_left() {
        let check = |options: Preprocess, [width, height]: [u32; 2], expected: Scale| {
            assert_eq!(Scaling::Toward(options).of(width, height), expected, "{width}×{height} to {options}");
        };
        let shorter =
            Preprocess { resize: Some(Resize::Shorter(256)), crop: Some(Crop::square(224)), ..Preprocess::default() };
        check(shorter, [4096, 4096], Scale::Eighth);
        check(shorter, [6000, 4095], Scale::Quarter);
        check(shorter, [4000, 3000], Scale::Quarter);
        check(shorter, [2047, 2047], Scale::Half);
        check(shorter, [1023, 5000], Scale::Full);
        check(shorter, [100, 100], Scale::Full);
        // Each side by itself.
        let exact = Preprocess { resize: Some(Resize::Exact { width: 10, height: 200 }), ..Preprocess::default() };
        check(exact, [8000, 800], Scale::Half);
        let frame = Preprocess { letterbox: Some(Letterbox::new(100, 100)), ..Preprocess::default() };
        check(frame, [1600, 800], Scale::Eighth);
        check(frame, [1599, 1599], Scale::Quarter);
        // Where nothing is resized, all pixels are wanted, also if a part is cut out of them.
        check(Preprocess { crop: Some(Crop::square(8)), ..Preprocess::default() }, [4096, 4096], Scale::Full);
    }
}
