//! The weights by which pixels become other pixels.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How pixels are weighed when the size changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// The pixel at the middle of the place, as Pillow's, and as torchvision's `nearest-exact`. Fast, and lowers the accuracy
    /// of models that were not trained with it.
    Nearest,
    /// A triangle. What most models were trained with.
    #[default]
    Bilinear,
    /// A cubic with a = -0.5: sharper.
    Bicubic,
    /// A windowed sinc of three lobes: the sharpest, and the slowest.
    Lanczos,
    /// The mean of what a pixel covers.
    Box,
    /// A windowed sinc of one lobe: as fast as `bilinear`, as sharp as `bicubic`.
    Hamming,
}

impl Interpolation {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 6] = [Self::Nearest, Self::Bilinear, Self::Bicubic, Self::Lanczos, Self::Box, Self::Hamming];

    /// The word in pipeline files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::Bilinear => "bilinear",
            Self::Bicubic => "bicubic",
            Self::Lanczos => "lanczos",
            Self::Box => "box",
            Self::Hamming => "hamming",
        }
    }
}

impl fmt::Display for Interpolation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
