//! `config.json` of CLIP, SigLIP and DINOv2: the figures that their architectures are made of.
//!
//! What is left out has transformers' default. Figures are bounded here, so that nothing behind this multiplies beyond
//! what numbers hold; whether they are those of the weights is checked against the shapes in the file.

use serde::Deserialize;
use serde_json::Value;

use super::{FolderError, described::Described};
use crate::models::{
    Clip, Dinov2, Siglip,
    layers::Activation,
    transformer::{Design, LayerScale, Mlp},
};

const MAX_WIDTH: u64 = 16_384;
const MAX_HIDDEN: u64 = 65_536;
const MAX_BLOCKS: u64 = 512;
const MAX_SIDE: u64 = 4_096;
/// Patches of an image that positions are learnt for.
const MAX_PATCHES: usize = 65_536;
const MAX_REGISTERS: u64 = 1_024;

/// The architecture, if the text describes one of the three.
pub(super) fn parse(json: &str) -> Result<Option<Described>, FolderError> {
    let whole: Value = serde_json::from_str(json)?;
    let model_type = whole.get("model_type").and_then(Value::as_str);
    let of = |keys: &[&str]| {
        let part = keys.iter().filter_map(|key| whole.get(key)).find(|value| !value.is_null());
        Vision::deserialize(part.unwrap_or(&Value::Null)).map_err(FolderError::from)
    };
    let described = match model_type {
        Some("clip") => {
            class(&whole, &["CLIPModel"])?;
            let projection_dim = Vision::deserialize(&whole)?.projection_dim;
            // transformers follows the older key where both are there, and takes defaults for what it leaves out.
            let vision = of(&["vision_config_dict", "vision_config"])?;
            Described::Clip(vision.clip(Projection::To(projection_dim.unwrap_or(512)))?)
        }
        Some("clip_vision_model") => {
            let vision = Vision::deserialize(&whole)?;
            let projection = match class(&whole, &["CLIPVisionModel", "CLIPVisionModelWithProjection"])? {
                1 => Projection::To(vision.projection_dim.unwrap_or(512)),
                _ => Projection::None,
            };
            Described::Clip(vision.clip(projection)?)
        }
        Some("siglip") => {
            class(&whole, &["SiglipModel"])?;
            Described::Siglip(of(&["vision_config"])?.siglip()?)
        }
        Some("siglip_vision_model") => {
            class(&whole, &["SiglipVisionModel"])?;
            Described::Siglip(Vision::deserialize(&whole)?.siglip()?)
        }
        Some("siglip2" | "siglip2_vision_model") => {
            return Err(FolderError::value(
                "model_type",
                "`siglip2`, which takes images of any shape (NaFlex)",
                "a checkpoint of SigLIP 2 with a fixed resolution, whose type is `siglip`: google/siglip2-base-patch16-224 and others",
            ));
        }
        Some("dinov2") => {
            class(&whole, &["Dinov2Model"])?;
            Described::Dinov2(Vision::deserialize(&whole)?.dinov2(None)?)
        }
        Some("dinov2_with_registers") => {
            class(&whole, &["Dinov2WithRegistersModel"])?;
            let vision = Vision::deserialize(&whole)?;
            let n_registers =
                bounded("num_register_tokens", vision.num_register_tokens.unwrap_or(4), 0, MAX_REGISTERS)?;
            Described::Dinov2(vision.dinov2(Some(n_registers))?)
        }
        _ => return Ok(None),
    };
    Ok(Some(described))
}

/// Which of these classes wrote the weights; the first one where the file does not say.
fn class(whole: &Value, known: &[&str]) -> Result<usize, FolderError> {
    let Some(written) = whole.pointer("/architectures/0").and_then(Value::as_str) else {
        return Ok(0);
    };
    known
        .iter()
        .position(|known| *known == written)
        .ok_or_else(|| FolderError::value("architectures", format!("`{written}`"), known.join(" or ")))
}

enum Projection {
    None,
    To(u64),
}

/// A side, or height and width.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Side {
    One(u64),
    Two([u64; 2]),
}

