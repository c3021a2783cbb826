//! The encoder that the vision transformers share: blocks of attention and a small network, each normed before and added
//! to what came in.
//!
//! Canonical names are timm's. What makes one model differ from another are the figures of a [`Design`]. Where a model
//! scales what a block adds, the scale is folded into the layer before it.

use candle_core::{D, IndexOp, Result, Tensor};
use candle_nn::ops::softmax_last_dim;

use super::{
    activations::{Map, Tally},
    arch::Parameters,
    layers::{Activation, Channels, Conv, ConvSpec, LayerNorm, Linear, Padding, add_and_activate, attend, gate},
    load::LoadError,
    reader::ParamReader,
    scheme::Location,
};

/// The figures of an encoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Design {
    pub n_blocks: usize,
    /// Numbers of one token; a multiple of `n_heads`.
    pub width: usize,
    pub n_heads: usize,
    /// Numbers between the two layers of a block's small network.
    pub n_hidden: usize,
    pub mlp: Mlp,
    pub layer_scale: LayerScale,
    /// What layer norms add to a variance.
    pub eps: f64,
}

/// The small network of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mlp {
    /// Two layers with an activation between them.
    Plain(Activation),
    /// SwiGLU: the first layer gives twice as much, and one half gates the other.
    Gated,
}

/// Whether what a block adds is multiplied, number by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerScale {
    Absent,
    Present,
}

impl Design {
    /// Numbers that the first layer of a block's small network gives.
    fn n_first(&self) -> usize {
        match self.mlp {
            Mlp::Plain(_) => self.n_hidden,
            Mlp::Gated => 2 * self.n_hidden,
        }
    }

    /// Adds what all blocks are made of.
    pub(crate) fn parameters(&self, parameters: &mut Parameters) {
        let width = self.width;
        for block_idx in 0..self.n_blocks {
            let prefix = format!("blocks.{block_idx}");
            parameters.layer_norm(&format!("{prefix}.norm1"), width);
            parameters.linear(&format!("{prefix}.attn.qkv"), 3 * width, width);
            parameters.linear(&format!("{prefix}.attn.proj"), width, width);
            parameters.layer_norm(&format!("{prefix}.norm2"), width);
            parameters.linear(&format!("{prefix}.mlp.fc1"), self.n_first(), width);
            parameters.linear(&format!("{prefix}.mlp.fc2"), width, self.n_hidden);
            if self.layer_scale == LayerScale::Present {
                parameters.tensor(format!("{prefix}.ls1.gamma"), &[width]);
                parameters.tensor(format!("{prefix}.ls2.gamma"), &[width]);
            }
        }
    }

    /// The most values of one image that are alive at once, up to the end of the encoder, which sees so many tokens.
    pub(crate) fn activations(&self, image: Map, patch: usize, n_tokens: usize) -> u64 {
        let mut tally = Tally::default();
        let patches = tally.conv(0, image, self.width, patch, patches_of(patch));
        // The image and its patches are alive to the end.
        let kept = image.elements() + patches.elements();
        let n_tokens = n_tokens as u64;
        let [tokens, hidden] = [self.width, self.n_hidden].map(|width| n_tokens * width as u64);
        let scores = self.n_heads as u64 * n_tokens * n_tokens;
        // A block's input and the same normed are alive through all of attention.
        tally.linear(kept + tokens, tokens, 3 * tokens, Activation::Identity);
        // Query, key and value as the layer gives them and apart; the scores, and those as weights.
        tally.alive(kept + 2 * tokens + 3 * tokens + 3 * tokens + 2 * scores);
        // The weights, and the mixed values, turned around.
        tally.alive(kept + 2 * tokens + 3 * tokens + 3 * tokens + scores + 2 * tokens);
        // The block's input, what attention made of it, and that normed.
        let before = kept + 2 * tokens;
        match self.mlp {
            Mlp::Plain(activation) => tally.linear(before, tokens, hidden, activation),
            Mlp::Gated => {
                tally.linear(before, tokens, 2 * hidden, Activation::Identity);
                // Both halves together and apart, and the gate open.
                tally.alive(before + tokens + 2 * hidden + 3 * hidden);
            }
        }
        tally.peak()
    }

    /// Puts the blocks together.
    pub(crate) fn read(&self, reader: &ParamReader<'_>) -> std::result::Result<Encoder, LoadError> {
        let blocks = (0..self.n_blocks).map(|block_idx| Block::read(self, reader, &format!("blocks.{block_idx}")));
        Ok(Encoder { blocks: blocks.collect::<std::result::Result<_, _>>()? })
    }
}

/// All blocks with their weights.
pub(crate) struct Encoder {
    blocks: Vec<Block>,
}

impl Encoder {
    /// Runs over `[rows, tokens, width]`.
    pub(crate) fn forward(&self, mut tokens: Tensor) -> Result<Tensor> {
        for block in &self.blocks {
            tokens = block.forward(&tokens)?;
        }
        Ok(tokens)
    }
}

struct Block {
    norm1: LayerNorm,
    qkv: Linear,
    proj: Linear,
    n_heads: usize,
    norm2: LayerNorm,
    fc1: Linear,
    mlp: Mlp,
    fc2: Linear,
}

