//! The image half of CLIP: a vision transformer with a norm before it, whose class token is normed and, in most models,
//! projected to where texts lie too.
//!
//! Canonical names are transformers', but for the blocks.

use candle_core::{Result, Tensor};

use crate::decode::Interpolation;

use super::{
    activations::Map,
    arch::{Arch, InputSize, Parameters},
    layers::{Conv, LayerNorm, Linear},
    load::LoadError,
    network::{Network, Outputs},
    normalize::{MeanStd, Normalize},
    preset::Preset,
    reader::ParamReader,
    scheme::{Location, Scheme},
    transformer::{Design, Encoder, first_token, in_tower, patches_of, positions_of_tower, tokens},
};

pub(crate) const NAME: &str = "clip";

/// The architecture `clip`, of the figures that a folder's `config.json` has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip {
    pub(crate) encoder: Design,
    pub(crate) patch: usize,
    pub(crate) side: usize,
    /// How many numbers the class token is projected to, if it is.
    pub(crate) projection: Option<usize>,
}

const SCHEMES: &[Scheme] = &[
    Scheme { name: "transformers", locate: in_whole_model },
    Scheme { name: "transformers, vision model alone", locate: |canonical| in_tower("", canonical) },
];

impl Clip {
    fn n_tokens(&self) -> usize {
        let n_along = self.side / self.patch;
        n_along * n_along + 1
    }
}

impl Arch for Clip {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self, _n_classes: usize) -> Parameters {
        let width = self.encoder.width;
        let mut parameters = Parameters::default();
        parameters.tensor("embeddings.class_embedding", &[width]);
        parameters.conv("embeddings.patch_embedding", width, 3, self.patch);
        parameters.tensor("embeddings.position_embedding.weight", &[self.n_tokens(), width]);
        parameters.layer_norm("pre_layrnorm", width);
        self.encoder.parameters(&mut parameters);
        parameters.layer_norm("post_layernorm", width);
        if let Some(n_out) = self.projection {
            parameters.tensor("visual_projection.weight", &[n_out, width]);
        }
        parameters
    }

    fn classifier(&self) -> Option<&'static str> {
        None
    }

    fn n_features(&self) -> usize {
        self.projection.unwrap_or(self.encoder.width)
    }

    fn schemes(&self) -> &'static [Scheme] {
        SCHEMES
    }

    fn ignored(&self) -> &'static [&'static str] {
        // The half that reads texts, how the two are compared, and numbers from 0 on that older files list.
        &["text_model.", "text_projection.", "logit_scale", "position_ids"]
    }

    fn preset(&self) -> Preset {
        let mean_std = MeanStd { mean: [0.48145466, 0.4578275, 0.40821073], std: [0.26862954, 0.26130258, 0.27577711] };
        Preset::crop(self.side as u32, self.side as u32, Interpolation::Bicubic, Normalize::Custom(mean_std))
    }

    fn input_size(&self) -> InputSize {
        InputSize::Exactly(self.side, self.side)
    }

    fn activations(&self, height: usize, width: usize) -> u64 {
        self.encoder.activations(Map::image(height, width), self.patch, self.n_tokens())
    }

    fn build(&self, reader: &ParamReader<'_>) -> std::result::Result<Box<dyn Network>, LoadError> {
        let projection = match self.projection {
            Some(_) => Some(reader.linear_without_bias("visual_projection")?),
            None => None,
        };
        Ok(Box::new(Tower {
            patches: reader.conv_without_bias("embeddings.patch_embedding", patches_of(self.patch))?,
            class_token: reader.tensor("embeddings.class_embedding")?,
            positions: positions_of_tower(reader)?,
            before: reader.layer_norm("pre_layrnorm", self.encoder.eps)?,
            encoder: self.encoder.read(reader)?,
            after: reader.layer_norm("post_layernorm", self.encoder.eps)?,
            projection,
        }))
    }
}

struct Tower {
    patches: Conv,
    class_token: Tensor,
    positions: Tensor,
    before: LayerNorm,
    encoder: Encoder,
    after: LayerNorm,
    projection: Option<Linear>,
}

impl Network for Tower {
    fn forward(&self, images: &Tensor, _outputs: Outputs) -> Result<Tensor> {
        let tokens = tokens(&self.patches, Some(&self.class_token), &self.positions, images)?;
        let tokens = self.encoder.forward(self.before.forward(&tokens)?)?;
        let pooled = first_token(&self.after, &tokens)?;
        match &self.projection {
            Some(projection) => projection.forward(&pooled),
            None => Ok(pooled),
        }
    }
}

fn in_whole_model(canonical: &str) -> Location {
    match canonical.starts_with("visual_projection.") {
        true => Location::Whole(canonical.to_owned()),
        false => in_tower("vision_model.", canonical),
    }
}