/// The keys of all three.
#[derive(Debug, Default, Deserialize)]
struct Figures {
    hidden_size: Option<u64>,
    intermediate_size: Option<u64>,
    num_hidden_layers: Option<u64>,
    num_attention_heads: Option<u64>,
    num_channels: Option<u64>,
    image_size: Option<Side>,
    patch_size: Option<Side>,
    hidden_act: Option<String>,
    layer_norm_eps: Option<f64>,
    projection_dim: Option<u64>,
    vision_use_head: Option<bool>,
    mlp_ratio: Option<f64>,
    use_swiglu_ffn: Option<bool>,
    qkv_bias: Option<bool>,
    num_register_tokens: Option<u64>,
}

/// A configuration of a vision model, which may be left out.
struct Vision(Figures);

impl std::ops::Deref for Vision {
    type Target = Figures;

    fn deref(&self) -> &Figures {
        &self.0
    }
}

impl Vision {
    fn deserialize(value: &Value) -> Result<Self, serde_json::Error> {
        Option::<Figures>::deserialize(value).map(|figures| Vision(figures.unwrap_or_default()))
    }

    fn clip(&self, projection: Projection) -> Result<Clip, FolderError> {
        let (side, patch) = self.image(224, 32)?;
        let mlp = Mlp::Plain(self.activation("quick_gelu")?);
        let projection = match projection {
            Projection::None => None,
            Projection::To(n_out) => Some(bounded("projection_dim", n_out, 1, MAX_HIDDEN)?),
        };
        Ok(Clip {
            encoder: self.encoder(self.intermediate()?, mlp, LayerScale::Absent, 1e-5)?,
            patch,
            side,
            projection,
        })
    }

    fn siglip(&self) -> Result<Siglip, FolderError> {
        if self.vision_use_head == Some(false) {
            return Err(FolderError::value("vision_use_head", false, "true: features are what the head pools"));
        }
        let (side, patch) = self.image(224, 16)?;
        let activation = self.activation("gelu_pytorch_tanh")?;
        let encoder = self.encoder(self.intermediate()?, Mlp::Plain(activation), LayerScale::Absent, 1e-6)?;
        Ok(Siglip { encoder, activation, patch, side })
    }

    fn dinov2(&self, registers: Option<usize>) -> Result<Dinov2, FolderError> {
        if self.qkv_bias == Some(false) {
            return Err(FolderError::value("qkv_bias", false, "true"));
        }
        let (side, patch) = self.image(224, if registers.is_some() { 16 } else { 14 })?;
        let ratio = self.mlp_ratio.unwrap_or(4.0);
        if !(ratio > 0.0 && ratio <= 64.0) {
            return Err(FolderError::value("mlp_ratio", ratio, "a number above 0, and 64 at most"));
        }
        let n_hidden = (self.width()? as f64 * ratio) as u64;
        let (n_hidden, mlp) = match self.use_swiglu_ffn {
            // Two thirds, rounded up to eights.
            Some(true) => (((n_hidden as f64 * 2.0 / 3.0) as u64).div_ceil(8) * 8, Mlp::Gated),
            _ => (n_hidden, Mlp::Plain(self.activation("gelu")?)),
        };
        let n_hidden = bounded("mlp_ratio", n_hidden, 1, MAX_HIDDEN)?;
        Ok(Dinov2 { encoder: self.encoder(n_hidden, mlp, LayerScale::Present, 1e-6)?, patch, side, registers })
    }

    fn encoder(&self, n_hidden: usize, mlp: Mlp, layer_scale: LayerScale, eps: f64) -> Result<Design, FolderError> {
        let width = self.width()?;
        let n_heads = bounded("num_attention_heads", self.num_attention_heads.unwrap_or(12), 1, width as u64)?;
        if width % n_heads != 0 {
            return Err(FolderError::value(
                "num_attention_heads",
                n_heads,
                format!("a divisor of `hidden_size`, {width}"),
            ));
        }
        let n_blocks = bounded("num_hidden_layers", self.num_hidden_layers.unwrap_or(12), 1, MAX_BLOCKS)?;
        let eps = self.layer_norm_eps.unwrap_or(eps);
        if !(0.0..=1.0).contains(&eps) {
            return Err(FolderError::value("layer_norm_eps", eps, "0 to 1"));
        }
        Ok(Design { n_blocks, width, n_heads, n_hidden, mlp, layer_scale, eps })
    }

    fn width(&self) -> Result<usize, FolderError> {
        bounded("hidden_size", self.hidden_size.unwrap_or(768), 1, MAX_WIDTH)
    }

