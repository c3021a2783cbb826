//! `config.json`: which architecture, how many classes, what they are called.

use indexmap::IndexMap;
use serde::Deserialize;

use super::described::Described;
use super::{FolderError, embedders, interpolation, per_channel, side, uncropped};
use crate::decode::{Crop, Preprocess, Resize};
use crate::models::{
    ARCHS,
    normalize::{MeanStd, Normalize},
    preset::Preset,
};

/// What a folder's `config.json` says.
#[derive(Debug, Clone, PartialEq)]
pub struct FolderConfig {
    /// The architecture.
    pub arch: Described,
    /// How many classes the classifier has, if the file says.
    pub n_classes: Option<usize>,
    /// The classes' names in order, if the file has real ones.
    pub labels: Option<Vec<String>>,
    /// The preprocessing, which timm writes into this file.
    pub preset: Option<Preset>,
}

/// Reads `config.json`.
pub fn parse_config(json: &str) -> Result<FolderConfig, FolderError> {
    // Their keys have the names of others' and other types, so they are read by themselves.
    if let Some(arch) = embedders::parse(json)? {
        return Ok(FolderConfig { arch, n_classes: None, labels: None, preset: None });
    }
    let config: Config = serde_json::from_str(json)?;
    if let Some(architecture) = &config.architecture {
        return Ok(FolderConfig {
            arch: Described::Listed(timm_arch(architecture)?),
            n_classes: config.num_classes,
            labels: config.label_names,
            preset: config.pretrained_cfg.map(TimmPreset::into_preset).transpose()?,
        });
    }
    let arch = match config.model_type.as_deref() {
        Some("resnet") => config.resnet()?,
        Some("vit") => config.vit()?,
        Some("mobilenet_v2") => {
            return Err(FolderError::value(
                "model_type",
                "`mobilenet_v2`, which there is TensorFlow's, padded and normalised otherwise",
                "torchvision's or timm's weights, given as `{arch: mobilenet_v2, weights: …}`",
            ));
        }
        Some(other) => {
            let wanted = "resnet, vit, clip, siglip, dinov2 or dinov2_with_registers";
            return Err(FolderError::value("model_type", format!("`{other}`"), wanted));
        }
        None => return Err(FolderError::Missing("model_type")),
    };
    let labels = config.labels()?;
    let n_classes = config.num_labels.or(labels.as_ref().map(Vec::len));
    let placeholders = labels.iter().flatten().enumerate().all(|(idx, label)| *label == format!("LABEL_{idx}"));
    let arch = Described::Listed(arch);
    Ok(FolderConfig { arch, n_classes, labels: labels.filter(|_| !placeholders), preset: None })
}

/// The keys of both writers; what is left out has transformers' default.
#[derive(Debug, Deserialize)]
struct Config {
    model_type: Option<String>,
    num_labels: Option<usize>,
    id2label: Option<IndexMap<String, String>>,
    hidden_act: Option<String>,

    layer_type: Option<String>,
    depths: Option<Vec<usize>>,
    hidden_sizes: Option<Vec<usize>>,
    embedding_size: Option<usize>,
    downsample_in_bottleneck: Option<bool>,
    downsample_in_first_stage: Option<bool>,

    hidden_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    intermediate_size: Option<usize>,
    image_size: Option<usize>,
    patch_size: Option<usize>,

    architecture: Option<String>,
    num_classes: Option<usize>,
    label_names: Option<Vec<String>>,
    pretrained_cfg: Option<TimmPreset>,
}

