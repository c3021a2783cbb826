//! The body that the mobile networks share: stages of inverted residual blocks between a stem and a head.
//!
//! Canonical names are timm's: `blocks.STAGE.BLOCK.…`.

use candle_core::{Result, Tensor};

use super::{
    activations::{Map, Tally},
    arch::Parameters,
    layers::{Activation, Channels, Conv, ConvSpec, Linear, Padding, are_computed_in_lines, global_mean, in_lines},
    load::LoadError,
    network::{Network, Outputs},
    reader::ParamReader,
};

/// Length of the pooled feature vector.
pub(crate) const N_FEATURES: usize = 1280;

const N_STEM: usize = 32;

/// What distinguishes one mobile network from another.
pub(crate) struct Design {
    pub stages: &'static [Stage],
    pub padding: Padding,
    pub eps: f64,
}

/// Blocks of one width. Only the first one strides.
pub(crate) struct Stage {
    pub expand: usize,
    pub kernel: usize,
    pub stride: usize,
    pub n_out: usize,
    pub n_blocks: usize,
}

/// One block, placed.
struct Place {
    prefix: String,
    n_in: usize,
    n_out: usize,
    expand: usize,
    kernel: usize,
    stride: usize,
}

impl Design {
    fn places(&self) -> Vec<Place> {
        let mut n_in = N_STEM;
        let mut places = Vec::new();
        for (stage_idx, stage) in self.stages.iter().enumerate() {
            for block_idx in 0..stage.n_blocks {
                places.push(Place {
                    prefix: format!("blocks.{stage_idx}.{block_idx}"),
                    n_in,
                    n_out: stage.n_out,
                    expand: stage.expand,
                    kernel: stage.kernel,
                    stride: if block_idx == 0 { stage.stride } else { 1 },
                });
                n_in = stage.n_out;
            }
        }
        places
    }

    /// The parameters of the whole network.
    pub(crate) fn parameters(&self, n_classes: usize) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.conv("conv_stem", N_STEM, 3, 3);
        parameters.batch_norm("bn1", N_STEM);
        let mut n_last = N_STEM;
        for place in self.places() {
            let n_wide = place.n_in * place.expand;
            for step in place.steps() {
                match step.channels {
                    Channels::Separate => parameters.conv(&step.conv, n_wide, 1, place.kernel),
                    Channels::Mixed => parameters.conv(&step.conv, step.n_out, step.n_in, 1),
                }
                parameters.batch_norm(&step.norm, step.n_out);
            }
            n_last = place.n_out;
        }
        parameters.conv("conv_head", N_FEATURES, n_last, 1);
        parameters.batch_norm("bn2", N_FEATURES);
        parameters.linear("classifier", n_classes, N_FEATURES);
        parameters
    }

    fn spec(&self, stride: usize, channels: Channels, activation: Activation) -> ConvSpec {
        ConvSpec { stride, padding: self.padding, channels, activation }
    }

    /// What must be in memory at once, by elements.
    pub(crate) fn activations(&self, height: usize, width: usize) -> u64 {
        let mut tally = Tally::default();
        let image = Map::image(height, width);
        let kept = image.elements();
        let mut input = tally.conv(0, image, N_STEM, 3, self.spec(2, Channels::Mixed, Activation::Relu6));
        for place in self.places() {
            let mut values = input;
            for (step_idx, step) in place.steps().into_iter().enumerate() {
                let kept = if step_idx == 0 { kept } else { kept + input.elements() };
                let (kernel, stride) = match step.channels {
                    Channels::Separate => (place.kernel, place.stride),
                    Channels::Mixed => (1, 1),
                };
                values =
                    tally.conv(kept, values, step.n_out, kernel, self.spec(stride, step.channels, step.activation));
            }
            if place.is_residual() {
                tally.join(kept, values);
            }
            input = values;
        }
        tally.conv(kept, input, N_FEATURES, 1, self.spec(1, Channels::Mixed, Activation::Relu6));
        tally.peak()
    }

    /// What a thread of the processor holds at once, by elements: whole layers, or of wide ones lines.
    pub(crate) fn activations_on_cpu(&self, height: usize, width: usize) -> u64 {
        let mut tally = Tally::default();
        let image = Map::image(height, width);
        let mut input = image.strided(2, N_STEM);
        tally.alive(image.elements() + input.elements());
        for place in self.places() {
            let wide = Map { channels: place.n_in * place.expand, ..input };
            let narrowed = input.strided(place.stride, place.n_out);
            let ends = input.elements() + narrowed.elements();
            if are_computed_in_lines(wide.channels, wide.height, wide.width) {
                let line = (wide.channels * wide.width) as u64;
                tally.alive(ends + (place.kernel as u64 + 1) * line);
            } else {
                let convolved = input.strided(place.stride, wide.channels);
                tally.alive(ends.max(input.elements() + wide.elements()) + convolved.elements());
            }
            input = narrowed;
        }
        tally.peak()
    }

    /// The network, from checked weights.
    pub(crate) fn build(&self, reader: &ParamReader<'_>) -> std::result::Result<Box<dyn Network>, LoadError> {
        let spec = |stride, channels, activation| self.spec(stride, channels, activation);
        let stem = reader.conv_norm("conv_stem", "bn1", self.eps, spec(2, Channels::Mixed, Activation::Relu6))?;
        let mut blocks = Vec::new();
        for place in self.places() {
            let convs = place
                .steps()
                .into_iter()
                .map(|step| {
                    let stride = if step.channels == Channels::Separate { place.stride } else { 1 };
                    let spec = spec(stride, step.channels, step.activation);
                    reader.conv_norm(&step.conv, &step.norm, self.eps, spec)
                })
                .collect::<std::result::Result<Vec<_>, _>>()?;
            blocks.push(Block { convs, residual: place.is_residual() });
        }
        let head = reader.conv_norm("conv_head", "bn2", self.eps, spec(1, Channels::Mixed, Activation::Relu6))?;
        let classifier = reader.linear("classifier", Activation::Identity)?;
        Ok(Box::new(Mobile { stem, blocks, head, classifier }))
    }
}