    fn intermediate(&self) -> Result<usize, FolderError> {
        bounded("intermediate_size", self.intermediate_size.unwrap_or(3072), 1, MAX_HIDDEN)
    }

    /// The sides of the image and of a patch.
    fn image(&self, side: u64, patch: u64) -> Result<(usize, usize), FolderError> {
        if let Some(n_channels) = self.num_channels.filter(|n_channels| *n_channels != 3) {
            return Err(FolderError::value("num_channels", n_channels, "3"));
        }
        let side = square("image_size", self.image_size, side, MAX_SIDE)?;
        let patch = square("patch_size", self.patch_size, patch, side as u64)?;
        let n_patches = (side / patch) * (side / patch);
        if n_patches > MAX_PATCHES {
            let found = format!("{patch}, which is {n_patches} patches of `image_size` {side}");
            return Err(FolderError::value("patch_size", found, format!("{MAX_PATCHES} patches at most")));
        }
        Ok((side, patch))
    }

    fn activation(&self, default: &str) -> Result<Activation, FolderError> {
        match self.hidden_act.as_deref().unwrap_or(default) {
            "gelu" => Ok(Activation::Gelu),
            "gelu_pytorch_tanh" | "gelu_new" => Ok(Activation::GeluTanh),
            "quick_gelu" => Ok(Activation::QuickGelu),
            other => {
                Err(FolderError::value("hidden_act", format!("`{other}`"), "gelu, gelu_pytorch_tanh or quick_gelu"))
            }
        }
    }
}

fn square(key: &'static str, written: Option<Side>, default: u64, most: u64) -> Result<usize, FolderError> {
    match written.unwrap_or(Side::One(default)) {
        Side::One(side) => bounded(key, side, 1, most),
        Side::Two([height, width]) if height == width => bounded(key, height, 1, most),
        Side::Two(sides) => Err(FolderError::value(key, format!("{sides:?}"), "one number, or two that are equal")),
    }
}

