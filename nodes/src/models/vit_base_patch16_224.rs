//! ViT-B/16 at 224×224: patches of 16×16 as tokens, twelve transformer blocks, the class token classified.
//!
//! Canonical names are timm's.

use candle_core::{Result, Tensor};

use crate::decode::Interpolation;

use super::{
    activations::Map,
    arch::{Arch, InputSize, Parameters},
    layers::{Activation, Conv, LayerNorm, Linear},
    load::LoadError,
    network::{Network, Outputs},
    normalize::Normalize,
    preset::Preset,
    reader::ParamReader,
    scheme::{Location, Scheme},
    transformer::{Design, Encoder, LayerScale, Mlp, block_name, first_token, patches_of, queries_keys_values, tokens},
};

/// The architecture `vit_base_patch16_224`.
#[derive(Debug)]
pub struct VitBasePatch16;

const WIDTH: usize = 768;
const PATCH: usize = 16;
const SIDE: usize = 224;
const N_TOKENS: usize = (SIDE / PATCH) * (SIDE / PATCH) + 1;
const DESIGN: Design = Design {
    n_blocks: 12,
    width: WIDTH,
    n_heads: 12,
    n_hidden: 4 * WIDTH,
    mlp: Mlp::Plain(Activation::Gelu),
    layer_scale: LayerScale::Absent,
    eps: 1e-6,
};

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
        DESIGN.parameters(&mut parameters);
        parameters.layer_norm("norm", WIDTH);
        parameters.linear("head", n_classes, WIDTH);
        parameters
    }

    fn classifier(&self) -> Option<&'static str> {
        Some("head.weight")
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
        DESIGN.activations(Map::image(height, width), PATCH, N_TOKENS)
    }

    fn build(&self, reader: &ParamReader<'_>) -> std::result::Result<Box<dyn Network>, LoadError> {
        Ok(Box::new(Vit {
            patches: reader.conv("patch_embed.proj", patches_of(PATCH))?,
            class_token: reader.tensor("cls_token")?,
            positions: reader.tensor("pos_embed")?,
            encoder: DESIGN.read(reader)?,
            norm: reader.layer_norm("norm", DESIGN.eps)?,
            head: reader.linear("head", Activation::Identity)?,
        }))
    }
}

struct Vit {
    patches: Conv,
    class_token: Tensor,
    positions: Tensor,
    encoder: Encoder,
    norm: LayerNorm,
    head: Linear,
}

impl Network for Vit {
    fn forward(&self, images: &Tensor, outputs: Outputs) -> Result<Tensor> {
        let tokens = tokens(&self.patches, Some(&self.class_token), &self.positions, images)?;
        let features = first_token(&self.norm, &self.encoder.forward(tokens)?)?;
        match outputs {
            Outputs::Features => Ok(features),
            Outputs::Logits => self.head.forward(&features),
        }
    }
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
        "attn.qkv" => return queries_keys_values(&prefix, part),
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
