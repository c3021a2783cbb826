//! EfficientNet-Lite0: EfficientNet without squeeze-and-excitation, with ReLU6, padded as TensorFlow pads.

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

/// The architecture `efficientnet_lite0`.
#[derive(Debug)]
pub struct EfficientNetLite0;

const STAGES: &[Stage] = &[
    Stage { expand: 1, kernel: 3, stride: 1, n_out: 16, n_blocks: 1 },
    Stage { expand: 6, kernel: 3, stride: 2, n_out: 24, n_blocks: 2 },
    Stage { expand: 6, kernel: 5, stride: 2, n_out: 40, n_blocks: 2 },
    Stage { expand: 6, kernel: 3, stride: 2, n_out: 80, n_blocks: 3 },
    Stage { expand: 6, kernel: 5, stride: 1, n_out: 112, n_blocks: 3 },
    Stage { expand: 6, kernel: 5, stride: 2, n_out: 192, n_blocks: 4 },
    Stage { expand: 6, kernel: 3, stride: 1, n_out: 320, n_blocks: 1 },
];

const DESIGN: Design = Design { stages: STAGES, padding: Padding::Same, eps: 1e-3 };

const SCHEMES: &[Scheme] =
    &[Scheme { name: "efficientnet-pytorch", locate: in_efficientnet_pytorch }, Scheme::canonical("timm")];

impl Arch for EfficientNetLite0 {
    fn name(&self) -> &'static str {
        "efficientnet_lite0"
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
        Preset::crop_224(256, Interpolation::Bicubic, Normalize::Tf127)
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

/// `blocks.1.0.bn2.bias` is `_blocks.1._bn1.bias`: blocks are numbered through, norms from zero, and a block that widens
/// nothing has no `_bn0`.
fn in_efficientnet_pytorch(canonical: &str) -> Location {
    let Some((stage_idx, block_idx, rest)) = block_name(canonical) else {
        return Location::Whole(match canonical.split_once('.') {
            Some(("conv_stem", rest)) => format!("_conv_stem.{rest}"),
            Some(("bn1", rest)) => format!("_bn0.{rest}"),
            Some(("conv_head", rest)) => format!("_conv_head.{rest}"),
            Some(("bn2", rest)) => format!("_bn1.{rest}"),
            Some(("classifier", rest)) => format!("_fc.{rest}"),
            _ => canonical.to_owned(),
        });
    };
    let (layer, rest) = rest.split_once('.').unwrap_or((rest, ""));
    let layer = match (STAGES[stage_idx].expand == 1, layer) {
        (_, "conv_dw") => "_depthwise_conv",
        (true, "conv_pw") | (false, "conv_pwl") => "_project_conv",
        (false, "conv_pw") => "_expand_conv",
        (false, "bn1") => "_bn0",
        (true, "bn1") | (false, "bn2") => "_bn1",
        (true, "bn2") | (false, "bn3") => "_bn2",
        (_, other) => other,
    };
    Location::Whole(format!("_blocks.{}.{layer}.{rest}", block_number(STAGES, stage_idx, block_idx)))
}
