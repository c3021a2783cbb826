//! What a folder says about its architecture.

use crate::models::{ArchRef, Clip, Dinov2, Siglip, arch};

/// An architecture of the list, or one with figures of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Described {
    /// The one of this name, which is in the list.
    Listed(&'static str),
    /// The image half of CLIP.
    Clip(Clip),
    /// The image half of SigLIP.
    Siglip(Siglip),
    /// DINOv2, with or without registers.
    Dinov2(Dinov2),
}

impl Described {
    /// The architecture itself.
    pub fn arch(self) -> ArchRef {
        match self {
            Self::Listed(name) => arch(name).expect("a folder names architectures of the list").into(),
            Self::Clip(clip) => ArchRef::described(clip),
            Self::Siglip(siglip) => ArchRef::described(siglip),
            Self::Dinov2(dinov2) => ArchRef::described(dinov2),
        }
    }
}