impl Config {
    fn resnet(&self) -> Result<&'static str, FolderError> {
        let layer_type = self.layer_type.as_deref().unwrap_or("bottleneck");
        let depths = self.depths.as_deref().unwrap_or(&[3, 4, 6, 3]);
        let sizes = self.hidden_sizes.as_deref().unwrap_or(&[256, 512, 1024, 2048]);
        self.activation("relu")?;
        expect("embedding_size", self.embedding_size, 64)?;
        expect("downsample_in_bottleneck", self.downsample_in_bottleneck, false)?;
        expect("downsample_in_first_stage", self.downsample_in_first_stage, false)?;
        match (layer_type, depths, sizes) {
            ("basic", [2, 2, 2, 2], [64, 128, 256, 512]) => Ok("resnet18"),
            ("bottleneck", [3, 4, 6, 3], [256, 512, 1024, 2048]) => Ok("resnet50"),
            _ => Err(FolderError::value(
                "depths",
                format!("{depths:?} with {layer_type} layers of {sizes:?}"),
                "those of resnet18 or resnet50",
            )),
        }
    }

    fn vit(&self) -> Result<&'static str, FolderError> {
        self.activation("gelu")?;
        expect("hidden_size", self.hidden_size, 768)?;
        expect("num_hidden_layers", self.num_hidden_layers, 12)?;
        expect("num_attention_heads", self.num_attention_heads, 12)?;
        expect("intermediate_size", self.intermediate_size, 3072)?;
        expect("image_size", self.image_size, 224)?;
        expect("patch_size", self.patch_size, 16)?;
        Ok("vit_base_patch16_224")
    }

    fn activation(&self, wanted: &str) -> Result<(), FolderError> {
        match self.hidden_act.as_deref() {
            None => Ok(()),
            Some(found) if found == wanted => Ok(()),
            Some(found) => Err(FolderError::value("hidden_act", format!("`{found}`"), format!("`{wanted}`"))),
        }
    }

    /// The names in the order of their numbers, which must be 0, 1, 2, ….
    fn labels(&self) -> Result<Option<Vec<String>>, FolderError> {
        let Some(id2label) = &self.id2label else {
            return Ok(None);
        };
        let labels = (0..id2label.len())
            .map(|idx| {
                id2label
                    .get(&idx.to_string())
                    .cloned()
                    .ok_or_else(|| FolderError::value("id2label", format!("without {idx}"), "every number from 0 on"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Some(labels))
    }
}

fn expect<T: PartialEq + std::fmt::Display>(key: &'static str, found: Option<T>, wanted: T) -> Result<(), FolderError> {
    match found {
        Some(found) if found != wanted => Err(FolderError::value(key, found, wanted.to_string())),
        _ => Ok(()),
    }
}

fn timm_arch(architecture: &str) -> Result<&'static str, FolderError> {
    match architecture {
        "tf_efficientnet_lite0" | "efficientnet_lite0" => Ok("efficientnet_lite0"),
        "mobilenetv2_100" => Ok("mobilenet_v2"),
        "resnet18" => Ok("resnet18"),
        "resnet50" => Ok("resnet50"),
        "vit_base_patch16_224" => Ok("vit_base_patch16_224"),
        other => {
            let names: Vec<&str> = ARCHS.iter().map(|arch| arch.name()).collect();
            Err(FolderError::value("architecture", format!("`{other}`"), format!("one of {}", names.join(", "))))
        }
    }
}

/// timm's preprocessing.
#[derive(Debug, Deserialize)]
struct TimmPreset {
    input_size: [u64; 3],
    interpolation: Option<String>,
    crop_pct: Option<f64>,
    crop_mode: Option<String>,
    mean: Option<Vec<f64>>,
    std: Option<Vec<f64>>,
}

impl TimmPreset {
    fn into_preset(self) -> Result<Preset, FolderError> {
        const SIZE: &str = "pretrained_cfg.input_size";
        let [_, height, width] = self.input_size;
        let (height, width) = (side(SIZE, height)?, side(SIZE, width)?);
        let larger = |side| uncropped("pretrained_cfg.crop_pct", side, self.crop_pct.unwrap_or(0.875));
        let resize = match self.crop_mode.as_deref() {
            None | Some("center") if height == width => Resize::Shorter(larger(height)?),
            Some("squash") => Resize::Exact { height: larger(height)?, width: larger(width)? },
            mode => {
                let found = format!("`{}` for {height}×{width}", mode.unwrap_or("center"));
                return Err(FolderError::value("pretrained_cfg.crop_mode", found, "center for a square, or squash"));
            }
        };
        let mean = per_channel("pretrained_cfg.mean", self.mean.as_deref().unwrap_or(&[0.485, 0.456, 0.406]))?;
        let std = per_channel("pretrained_cfg.std", self.std.as_deref().unwrap_or(&[0.229, 0.224, 0.225]))?;
        let interpolation =
            interpolation("pretrained_cfg.interpolation", self.interpolation.as_deref().unwrap_or("bicubic"))?;
        let normalize = Normalize::named(MeanStd { mean, std })
            .map_err(|error| FolderError::value("pretrained_cfg.std", error, "usable figures"))?;
        let crop = Some(Crop { height, width });
        let pixels = Preprocess { resize: Some(resize), crop, interpolation, ..Preprocess::default() };
        Ok(Preset { pixels, normalize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Interpolation;

    fn check(json: &str, expected: Result<FolderConfig, &str>) {
        assert_eq!(parse_config(json).map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{json}");
    }

    fn plain(arch: &'static str) -> FolderConfig {
        FolderConfig { arch: Described::Listed(arch), n_classes: None, labels: None, preset: None }
    }

    #[test]
    fn transformers_configurations_name_an_architecture() {
        check(r#"{"model_type": "resnet"}"#, Ok(plain("resnet50")));
        check(
            r#"{"model_type": "resnet", "layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512],
                "architectures": ["ResNetForImageClassification"], "id2label": {"1": "dog", "0": "cat"}}"#,
            Ok(FolderConfig {
                n_classes: Some(2),
                labels: Some(vec!["cat".to_owned(), "dog".to_owned()]),
                ..plain("resnet18")
            }),
        );
        check(
            r#"{"model_type": "vit", "hidden_size": 768, "id2label": {"0": "LABEL_0", "1": "LABEL_1"}}"#,
            Ok(FolderConfig { n_classes: Some(2), ..plain("vit_base_patch16_224") }),
        );
    }

    #[test]
    fn timm_configurations_bring_their_preprocessing() {
        check(
            r#"{"architecture": "vit_base_patch16_224", "num_classes": 1000, "pretrained_cfg": {
                "input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "center",
                "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "tag": "augreg2_in21k_ft_in1k"}}"#,
            Ok(FolderConfig {
                n_classes: Some(1000),
                preset: Some(Preset::crop_224(248, Interpolation::Bicubic, Normalize::Half)),
                ..plain("vit_base_patch16_224")
            }),
        );
    }

    #[test]
    fn what_cannot_be_run_is_said() {
        check(
            r#"{"model_type": "resnet", "depths": [3, 4, 23, 3]}"#,
            Err(
                "`depths` is [3, 4, 23, 3] with bottleneck layers of [256, 512, 1024, 2048], wanted those of resnet18 or resnet50",
            ),
        );
        check(r#"{"model_type": "vit", "image_size": 384}"#, Err("`image_size` is 384, wanted 224"));
        check(
            r#"{"model_type": "bert"}"#,
            Err("`model_type` is `bert`, wanted resnet, vit, clip, siglip, dinov2 or dinov2_with_registers"),
        );
        check("{}", Err("`model_type` is missing"));
        check(
            r#"{"architecture": "resnet34"}"#,
            Err(
                "`architecture` is `resnet34`, wanted one of efficientnet_lite0, mobilenet_v2, resnet18, resnet50, vit_base_patch16_224",
            ),
        );
        check(
            r#"{"model_type": "vit", "id2label": {"0": "a", "2": "c"}}"#,
            Err("`id2label` is without 1, wanted every number from 0 on"),
        );
        check(
            r#"{"architecture": "resnet18", "pretrained_cfg": {"input_size": [3, 224, 224], "std": [0, 1, 1]}}"#,
            Err(
                "`pretrained_cfg.std` is `std: [0.0, 1.0, 1.0]` is no list of numbers above zero, wanted usable figures",
            ),
        );
        check("[", Err("EOF while parsing a list at line 1 column 1"));
    }
}
