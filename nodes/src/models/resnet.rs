//! The body that the ResNets share: four stages of residual blocks.
//!
//! Canonical names are torchvision's, which are timm's too. In bottlenecks the middle convolution strides.

use candle_core::{Result, Tensor};

use super::{
    activations::{Map, Tally},
    arch::Parameters,
    layers::{Activation, Channels, Conv, ConvSpec, Linear, Padding, global_mean, max_pool_3x3_stride_2},
    load::LoadError,
    network::{Network, Outputs},
    reader::ParamReader,
    scheme::{Location, Scheme},
};

const EPS: f64 = 1e-5;
const N_STEM: usize = 64;

/// How torchvision, timm and Hugging Face name the tensors of every ResNet.
pub(crate) const SCHEMES: &[Scheme] =
    &[Scheme::canonical("torchvision"), Scheme { name: "huggingface", locate: in_huggingface }];

/// What distinguishes one ResNet from another.
pub(crate) struct Design {
    pub block: BlockKind,
    pub n_blocks: [usize; 4],
}

/// The convolutions of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// 3×3, 3×3.
    Basic,
    /// 1×1, 3×3, 1×1 with four times the channels out.
    Bottleneck,
}

/// One convolution with its norm.
struct Step {
    conv: String,
    norm: String,
    n_in: usize,
    n_out: usize,
    kernel: usize,
    stride: usize,
    activation: Activation,
}

impl Step {
    fn spec(&self) -> ConvSpec {
        ConvSpec {
            stride: self.stride,
            padding: Padding::Centred,
            channels: Channels::Mixed,
            activation: self.activation,
        }
    }
}

/// One block: what is done to its input, and how the input is brought to the same shape where that is needed.
struct Place {
    steps: Vec<Step>,
    shortcut: Option<Step>,
}

impl Design {
    pub(crate) fn n_features(&self) -> usize {
        match self.block {
            BlockKind::Basic => 512,
            BlockKind::Bottleneck => 2048,
        }
    }

    fn stem() -> Step {
        Step {
            conv: "conv1".to_owned(),
            norm: "bn1".to_owned(),
            n_in: 3,
            n_out: N_STEM,
            kernel: 7,
            stride: 2,
            activation: Activation::Relu,
        }
    }

    fn places(&self) -> Vec<Place> {
        let mut n_in = N_STEM;
        let mut places = Vec::new();
        for (stage_idx, n_blocks) in self.n_blocks.into_iter().enumerate() {
            let width = N_STEM << stage_idx;
            for block_idx in 0..n_blocks {
                let stride = if stage_idx > 0 && block_idx == 0 { 2 } else { 1 };
                let place = self.place(&format!("layer{}.{block_idx}", stage_idx + 1), n_in, width, stride);
                n_in = place.steps.last().map_or(n_in, |step| step.n_out);
                places.push(place);
            }
        }
        places
    }

    fn place(&self, prefix: &str, n_in: usize, width: usize, stride: usize) -> Place {
        let step = |number: usize, n_in, n_out, kernel, stride, activation| Step {
            conv: format!("{prefix}.conv{number}"),
            norm: format!("{prefix}.bn{number}"),
            n_in,
            n_out,
            kernel,
            stride,
            activation,
        };
        // The last step is activated only after the input has been added.
        let (n_out, steps) = match self.block {
            BlockKind::Basic => (
                width,
                vec![
                    step(1, n_in, width, 3, stride, Activation::Relu),
                    step(2, width, width, 3, 1, Activation::Identity),
                ],
            ),
            BlockKind::Bottleneck => (
                4 * width,
                vec![
                    step(1, n_in, width, 1, 1, Activation::Relu),
                    step(2, width, width, 3, stride, Activation::Relu),
                    step(3, width, 4 * width, 1, 1, Activation::Identity),
                ],
            ),
        };
        let shortcut = (stride != 1 || n_in != n_out).then(|| Step {
            conv: format!("{prefix}.downsample.0"),
            norm: format!("{prefix}.downsample.1"),
            n_in,
            n_out,
            kernel: 1,
            stride,
            activation: Activation::Identity,
        });
        Place { steps, shortcut }
    }

    /// The parameters of the whole network.
    pub(crate) fn parameters(&self, n_classes: usize) -> Parameters {
        let mut parameters = Parameters::default();
        let mut add = |step: &Step| {
            parameters.conv(&step.conv, step.n_out, step.n_in, step.kernel);
            parameters.batch_norm(&step.norm, step.n_out);
        };
        add(&Self::stem());
        for place in self.places() {
            place.steps.iter().chain(&place.shortcut).for_each(&mut add);
        }
        parameters.linear("fc", n_classes, self.n_features());
        parameters
    }

