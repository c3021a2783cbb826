//! Decoding to a fraction of the size.

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
}