fn bounded(key: &'static str, found: u64, least: u64, most: u64) -> Result<usize, FolderError> {
    match (least..=most).contains(&found) {
        true => Ok(found as usize),
        false => Err(FolderError::value(key, found, format!("{least} to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(json: &str) -> Described {
        parse(json).expect("a configuration").expect("one of the three")
    }

    fn check_error(json: &str, expected: &str) {
        assert_eq!(parse(json).map_err(|error| error.to_string()), Err(expected.to_owned()), "{json}");
    }

    const BASE: Design = Design {
        n_blocks: 12,
        width: 768,
        n_heads: 12,
        n_hidden: 3072,
        mlp: Mlp::Plain(Activation::QuickGelu),
        layer_scale: LayerScale::Absent,
        eps: 1e-5,
    };

    #[test]
    fn what_is_left_out_has_the_library_s_default() {
        let clip = Clip { encoder: BASE, patch: 32, side: 224, projection: Some(512) };
        assert_eq!(described(r#"{"model_type": "clip"}"#), Described::Clip(clip));
        let alone = Clip { projection: None, ..clip };
        assert_eq!(described(r#"{"model_type": "clip_vision_model"}"#), Described::Clip(alone));
        let mlp = Mlp::Plain(Activation::GeluTanh);
        let siglip = Siglip {
            encoder: Design { mlp, eps: 1e-6, ..BASE },
            activation: Activation::GeluTanh,
            patch: 16,
            side: 224,
        };
        // As google/siglip-base-patch16-224 has it.
        let json = r#"{"architectures": ["SiglipModel"], "model_type": "siglip", "initializer_factor": 1.0,
            "text_config": {"model_type": "siglip_text_model"}, "vision_config": {"model_type": "siglip_vision_model"}}"#;
        assert_eq!(described(json), Described::Siglip(siglip));
    }

    #[test]
    fn clip_s_older_key_goes_before_the_newer_one() {
        // Of openai/clip-vit-large-patch14, whose whole model says the projection and whose vision model has another.
        let json = r#"{"architectures": ["CLIPModel"], "model_type": "clip", "projection_dim": 768,
            "vision_config": {"hidden_size": 768, "projection_dim": 512, "image_size": 336},
            "vision_config_dict": {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
                "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768}}"#;
        let encoder = Design { n_blocks: 24, width: 1024, n_heads: 16, n_hidden: 4096, ..BASE };
        assert_eq!(described(json), Described::Clip(Clip { encoder, patch: 14, side: 224, projection: Some(768) }));
        let json = r#"{"model_type": "clip", "vision_config_dict": null, "vision_config": {"hidden_act": "gelu",
            "image_size": [64, 64]}}"#;
        let encoder = Design { mlp: Mlp::Plain(Activation::Gelu), ..BASE };
        assert_eq!(described(json), Described::Clip(Clip { encoder, patch: 32, side: 64, projection: Some(512) }));
    }

    #[test]
    fn the_giant_dinov2_is_gated() {
        let json = r#"{"architectures": ["Dinov2Model"], "model_type": "dinov2", "hidden_size": 1536, "image_size": 518,
            "mlp_ratio": 4, "num_attention_heads": 24, "num_hidden_layers": 40, "patch_size": 14, "use_swiglu_ffn": true}"#;
        let encoder = Design {
            n_blocks: 40,
            width: 1536,
            n_heads: 24,
            n_hidden: 4096,
            mlp: Mlp::Gated,
            layer_scale: LayerScale::Present,
            eps: 1e-6,
        };
        let dinov2 = Dinov2 { encoder, patch: 14, side: 518, registers: None };
        assert_eq!(described(json), Described::Dinov2(dinov2));
        let json = json
            .replace(r#""dinov2""#, r#""dinov2_with_registers""#)
            .replace("Dinov2Model", "Dinov2WithRegistersModel");
        assert_eq!(described(&json), Described::Dinov2(Dinov2 { registers: Some(4), ..dinov2 }));
    }

    #[test]
    fn others_are_left_to_the_rest() {
        assert_eq!(parse(r#"{"model_type": "vit", "image_size": 224}"#).expect("JSON"), None);
        assert_eq!(parse("{}").expect("JSON"), None);
    }

    #[test]
    fn what_cannot_be_run_is_said() {
        for (json, expected) in [
            (
                r#"{"model_type": "clip", "architectures": ["CLIPForImageClassification"]}"#,
                "`architectures` is `CLIPForImageClassification`, wanted CLIPModel",
            ),
            (
                r#"{"model_type": "siglip2"}"#,
                "`model_type` is `siglip2`, which takes images of any shape (NaFlex), wanted a checkpoint of SigLIP 2 with a \
                 fixed resolution, whose type is `siglip`: google/siglip2-base-patch16-224 and others",
            ),
            (
                r#"{"model_type": "siglip_vision_model", "vision_use_head": false}"#,
                "`vision_use_head` is false, wanted true: features are what the head pools",
            ),
            (
                r#"{"model_type": "dinov2", "num_attention_heads": 7}"#,
                "`num_attention_heads` is 7, wanted a divisor of `hidden_size`, 768",
            ),
            (r#"{"model_type": "dinov2", "hidden_size": 0}"#, "`hidden_size` is 0, wanted 1 to 16384"),
            (r#"{"model_type": "dinov2", "patch_size": 225}"#, "`patch_size` is 225, wanted 1 to 224"),
            (
                r#"{"model_type": "dinov2", "image_size": 4096, "patch_size": 1}"#,
                "`patch_size` is 1, which is 16777216 patches of `image_size` 4096, wanted 65536 patches at most",
            ),
            (
                r#"{"model_type": "dinov2", "image_size": [14, 28]}"#,
                "`image_size` is [14, 28], wanted one number, or two that are equal",
            ),
            (
                r#"{"model_type": "dinov2", "mlp_ratio": -1}"#,
                "`mlp_ratio` is -1, wanted a number above 0, and 64 at most",
            ),
            (
                r#"{"model_type": "clip", "vision_config": {"hidden_act": "relu"}}"#,
                "`hidden_act` is `relu`, wanted gelu, gelu_pytorch_tanh or quick_gelu",
            ),
            (
                r#"{"model_type": "clip", "vision_config": {"layer_norm_eps": -1}}"#,
                "`layer_norm_eps` is -1, wanted 0 to 1",
            ),
            (r#"{"model_type": "clip", "projection_dim": 0}"#, "`projection_dim` is 0, wanted 1 to 65536"),
            (r#"{"model_type": "clip", "vision_config": 7}"#, "invalid type: integer `7`, expected struct Figures"),
        ] {
            check_error(json, expected);
        }
    }
}
