//! ViT-B/16 at 224×224: patches of 16×16 as tokens, twelve transformer blocks, the class token classified.
//!
//! Canonical names are timm's.

use candle_core::{D, IndexOp, Module, Result, Tensor};
use candle_nn::ops::softmax_last_dim;

use crate::decode::Interpolation;

use super::{
    activations::{Map, Tally},
    arch::{Arch, InputSize, Parameters},
    layers::{Activation, Channels, Conv, ConvSpec, LayerNorm, Linear, Padding, add_and_activate},
    load::LoadError,
    network::{Network, Outputs},
    normalize::Normalize,
    preset::Preset,
    reader::ParamReader,
    scheme::{Location, Scheme},
};

/// The architecture `vit_base_patch16_224`.
#[derive(Debug)]
pub struct VitBasePatch16;

const N_BLOCKS: usize = 12;
const N_HEADS: usize = 12;
const WIDTH: usize = 768;
const N_HIDDEN: usize = 4 * WIDTH;
const PATCH: usize = 16;
const SIDE: usize = 224;
const N_TOKENS: usize = (SIDE / PATCH) * (SIDE / PATCH) + 1;
const EPS: f64 = 1e-6;
const PATCHES: ConvSpec =
    ConvSpec { stride: PATCH, padding: Padding::None, channels: Channels::Mixed, activation: Activation::Identity };

const SCHEMES: &[Scheme] = &[
    Scheme::canonical("timm"),
    Scheme { name: "huggingface", locate: in_huggingface },
    Scheme { name: "torchvision", locate: in_torchvision },
];

impl Arch for VitBasePatch16 {
    fn name(&self) -> &'static str {
        "vit_base_patch16_224"
    }

    fn parameters(&self, n_classes: usize) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.tensor("cls_token", &[1, 1, WIDTH]);
        parameters.tensor("pos_embed", &[1, N_TOKENS, WIDTH]);
        parameters.conv("patch_embed.proj", WIDTH, 3, PATCH);
        parameters.tensor("patch_embed.proj.bias", &[WIDTH]);
        for block_idx in 0..N_BLOCKS {
            let prefix = format!("blocks.{block_idx}");
            parameters.layer_norm(&format!("{prefix}.norm1"), WIDTH);
            parameters.linear(&format!("{prefix}.attn.qkv"), 3 * WIDTH, WIDTH);
            parameters.linear(&format!("{prefix}.attn.proj"), WIDTH, WIDTH);
            parameters.layer_norm(&format!("{prefix}.norm2"), WIDTH);
            parameters.linear(&format!("{prefix}.mlp.fc1"), N_HIDDEN, WIDTH);
            parameters.linear(&format!("{prefix}.mlp.fc2"), WIDTH, N_HIDDEN);
        }
        parameters.layer_norm("norm", WIDTH);
        parameters.linear("head", n_classes, WIDTH);
        parameters
    }

    fn classifier(&self) -> &'static str {
        "head.weight"
    }

    fn n_features(&self) -> usize {
        WIDTH
    }

    fn schemes(&self) -> &'static [Scheme] {
        SCHEMES
    }

    fn ignored(&self) -> &'static [&'static str] {
        // Hugging Face's pooler is trained for another task and the classifier does not read it.
        &["pooler."]
    }

    fn preset(&self) -> Preset {
        Preset::crop_224(248, Interpolation::Bicubic, Normalize::Half)
    }

    fn input_size(&self) -> InputSize {
        InputSize::Exactly(SIDE, SIDE)
    }

    fn activations(&self, height: usize, width: usize) -> u64 {
        let mut tally = Tally::default();
        let image = Map::image(height, width);
        let patches = tally.conv(0, image, WIDTH, PATCH, PATCHES);
        // The image and its patches are alive to the end.
        let kept = image.elements() + patches.elements();
        let [tokens, hidden, scores] =
            [N_TOKENS * WIDTH, N_TOKENS * N_HIDDEN, N_HEADS * N_TOKENS * N_TOKENS].map(|elements| elements as u64);
        // A block's input and the same normed are alive through all of attention.
        tally.linear(kept + tokens, tokens, 3 * tokens, Activation::Identity);
        // Query, key and value as the layer gives them and apart; the scores, and those as weights.
        tally.alive(kept + 2 * tokens + 3 * tokens + 3 * tokens + 2 * scores);
        // The weights, and the mixed values, turned around.
        tally.alive(kept + 2 * tokens + 3 * tokens + 3 * tokens + scores + 2 * tokens);
        // The block's input, what attention made of it, and that normed.
        tally.linear(kept + 2 * tokens, tokens, hidden, Activation::Gelu);
        tally.peak()
    }

    fn build(&self, reader: &ParamReader<'_>) -> std::result::Result<Box<dyn Network>, LoadError> {
        let blocks = (0..N_BLOCKS)
            .map(|block_idx| Block::read(reader, &format!("blocks.{block_idx}")))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Box::new(Vit {
            patches: reader.conv("patch_embed.proj", PATCHES)?,
            class_token: reader.tensor("cls_token")?,
            positions: reader.tensor("pos_embed")?,
            blocks,
            norm: reader.layer_norm("norm", EPS)?,
            head: reader.linear("head", Activation::Identity)?,
        }))
    }
}

