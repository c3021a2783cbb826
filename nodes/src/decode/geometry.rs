//! Sizes and places: which part of which size is made of a picture.

use super::preprocess::{Crop, Preprocess, Resize, Rounding};

/// What is made of a picture of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The size of the whole resized picture; wider than `u32`, because a thin picture may come out very long.
    pub resized: [u64; 2],
    /// The part of the resized picture that is kept: left, top.
    pub origin: [u64; 2],
    /// The size of the part that is kept.
    pub kept: [u32; 2],
    /// Where in the result that part lies: left, top.
    pub place: [u32; 2],
    /// The colour of all that is around it.
    pub fill: [u8; 3],
    /// The size of the result.
    pub out: [u64; 2],
}

impl Geometry {
    /// What `options` make of a picture of `width`×`height`. Pairs are x, y.
    pub fn of(width: u32, height: u32, options: &Preprocess) -> Self {
        if let Some(frame) = options.letterbox {
            let fit = frame.fit(width, height);
            let out = [frame.width, frame.height].map(u64::from);
            let resized = fit.size.map(u64::from);
            return Self { resized, origin: [0; 2], kept: fit.size, place: fit.place, fill: frame.fill, out };
        }
        let size = [u64::from(width), u64::from(height)];
        let resized = match options.resize {
            None => size,
            Some(Resize::Exact { width, height }) => [u64::from(width), u64::from(height)],
            Some(Resize::Shorter(side)) => shorter(size, u64::from(side)),
            Some(Resize::Longer(side)) => longer(size, u64::from(side)),
            Some(Resize::Within { shorter: side, longer: most }) => match options.rounding {
                Rounding::Torchvision => within(size, u64::from(side), u64::from(most)),
                Rounding::Transformers => within_as_transformers(size, u64::from(side), u64::from(most)),
            },
        };
        let Some(Crop { width, height }) = options.crop else {
            let kept = resized.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
            return Self { resized, origin: [0; 2], kept, place: [0; 2], fill: [0; 3], out: resized };
        };
        let crop = [width, height];
        let out = crop.map(u64::from);
        let mut geometry = Self { resized, origin: [0; 2], kept: crop, place: [0; 2], fill: [0; 3], out };
        for axis in 0..2 {
            let (have, want) = (resized[axis], u64::from(crop[axis]));
            if have < want {
                geometry.kept[axis] = have as u32;
                let free = want - have;
                geometry.place[axis] = match options.rounding {
                    Rounding::Torchvision => free / 2,
                    Rounding::Transformers => free.div_ceil(2),
                } as u32;
            } else {
                geometry.origin[axis] = match options.rounding {
                    Rounding::Torchvision => half_to_even(have - want),
                    Rounding::Transformers => (have - want) / 2,
                };
            }
        }
        geometry
    }

    /// Colours what is around the kept part; what is in that part's place does not matter.
    pub fn fill_edges(&self, pixels: &mut [u8]) {
        if self.kept.map(u64::from) == self.out {
            return;
        }
        match self.fill {
            [r, g, b] if r == g && g == b => pixels.fill(r),
            colour => pixels.as_chunks_mut().0.fill(colour),
        }
    }
}

/// `of`·`by` / `to`, rounded down; in floating point, since that is how it is rounded elsewhere. At least a pixel is left, where
/// others end in an error.
fn follow(of: u64, by: u64, to: u64) -> u64 {
    (((of * by) as f64 / to as f64) as u64).max(1)
}

/// The picture's own order of the sides for the lengths of the shorter and the longer one.
fn ordered([width, height]: [u64; 2], short: u64, long: u64) -> [u64; 2] {
    if width <= height { [short, long] } else { [long, short] }
}

/// The longer side follows the shorter one.
fn shorter(size: [u64; 2], side: u64) -> [u64; 2] {
    let [width, height] = size;
    ordered(size, side, follow(side, width.max(height), width.min(height)))
}

/// The shorter side follows the longer one.
fn longer(size: [u64; 2], side: u64) -> [u64; 2] {
    let [width, height] = size;
    ordered(size, follow(side, width.min(height), width.max(height)), side)
}

/// The longer side follows the shorter one up to `most`; from there on the shorter one follows.
fn within(size: [u64; 2], side: u64, most: u64) -> [u64; 2] {
    let [width, height] = size;
    let long = follow(side, width.max(height), width.min(height));
    if long <= most { ordered(size, side, long) } else { ordered(size, follow(most, side, long), most) }
}

/// The same as `get_size_with_aspect_ratio` of transformers rounds it: where the longer side is bounded, the shorter one is rounded
/// to the nearest, and the longer one then follows what it was before rounding.
fn within_as_transformers(size: [u64; 2], side: u64, most: u64) -> [u64; 2] {
    let [width, height] = size;
    let (short, long) = (width.min(height) as f64, width.max(height) as f64);
    let mut raw = side as f64;
    if long / short * raw > most as f64 {
        raw = most as f64 * short / long;
    }
    let rounded = raw.round_ties_even();
    if short == rounded {
        return size;
    }
    ordered(size, (rounded as u64).max(1), ((raw * long / short) as u64).max(1))
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
        let expected = Geometry {
            resized: [5, 300],
            origin: [0, 50],
            kept: [5, 200],
            place: [2, 0],
            fill: [0; 3],
            out: [10, 200],
        };
        assert_eq!(got, expected);
    }
}