impl Block {
    fn read(design: &Design, reader: &ParamReader<'_>, prefix: &str) -> std::result::Result<Self, LoadError> {
        let last_of = |name: &str, scale: &str| match design.layer_scale {
            LayerScale::Absent => reader.linear(&format!("{prefix}.{name}"), Activation::Identity),
            LayerScale::Present => {
                reader.linear_scaled(&format!("{prefix}.{name}"), &format!("{prefix}.{scale}.gamma"))
            }
        };
        let between = match design.mlp {
            Mlp::Plain(activation) => activation,
            Mlp::Gated => Activation::Identity,
        };
        Ok(Self {
            norm1: reader.layer_norm(&format!("{prefix}.norm1"), design.eps)?,
            qkv: reader.linear(&format!("{prefix}.attn.qkv"), Activation::Identity)?,
            proj: last_of("attn.proj", "ls1")?,
            n_heads: design.n_heads,
            norm2: reader.layer_norm(&format!("{prefix}.norm2"), design.eps)?,
            fc1: reader.linear(&format!("{prefix}.mlp.fc1"), between)?,
            mlp: design.mlp,
            fc2: last_of("mlp.fc2", "ls2")?,
        })
    }

    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let attended = self.attend(&self.norm1.forward(tokens)?)?;
        let tokens = self.proj.forward_and_add(&attended, tokens)?;
        let first = self.fc1.forward(&self.norm2.forward(&tokens)?)?;
        let hidden = match self.mlp {
            Mlp::Plain(_) => first,
            Mlp::Gated => gate(&first)?,
        };
        self.fc2.forward_and_add(&hidden, &tokens)
    }

    fn attend(&self, tokens: &Tensor) -> Result<Tensor> {
        let (n_rows, n_tokens, width) = tokens.dims3()?;
        let head_width = width / self.n_heads;
        let qkv = self.qkv.forward(tokens)?;
        if qkv.device().is_cpu() {
            return attend(&qkv, self.n_heads);
        }
        let qkv = qkv.reshape((n_rows, n_tokens, 3, self.n_heads, head_width))?.permute((2, 0, 3, 1, 4))?;
        let query = (qkv.i(0)?.contiguous()? * (1.0 / (head_width as f64).sqrt()))?;
        mix(&query, &qkv.i(1)?.contiguous()?, &qkv.i(2)?.contiguous()?)
    }
}

/// Attention of queries that were scaled, `[rows, heads, queries, n]`, over keys and values; gives `[rows, queries, heads · n]`.
pub(crate) fn mix(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor> {
    let (n_rows, n_heads, n_queries, head_width) = query.dims4()?;
    let weights = softmax_last_dim(&query.matmul(&key.transpose(D::Minus2, D::Minus1)?)?)?;
    let mixed = weights.matmul(value)?.transpose(1, 2)?.contiguous()?;
    mixed.reshape((n_rows, n_queries, n_heads * head_width))
}

/// Squares of this side, side by side.
pub(crate) fn patches_of(side: usize) -> ConvSpec {
    ConvSpec { stride: side, padding: Padding::None, channels: Channels::Mixed, activation: Activation::Identity }
}

/// Tokens of images: their patches behind the class token, where there is one, and `positions`
/// (`[1, tokens, width]`) added.
pub(crate) fn tokens(
    patches: &Conv,
    class_token: Option<&Tensor>,
    positions: &Tensor,
    images: &Tensor,
) -> Result<Tensor> {
    let patches = patches.forward(images)?.flatten_from(2)?.transpose(1, 2)?;
    let (n_rows, _, width) = patches.dims3()?;
    let tokens = match class_token {
        Some(token) => Tensor::cat(&[token.reshape((1, 1, width))?.broadcast_as((n_rows, 1, width))?, patches], 1)?,
        None => patches.contiguous()?,
    };
    let positions = positions.broadcast_as(tokens.shape())?;
    add_and_activate(tokens, &positions, Activation::Identity)
}

/// The first token of each row, normed: a norm works token by token, so the others are not needed.
pub(crate) fn first_token(norm: &LayerNorm, tokens: &Tensor) -> Result<Tensor> {
    norm.forward(&tokens.i((.., 0))?.contiguous()?)
}

/// Splits `blocks.3.attn.qkv.weight` into `3`, `attn.qkv` and `weight`.
pub(crate) fn block_name(canonical: &str) -> Option<(&str, &str, &str)> {
    let (block, rest) = canonical.strip_prefix("blocks.")?.split_once('.')?;
    let (layer, part) = rest.rsplit_once('.')?;
    Some((block, layer, part))
}

/// Query, key and value where ViT and DINOv2 have them in transformers: three tensors of a block.
pub(crate) fn queries_keys_values(block: &str, part: &str) -> Location {
    Location::Stacked(
        ["query", "key", "value"].map(|name| format!("{block}.attention.attention.{name}.{part}")).to_vec(),
    )
}

/// The positions of CLIP and SigLIP, `[1, tokens, width]`.
pub(crate) fn positions_of_tower(reader: &ParamReader<'_>) -> std::result::Result<Tensor, LoadError> {
    let positions = reader.tensor("embeddings.position_embedding.weight")?;
    positions.unsqueeze(0).map_err(|error| reader.device_error(error))
}

/// Where CLIP and SigLIP have a tensor, whose names are canonical but for the blocks. Query, key and value are three
/// tensors there.
pub(crate) fn in_tower(prefix: &str, canonical: &str) -> Location {
    let Some((block, layer, part)) = block_name(canonical) else {
        return Location::Whole(format!("{prefix}{canonical}"));
    };
    let prefix = format!("{prefix}encoder.layers.{block}");
    let layer = match layer {
        "attn.qkv" => {
            return Location::Stacked(
                ["q", "k", "v"].map(|name| format!("{prefix}.self_attn.{name}_proj.{part}")).to_vec(),
            );
        }
        "attn.proj" => "self_attn.out_proj",
        "norm1" => "layer_norm1",
        "norm2" => "layer_norm2",
        other => other,
    };
    Location::Whole(format!("{prefix}.{layer}.{part}"))
}