    /// What must be in memory at once, by elements.
    pub(crate) fn activations(&self, height: usize, width: usize) -> u64 {
        let mut tally = Tally::default();
        let image = Map::image(height, width);
        let kept = image.elements();
        let stem = Self::stem();
        let values = tally.conv(0, image, stem.n_out, stem.kernel, stem.spec());
        let mut input = tally.max_pool(kept, values);
        for place in self.places() {
            let mut values = input;
            for (step_idx, step) in place.steps.iter().enumerate() {
                let kept = if step_idx == 0 { kept } else { kept + input.elements() };
                values = tally.conv(kept, values, step.n_out, step.kernel, step.spec());
            }
            match &place.shortcut {
                Some(step) => {
                    tally.conv(kept + values.elements(), input, step.n_out, step.kernel, step.spec());
                    tally.join(kept + input.elements(), values);
                }
                None => tally.join(kept, values),
            }
            input = values;
        }
        tally.peak()
    }

    /// The network, from checked weights.
    pub(crate) fn build(&self, reader: &ParamReader<'_>) -> std::result::Result<Box<dyn Network>, LoadError> {
        let read = |step: &Step| reader.conv_norm(&step.conv, &step.norm, EPS, step.spec());
        let mut blocks = Vec::new();
        for place in self.places() {
            let convs = place.steps.iter().map(read).collect::<std::result::Result<Vec<_>, _>>()?;
            let shortcut = place.shortcut.as_ref().map(read).transpose()?;
            blocks.push(Block { convs, shortcut });
        }
        Ok(Box::new(ResNet {
            stem: read(&Self::stem())?,
            blocks,
            classifier: reader.linear("fc", Activation::Identity)?,
        }))
    }
}

struct ResNet {
    stem: Conv,
    blocks: Vec<Block>,
    classifier: Linear,
}

struct Block {
    convs: Vec<Conv>,
    shortcut: Option<Conv>,
}

impl Network for ResNet {
    fn forward(&self, images: &Tensor, outputs: Outputs) -> Result<Tensor> {
        let mut values = max_pool_3x3_stride_2(&self.stem.forward(images)?)?;
        for block in &self.blocks {
            values = block.forward(&values)?;
        }
        let features = global_mean(&values)?;
        match outputs {
            Outputs::Features => Ok(features),
            Outputs::Logits => self.classifier.forward(&features),
        }
    }
}

impl Block {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let shortcut = match &self.shortcut {
            Some(shortcut) => shortcut.forward(input)?,
            None => input.clone(),
        };
        let (last, convs) = self.convs.split_last().expect("every block has convolutions");
        let mut values = input.clone();
        for conv in convs {
            values = conv.forward(&values)?;
        }
        last.forward_and_add(&values, &shortcut, Activation::Relu)
    }
}

/// `layer2.0.conv1.weight` is `resnet.encoder.stages.1.layers.0.layer.0.convolution.weight`.
fn in_huggingface(canonical: &str) -> Location {
    Location::Whole(huggingface_name(canonical).unwrap_or_else(|| canonical.to_owned()))
}

fn huggingface_name(canonical: &str) -> Option<String> {
    let (first, rest) = canonical.split_once('.')?;
    match first {
        "conv1" => return Some(format!("resnet.embedder.embedder.convolution.{rest}")),
        "bn1" => return Some(format!("resnet.embedder.embedder.normalization.{rest}")),
        "fc" => return Some(format!("classifier.1.{rest}")),
        _ => {}
    }
    let stage: usize = first.strip_prefix("layer")?.parse().ok()?;
    let (block, rest) = rest.split_once('.')?;
    let prefix = format!("resnet.encoder.stages.{}.layers.{block}", stage.checked_sub(1)?);
    if let Some(rest) = rest.strip_prefix("downsample.0.") {
        return Some(format!("{prefix}.shortcut.convolution.{rest}"));
    }
    if let Some(rest) = rest.strip_prefix("downsample.1.") {
        return Some(format!("{prefix}.shortcut.normalization.{rest}"));
    }
    let (layer, rest) = rest.split_once('.')?;
    let (part, number) = match (layer.strip_prefix("conv"), layer.strip_prefix("bn")) {
        (Some(number), _) => ("convolution", number),
        (_, Some(number)) => ("normalization", number),
        _ => return None,
    };
    let number: usize = number.parse().ok()?;
    Some(format!("{prefix}.layer.{}.{part}.{rest}", number.checked_sub(1)?))
}
