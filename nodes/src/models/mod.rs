//! Model architectures in candle, one file each.
//!
//! A model is an [`Arch`] (names, shapes, preprocessing, how to build it) and weights from a [`TensorSource`]; together
//! they are an [`ImageModel`]. Nothing here opens a file, decodes an image or starts a thread; what is computed in
//! parallel runs on the rayon pool that the caller installed. A model is added by a file here, a line in [`ARCHS`] and
//! a golden output in `tests/golden`.

mod activations;
mod arch;
mod clip;
mod dinov2;
mod efficientnet_lite0;
pub mod folder;
mod image_model;
mod inverted_residual;
pub mod layers;
pub mod load;
mod mobilenet_v2;
mod network;
pub mod normalize;
pub mod params;
mod positions;
pub mod preset;
mod random;
mod reader;
mod resnet;
mod resnet18;
mod resnet50;
mod scheme;
mod siglip;
pub(crate) mod transformer;
mod vit_base_patch16_224;

pub use arch::{Arch, ArchRef, InputSize, Parameter, Parameters};
pub use clip::Clip;
pub use dinov2::Dinov2;
pub use image_model::{ForwardError, ImageModel, Length};
pub use load::{LoadError, identify};
pub use network::{Network, Outputs};
pub use normalize::Normalize;
pub use params::{Params, ReadTensorError, TensorSource};
pub use preset::Preset;
pub use random::RandomWeights;
pub use reader::ParamReader;
pub use scheme::{Location, Scheme};
pub use siglip::Siglip;

/// Every architecture that a name alone says all of, in alphabetical order. Others have figures of their own in a
/// folder's `config.json`: [`Clip`], [`Dinov2`], [`Siglip`].
pub const ARCHS: &[&dyn Arch] = &[
    &efficientnet_lite0::EfficientNetLite0,
    &mobilenet_v2::MobileNetV2,
    &resnet18::ResNet18,
    &resnet50::ResNet50,
    &vit_base_patch16_224::VitBasePatch16,
];

/// The names of the architectures whose figures stand in a folder's `config.json`.
pub const DESCRIBED: &[&str] = &[clip::NAME, dinov2::NAME, siglip::NAME];

/// The architecture of this name.
pub fn arch(name: &str) -> Option<&'static dyn Arch> {
    ARCHS.iter().copied().find(|arch| arch.name() == name)
}
