//! How an image becomes a network's input: the pixels to make, and what to make of them.
//!
//! Only the description; [`decode`](crate::decode) makes pixels, [`Normalize`] normalises them.

use super::normalize::Normalize;
use crate::decode::preprocess::{Crop, Interpolation, Preprocess, Resize};

/// The preprocessing that a model's weights expect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// Size, crop and filter.
    pub pixels: Preprocess,
    /// From bytes to the numbers that the network reads.
    pub normalize: Normalize,
}

impl Preset {
    /// Shorter side to `side`, then a square of 224 from the centre: the common evaluation of ImageNet models.
    pub fn crop_224(side: u32, interpolation: Interpolation, normalize: Normalize) -> Self {
        Self::crop(side, 224, interpolation, normalize)
    }

    /// Shorter side to `side`, then a square of `crop` from the centre.
    pub fn crop(side: u32, crop: u32, interpolation: Interpolation, normalize: Normalize) -> Self {
        let (resize, crop) = (Some(Resize::Shorter(side)), Some(Crop::square(crop)));
        let pixels = Preprocess { resize, crop, interpolation, ..Preprocess::default() };
        Self { pixels, normalize }
    }
}

/// In the words of the pipeline file: `256 bicubic, crop 224, normalize tf127`.
impl std::fmt::Display for Preset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, normalize {}", self.pixels, self.normalize)
    }
}
