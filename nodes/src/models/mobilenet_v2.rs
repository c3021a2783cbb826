//! MobileNetV2 of width 1.0.

use crate::decode::Interpolation;

use super::{
    arch::{Arch, InputSize, Parameters},
    inverted_residual::{Design, N_FEATURES, Stage, block_name, block_number},
    layers::Padding,
    load::LoadError,
    network::Network,
    normalize::Normalize,
    preset::Preset,
    reader::ParamReader,
    scheme::{Location, Scheme},
};

/// The architecture `mobilenet_v2`.
#[derive(Debug)]
pub struct MobileNetV2;

const STAGES: &[Stage] = &[
    Stage { expand: 1, kernel: 3, stride: 1, n_out: 16, n_blocks: 1 },
    Stage { expand: 6, kernel: 3, stride: 2, n_out: 24, n_blocks: 2 },
    Stage { expand: 6, kernel: 3, stride: 2, n_out: 32, n_blocks: 3 },
    Stage { expand: 6, kernel: 3, stride: 2, n_out: 64, n_blocks: 4 },
    Stage { expand: 6, kernel: 3, stride: 1, n_out: 96, n_blocks: 3 },
    Stage { expand: 6, kernel: 3, stride: 2, n_out: 160, n_blocks: 3 },
    Stage { expand: 6, kernel: 3, stride: 1, n_out: 320, n_blocks: 1 },
];

const DESIGN: Design = Design { stages: STAGES, padding: Padding::Centred, eps: 1e-5 };

const SCHEMES: &[Scheme] = &[Scheme { name: "torchvision", locate: in_torchvision }, Scheme::canonical("timm")];

impl Arch for MobileNetV2 {
    fn name(&self) -> &'static str {
        "mobilenet_v2"
    }

    fn parameters(&self, n_classes: usize) -> Parameters {
        DESIGN.parameters(n_classes)
    }

    fn classifier(&self) -> Option<&'static str> {
        Some("classifier.weight")
    }

    fn n_features(&self) -> usize {
        N_FEATURES
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

    fn activations_on_cpu(&self, height: usize, width: usize) -> u64 {
        DESIGN.activations_on_cpu(height, width)
    }

    fn build(&self, reader: &ParamReader<'_>) -> Result<Box<dyn Network>, LoadError> {
        DESIGN.build(reader)
    }
}

/// `blocks.1.0.bn2.bias` is `features.2.conv.1.1.bias`: stem, blocks and head are numbered through; in a block the
/// activated convolutions are pairs of convolution and norm, the last convolution and its norm stand side by side.
fn in_torchvision(canonical: &str) -> Location {
    let Some((stage_idx, block_idx, rest)) = block_name(canonical) else {
        let n_blocks = block_number(STAGES, STAGES.len(), 0);
        return Location::Whole(match canonical.split_once('.') {
            Some(("conv_stem", rest)) => format!("features.0.0.{rest}"),
            Some(("bn1", rest)) => format!("features.0.1.{rest}"),
            Some(("conv_head", rest)) => format!("features.{}.0.{rest}", n_blocks + 1),
            Some(("bn2", rest)) => format!("features.{}.1.{rest}", n_blocks + 1),
            Some(("classifier", rest)) => format!("classifier.1.{rest}"),
            _ => canonical.to_owned(),
        });
    };
    let (layer, rest) = rest.split_once('.').unwrap_or((rest, ""));
    let layer = match (STAGES[stage_idx].expand == 1, layer) {
        (true, "conv_dw") | (false, "conv_pw") => "0.0",
        (_, "bn1") => "0.1",
        (true, "conv_pw") => "1",
        (true, "bn2") => "2",
        (false, "conv_dw") => "1.0",
        (false, "bn2") => "1.1",
        (false, "conv_pwl") => "2",
        (false, "bn3") => "3",
        (_, other) => other,
    };
    let block_number = block_number(STAGES, stage_idx, block_idx) + 1;
    Location::Whole(format!("features.{block_number}.conv.{layer}.{rest}"))
}
