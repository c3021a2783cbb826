//! Sizes and places: which part of which size is made of a picture. The roundings are torchvision's.

use super::preprocess::{Crop, Preprocess, Resize};

/// What is made of a picture of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The size of the whole resized picture; wider than `u32`, because a thin picture may come out very long.
    pub resized: [u64; 2],
    /// The part of the resized picture that is kept: left, top.
    pub origin: [u64; 2],
    /// The size of the part that is kept.
    pub kept: [u32; 2],
    /// Where in the result that part lies: left, top. All around it is black.
    pub place: [u32; 2],
    /// The size of the result.
    pub out: [u64; 2],
}

impl Geometry {
    /// What `options` make of a picture of `width`×`height`. Pairs are x, y.
    pub fn of(width: u32, height: u32, options: &Preprocess) -> Self {
        let size = [u64::from(width), u64::from(height)];
        let resized = match options.resize {
            None => size,
            Some(Resize::Exact { width, height }) => [u64::from(width), u64::from(height)],
            Some(Resize::Shorter(side)) => shorter(size, u64::from(side)),
        };
        let Some(Crop { width, height }) = options.crop else {
            let kept = resized.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
            return Self { resized, origin: [0; 2], kept, place: [0; 2], out: resized };
        };
        let crop = [width, height];
        let mut geometry = Self { resized, origin: [0; 2], kept: crop, place: [0; 2], out: crop.map(u64::from) };
        for axis in 0..2 {
            let (have, want) = (resized[axis], u64::from(crop[axis]));
            if have < want {
                geometry.kept[axis] = have as u32;
                geometry.place[axis] = ((want - have) / 2) as u32;
            } else {
                geometry.origin[axis] = half_to_even(have - want);
            }
        }
        geometry
    }
}

/// The longer side follows the shorter one, rounded down; in floating point, since that is how it is rounded elsewhere.
fn shorter([width, height]: [u64; 2], side: u64) -> [u64; 2] {
    let (short, long) = (width.min(height), width.max(height));
    let longer = ((side * long) as f64 / short as f64) as u64;
    if width <= height { [side, longer] } else { [longer, side] }
}

/// Half of it; a half is rounded to the even neighbour.
fn half_to_even(span: u64) -> u64 {
    let half = span / 2;
    if span % 2 == 1 { half + half % 2 } else { half }
}

#[cfg(test)]
mod tests {
    use super::{Geometry, Preprocess};
    use crate::decode::preprocess::{Crop, Resize};

    fn of(size: [u32; 2], resize: Option<Resize>, crop: Option<Crop>) -> Geometry {
        Geometry::of(size[0], size[1], &Preprocess { resize, crop, ..Preprocess::default() })
    }

    // The expectations are what torchvision 0.30's `Resize` and `CenterCrop` do by their formulas, computed in Python.
    #[test]
    fn the_shorter_side_leads_and_the_longer_is_rounded_down() {
        for (size, side, expected) in [
            ([500, 375], 256, [341, 256]),
            ([375, 500], 256, [256, 341]),
            ([333, 333], 256, [256, 256]),
            ([1, 1000], 256, [256, 256_000]),
            ([1000, 3], 7, [2333, 7]),
        ] {
            assert_eq!(of(size, Some(Resize::Shorter(side)), None).resized, expected, "{size:?} → {side}");
        }
    }

    #[test]
    fn the_crop_is_centred_and_halves_go_to_the_even_side() {
        for (size, crop, origin) in [
            ([341, 256], 224, [58, 16]), // 58.5 → 58
            ([343, 256], 224, [60, 16]), // 59.5 → 60
            ([225, 227], 224, [0, 2]),   // 0.5 → 0, 1.5 → 2
        ] {
            let got = of(size, None, Some(Crop::square(crop)));
            assert_eq!(got.origin, origin, "{size:?}");
            assert_eq!((got.kept, got.place), ([224, 224], [0, 0]));
        }
    }

    #[test]
    fn a_picture_smaller_than_the_crop_lies_in_its_middle() {
        let got = of([5, 300], None, Some(Crop { width: 10, height: 200 }));
        assert_eq!(got, Geometry { resized: [5, 300], origin: [0, 50], kept: [5, 200], place: [2, 0], out: [10, 200] });
    }
}