/// One convolution of a block.
struct Step {
    conv: String,
    norm: String,
    n_in: usize,
    n_out: usize,
    channels: Channels,
    activation: Activation,
}

impl Place {
    /// Whether the block's input is added to what it makes of it.
    fn is_residual(&self) -> bool {
        self.stride == 1 && self.n_in == self.n_out
    }

    /// Widen (unless nothing is widened), filter each channel, narrow without an activation.
    fn steps(&self) -> Vec<Step> {
        let n_wide = self.n_in * self.expand;
        let mut steps = Vec::new();
        let mut step = |conv: &str, n_in, n_out, channels, activation| {
            let norm = format!("{}.bn{}", self.prefix, steps.len() + 1);
            steps.push(Step { conv: format!("{}.{conv}", self.prefix), norm, n_in, n_out, channels, activation });
        };
        if self.expand == 1 {
            step("conv_dw", n_wide, n_wide, Channels::Separate, Activation::Relu6);
            step("conv_pw", n_wide, self.n_out, Channels::Mixed, Activation::Identity);
        } else {
            step("conv_pw", self.n_in, n_wide, Channels::Mixed, Activation::Relu6);
            step("conv_dw", n_wide, n_wide, Channels::Separate, Activation::Relu6);
            step("conv_pwl", n_wide, self.n_out, Channels::Mixed, Activation::Identity);
        }
        steps
    }
}

struct Mobile {
    stem: Conv,
    blocks: Vec<Block>,
    head: Conv,
    classifier: Linear,
}

struct Block {
    convs: Vec<Conv>,
    residual: bool,
}

impl Network for Mobile {
    fn forward(&self, images: &Tensor, outputs: Outputs) -> Result<Tensor> {
        let mut values = self.stem.forward(images)?;
        for block in &self.blocks {
            values = block.forward(&values)?;
        }
        let features = global_mean(&self.head.forward(&values)?)?;
        match outputs {
            Outputs::Features => Ok(features),
            Outputs::Logits => self.classifier.forward(&features),
        }
    }
}

impl Block {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        if let Some(done) = in_lines(&self.convs, self.residual, input)? {
            return Ok(done);
        }
        let (last, convs) = self.convs.split_last().expect("every block has convolutions");
        let mut values = input.clone();
        for conv in convs {
            values = conv.forward(&values)?;
        }
        if self.residual { last.forward_and_add(&values, input, Activation::Identity) } else { last.forward(&values) }
    }
}

/// Splits a canonical name of a block into stage, block and the rest (`conv_pw.weight`).
pub(crate) fn block_name(canonical: &str) -> Option<(usize, usize, &str)> {
    let (stage, rest) = canonical.strip_prefix("blocks.")?.split_once('.')?;
    let (block, rest) = rest.split_once('.')?;
    Some((stage.parse().ok()?, block.parse().ok()?, rest))
}

/// A block's place in a list of all blocks, for schemes that number them through.
pub(crate) fn block_number(stages: &[Stage], stage_idx: usize, block_idx: usize) -> usize {
    stages.iter().take(stage_idx).map(|stage| stage.n_blocks).sum::<usize>() + block_idx
}
