//! The image half of SigLIP: a vision transformer without a class token, whose patches are pooled by a learnt query.
//!
//! Canonical names are transformers', but for the blocks.

use candle_core::{IndexOp, Result, Tensor};

use crate::decode::{Interpolation, Preprocess, Resize};

use super::{
    activations::Map,
    arch::{Arch, InputSize, Parameters},
    layers::{Activation, Conv, LayerNorm, Linear},
    load::LoadError,
    network::{Network, Outputs},
    normalize::Normalize,
    preset::Preset,
    reader::ParamReader,
    scheme::Scheme,
    transformer::{Design, Encoder, in_tower, mix, patches_of, positions_of_tower, tokens},
};

pub(crate) const NAME: &str = "siglip";

/// The architecture `siglip`, of the figures that a folder's `config.json` has. SigLIP 2 at a fixed resolution is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Siglip {
    pub(crate) encoder: Design,
    pub(crate) activation: Activation,
    pub(crate) patch: usize,
    pub(crate) side: usize,
}

const SCHEMES: &[Scheme] = &[
    Scheme { name: "transformers", locate: |canonical| in_tower("vision_model.", canonical) },
    Scheme { name: "transformers, vision model alone", locate: |canonical| in_tower("", canonical) },
];

impl Siglip {
    fn n_tokens(&self) -> usize {
        let n_along = self.side / self.patch;
        n_along * n_along
    }
}

impl Arch for Siglip {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self, _n_classes: usize) -> Parameters {
        let Design { width, n_hidden, .. } = self.encoder;
        let mut parameters = Parameters::default();
        parameters.conv("embeddings.patch_embedding", width, 3, self.patch);
        parameters.tensor("embeddings.patch_embedding.bias", &[width]);
        parameters.tensor("embeddings.position_embedding.weight", &[self.n_tokens(), width]);
        self.encoder.parameters(&mut parameters);
        parameters.layer_norm("post_layernorm", width);
        parameters.tensor("head.probe", &[1, 1, width]);
        parameters.tensor("head.attention.in_proj_weight", &[3 * width, width]);
        parameters.tensor("head.attention.in_proj_bias", &[3 * width]);
        parameters.linear("head.attention.out_proj", width, width);
        parameters.layer_norm("head.layernorm", width);
        parameters.linear("head.mlp.fc1", n_hidden, width);
        parameters.linear("head.mlp.fc2", width, n_hidden);
        parameters
    }

    fn classifier(&self) -> Option<&'static str> {
        None
    }

    fn n_features(&self) -> usize {
        self.encoder.width
    }

    fn schemes(&self) -> &'static [Scheme] {
        SCHEMES
    }

    fn ignored(&self) -> &'static [&'static str] {
        // The half that reads texts, how the two are compared, and numbers from 0 on that older files list.
        &["text_model.", "logit_scale", "logit_bias", "position_ids"]
    }

    fn preset(&self) -> Preset {
        let side = self.side as u32;
        let resize = Some(Resize::Exact { height: side, width: side });
        let pixels = Preprocess { resize, interpolation: Interpolation::Bicubic, ..Preprocess::default() };
        Preset { pixels, normalize: Normalize::Half }
    }

    fn input_size(&self) -> InputSize {
        InputSize::Exactly(self.side, self.side)
    }

    fn activations(&self, height: usize, width: usize) -> u64 {
        // Pooling holds less than a block does: keys and values without queries, and scores of one query.
        self.encoder.activations(Map::image(height, width), self.patch, self.n_tokens())
    }

    fn build(&self, reader: &ParamReader<'_>) -> std::result::Result<Box<dyn Network>, LoadError> {
        Ok(Box::new(Tower {
            patches: reader.conv("embeddings.patch_embedding", patches_of(self.patch))?,
            positions: positions_of_tower(reader)?,
            encoder: self.encoder.read(reader)?,
            norm: reader.layer_norm("post_layernorm", self.encoder.eps)?,
            pooling: self.pooling(reader)?,
        }))
    }
}

impl Siglip {
    fn pooling(&self, reader: &ParamReader<'_>) -> std::result::Result<Pooling, LoadError> {
        let Design { width, n_heads, eps, .. } = self.encoder;
        let weight = reader.values("head.attention.in_proj_weight")?;
        let bias = reader.values("head.attention.in_proj_bias")?;
        let probe = reader.values("head.probe")?;
        let parts = || -> Result<_> {
            // The query is the same for every image, so it is computed once.
            let query = probe.reshape((1, width))?.matmul(&weight.narrow(0, 0, width)?.t()?)?;
            let query = (query + bias.narrow(0, 0, width)?.unsqueeze(0)?)?;
            let head_width = width / n_heads;
            let query = (query * (1.0 / (head_width as f64).sqrt()))?.reshape((1, n_heads, 1, head_width))?;
            Ok((query, weight.narrow(0, width, 2 * width)?, bias.narrow(0, width, 2 * width)?))
        };
        let (query, weight, bias) = parts().map_err(|error| reader.device_error(error))?;
        Ok(Pooling {
            query: reader.place(query)?,
            keys_and_values: reader.linear_of(weight, bias, Activation::Identity)?,
            proj: reader.linear("head.attention.out_proj", Activation::Identity)?,
            norm: reader.layer_norm("head.layernorm", eps)?,
            fc1: reader.linear("head.mlp.fc1", self.activation)?,
            fc2: reader.linear("head.mlp.fc2", Activation::Identity)?,
        })
    }
}

struct Tower {
    patches: Conv,
    positions: Tensor,
    encoder: Encoder,
    norm: LayerNorm,
    pooling: Pooling,
}

impl Network for Tower {
    fn forward(&self, images: &Tensor, _outputs: Outputs) -> Result<Tensor> {
        let tokens = tokens(&self.patches, None, &self.positions, images)?;
        self.pooling.forward(&self.norm.forward(&self.encoder.forward(tokens)?)?)
    }
}

/// One query over all tokens, and a small network over what it finds.
struct Pooling {
    /// `[1, heads, 1, n]`, scaled.
    query: Tensor,
    keys_and_values: Linear,
    proj: Linear,
    norm: LayerNorm,
    fc1: Linear,
    fc2: Linear,
}

impl Pooling {
    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let (n_rows, n_tokens, _) = tokens.dims3()?;
        let (_, n_heads, _, head_width) = self.query.dims4()?;
        let both = self.keys_and_values.forward(tokens)?;
        let both = both.reshape((n_rows, n_tokens, 2, n_heads, head_width))?.permute((2, 0, 3, 1, 4))?;
        let query = self.query.broadcast_as((n_rows, n_heads, 1, head_width))?.contiguous()?;
        let found = self.proj.forward(&mix(&query, &both.i(0)?.contiguous()?, &both.i(1)?.contiguous()?)?)?;
        let hidden = self.fc1.forward(&self.norm.forward(&found)?)?;
        self.fc2.forward_and_add(&hidden, &found)?.i((.., 0))
    }
}