struct Vit {
    patches: Conv,
    class_token: Tensor,
    positions: Tensor,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
}

struct Block {
    norm1: LayerNorm,
    qkv: Linear,
    proj: Linear,
    norm2: LayerNorm,
    fc1: Linear,
    fc2: Linear,
}

impl Network for Vit {
    fn forward(&self, images: &Tensor, outputs: Outputs) -> Result<Tensor> {
        let n_rows = images.dim(0)?;
        let patches = self.patches.forward(images)?.flatten_from(2)?.transpose(1, 2)?;
        let class_token = self.class_token.broadcast_as((n_rows, 1, WIDTH))?;
        let positions = self.positions.broadcast_as((n_rows, N_TOKENS, WIDTH))?;
        let tokens = Tensor::cat(&[class_token, patches], 1)?;
        let mut tokens = add_and_activate(tokens, &positions, Activation::Identity)?;
        for block in &self.blocks {
            tokens = block.forward(&tokens)?;
        }
        // The norm works token by token, so the class token's is all that is needed.
        let features = self.norm.forward(&tokens.i((.., 0))?.contiguous()?)?;
        match outputs {
            Outputs::Features => Ok(features),
            Outputs::Logits => self.head.forward(&features),
        }
    }
}

impl Block {
    fn read(reader: &ParamReader<'_>, prefix: &str) -> std::result::Result<Self, LoadError> {
        Ok(Self {
            norm1: reader.layer_norm(&format!("{prefix}.norm1"), EPS)?,
            qkv: reader.linear(&format!("{prefix}.attn.qkv"), Activation::Identity)?,
            proj: reader.linear(&format!("{prefix}.attn.proj"), Activation::Identity)?,
            norm2: reader.layer_norm(&format!("{prefix}.norm2"), EPS)?,
            fc1: reader.linear(&format!("{prefix}.mlp.fc1"), Activation::Gelu)?,
            fc2: reader.linear(&format!("{prefix}.mlp.fc2"), Activation::Identity)?,
        })
    }

    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let attended = self.attend(&self.norm1.forward(tokens)?)?;
        let tokens = add_and_activate(attended, tokens, Activation::Identity)?;
        let hidden = self.fc1.forward(&self.norm2.forward(&tokens)?)?;
        add_and_activate(self.fc2.forward(&hidden)?, &tokens, Activation::Identity)
    }

    fn attend(&self, tokens: &Tensor) -> Result<Tensor> {
        let (n_rows, n_tokens, _) = tokens.dims3()?;
        let head_width = WIDTH / N_HEADS;
        let qkv =
            self.qkv.forward(tokens)?.reshape((n_rows, n_tokens, 3, N_HEADS, head_width))?.permute((2, 0, 3, 1, 4))?;
        let query = (qkv.i(0)?.contiguous()? * (1.0 / (head_width as f64).sqrt()))?;
        let key = qkv.i(1)?.contiguous()?;
        let value = qkv.i(2)?.contiguous()?;
        let weights = softmax_last_dim(&query.matmul(&key.transpose(D::Minus2, D::Minus1)?)?)?;
        let mixed = weights.matmul(&value)?.transpose(1, 2)?.contiguous()?;
        self.proj.forward(&mixed.reshape((n_rows, n_tokens, WIDTH))?)
    }
}

