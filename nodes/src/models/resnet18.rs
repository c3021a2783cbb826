//! ResNet-18.

use crate::decode::Interpolation;

use super::{
    arch::{Arch, InputSize, Parameters},
    load::LoadError,
    network::Network,
    normalize::Normalize,
    preset::Preset,
    reader::ParamReader,
    resnet::{BlockKind, Design, SCHEMES},
    scheme::Scheme,
};

/// The architecture `resnet18`.
#[derive(Debug)]
pub struct ResNet18;

const DESIGN: Design = Design { block: BlockKind::Basic, n_blocks: [2, 2, 2, 2] };

impl Arch for ResNet18 {
    fn name(&self) -> &'static str {
        "resnet18"
    }

    fn parameters(&self, n_classes: usize) -> Parameters {
        DESIGN.parameters(n_classes)
    }

    fn classifier(&self) -> Option<&'static str> {
        Some("fc.weight")
    }

    fn n_features(&self) -> usize {
        DESIGN.n_features()
    }

    fn schemes(&self) -> &'static [Scheme] {
        SCHEMES
    }

    fn preset(&self) -> Preset {
        Preset::crop_224(256, Interpolation::Bilinear, Normalize::Imagenet)
    }

    fn input_size(&self) -> InputSize {
        InputSize::AtLeast(32)
    }

    fn activations(&self, height: usize, width: usize) -> u64 {
        DESIGN.activations(height, width)
    }

    fn build(&self, reader: &ParamReader<'_>) -> Result<Box<dyn Network>, LoadError> {
        DESIGN.build(reader)
    }
}
