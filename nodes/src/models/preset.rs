//! How an image becomes a network's input: size, crop, interpolation, normalisation.
//!
//! Only the description; the decoder resizes, [`Normalize`] normalises.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::normalize::Normalize;

/// The preprocessing that a model's weights expect.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// The size before cropping.
    pub resize: Resize,
    /// Height and width cut from the centre, if anything is cut.
    pub crop: Option<[usize; 2]>,
    /// The filter, antialiased as Pillow's.
    pub interpolation: Interpolation,
    /// From bytes to the numbers that the network reads.
    pub normalize: Normalize,
}

/// A target size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resize {
    /// The original size is kept.
    Keep,
    /// The shorter side gets this length, the longer one follows.
    ShorterSide(usize),
    /// Exactly this height and width, whatever becomes of the proportions.
    Exact {
        /// Height in pixels.
        height: usize,
        /// Width in pixels.
        width: usize,
    },
}

/// A resampling filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// The nearest pixel.
    Nearest,
    /// A triangle filter.
    Bilinear,
    /// A cubic filter (a = −0.5).
    Bicubic,
    /// A windowed sinc of three lobes.
    Lanczos,
}

impl std::fmt::Display for Interpolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nearest => "nearest",
            Self::Bilinear => "bilinear",
            Self::Bicubic => "bicubic",
            Self::Lanczos => "lanczos",
        })
    }
}

impl Preset {
    /// Shorter side to `side`, then a square of 224 from the centre: the common evaluation of ImageNet models.
    pub fn crop_224(side: usize, interpolation: Interpolation, normalize: Normalize) -> Self {
        Self {
            resize: Resize::ShorterSide(side),
            crop: Some([224, 224]),
            interpolation,
            normalize,
        }
    }

    /// Height and width of what comes out, where that is the same for every image.
    pub fn output_size(&self) -> Option<[usize; 2]> {
        self.crop.or(match self.resize {
            Resize::Exact { height, width } => Some([height, width]),
            Resize::Keep | Resize::ShorterSide(_) => None,
        })
    }
}