/// Splits `blocks.3.attn.qkv.weight` into `3`, `attn.qkv` and `weight`.
fn block_name(canonical: &str) -> Option<(&str, &str, &str)> {
    let (block, rest) = canonical.strip_prefix("blocks.")?.split_once('.')?;
    let (layer, part) = rest.rsplit_once('.')?;
    Some((block, layer, part))
}

/// Query, key and value are three tensors there.
fn in_huggingface(canonical: &str) -> Location {
    let Some((block, layer, part)) = block_name(canonical) else {
        return Location::Whole(match canonical.split_once('.') {
            None if canonical == "cls_token" => "vit.embeddings.cls_token".to_owned(),
            None if canonical == "pos_embed" => "vit.embeddings.position_embeddings".to_owned(),
            Some(("norm", part)) => format!("vit.layernorm.{part}"),
            Some(("head", part)) => format!("classifier.{part}"),
            Some(("patch_embed", rest)) => {
                let part = rest.strip_prefix("proj.").unwrap_or(rest);
                format!("vit.embeddings.patch_embeddings.projection.{part}")
            }
            _ => canonical.to_owned(),
        });
    };
    let prefix = format!("vit.encoder.layer.{block}");
    let layer = match layer {
        "attn.qkv" => {
            let stacked = ["query", "key", "value"];
            return Location::Stacked(
                stacked.map(|name| format!("{prefix}.attention.attention.{name}.{part}")).to_vec(),
            );
        }
        "attn.proj" => "attention.output.dense",
        "norm1" => "layernorm_before",
        "norm2" => "layernorm_after",
        "mlp.fc1" => "intermediate.dense",
        "mlp.fc2" => "output.dense",
        other => other,
    };
    Location::Whole(format!("{prefix}.{layer}.{part}"))
}

fn in_torchvision(canonical: &str) -> Location {
    let Some((block, layer, part)) = block_name(canonical) else {
        return Location::Whole(match canonical.split_once('.') {
            None if canonical == "cls_token" => "class_token".to_owned(),
            None if canonical == "pos_embed" => "encoder.pos_embedding".to_owned(),
            Some(("norm", part)) => format!("encoder.ln.{part}"),
            Some(("head", part)) => format!("heads.head.{part}"),
            Some(("patch_embed", rest)) => {
                format!("conv_proj.{}", rest.strip_prefix("proj.").unwrap_or(rest))
            }
            _ => canonical.to_owned(),
        });
    };
    let prefix = format!("encoder.layers.encoder_layer_{block}");
    Location::Whole(match layer {
        "attn.qkv" => format!("{prefix}.self_attention.in_proj_{part}"),
        "attn.proj" => format!("{prefix}.self_attention.out_proj.{part}"),
        "norm1" => format!("{prefix}.ln_1.{part}"),
        "norm2" => format!("{prefix}.ln_2.{part}"),
        "mlp.fc1" => format!("{prefix}.mlp.0.{part}"),
        "mlp.fc2" => format!("{prefix}.mlp.3.{part}"),
        other => format!("{prefix}.{other}.{part}"),
    })
}
