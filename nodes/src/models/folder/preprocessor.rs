//! `preprocessor_config.json`: how transformers prepares an image.
//!
//! The file leaves out much that the processor's class knows; where it does, the class's default is taken. What is asked for and
//! cannot be done is an error that names the key: pixels that are nearly right would lower a model's accuracy without a word.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use super::processors::{Number, PROCESSORS, Processor, Resizing};
use super::{FolderError, per_channel, side, uncropped};
use crate::decode::{Crop, Interpolation, Preprocess, Resize, Rounding};
use crate::models::{
    normalize::{MeanStd, Normalize},
    preset::Preset,
};

/// From this size on, the processor of ConvNeXt (which ResNet has too) resizes to a square and cuts nothing.
const CONVNEXT_WARP_FROM: u32 = 384;

/// Switches that change no pixel of an image for a classifier, whatever they say.
const HARMLESS: [&str; 3] = ["do_convert_rgb", "do_reduce_labels", "do_convert_annotations"];

/// Reads `preprocessor_config.json`.
pub fn parse_preprocessor(json: &str) -> Result<Preset, FolderError> {
    let config: Config = serde_json::from_str(json)?;
    config.refuse_other_switches()?;
    let class = config.class()?;
    let (resize, crop) = config.geometry(class)?;
    let own_crop = config.crop(class)?;
    if crop.is_some() && own_crop.is_some() {
        return Err(FolderError::value("do_center_crop", true, format!("false: `{}` has cut already", class.name)));
    }
    let pixels = Preprocess {
        resize,
        crop: own_crop.or(crop),
        letterbox: None,
        interpolation: config.interpolation(class)?,
        rounding: config.rounding(),
    };
    Ok(Preset { pixels, normalize: config.normalize(class)? })
}

/// Reads `processor_config.json`, which newer folders have instead; `None` where it says nothing of images.
pub fn parse_processor(json: &str) -> Result<Option<Preset>, FolderError> {
    let whole: Value = serde_json::from_str(json)?;
    whole
        .get("image_processor")
        .filter(|part| part.is_object())
        .map(|part| parse_preprocessor(&part.to_string()))
        .transpose()
}

#[derive(Debug, Deserialize)]
struct Config {
    image_processor_type: Option<String>,
    feature_extractor_type: Option<String>,
    do_resize: Option<bool>,
    size: Option<Value>,
    max_size: Option<u64>,
    crop_pct: Option<f64>,
    resample: Option<u8>,
    do_center_crop: Option<bool>,
    crop_size: Option<Value>,
    do_rescale: Option<bool>,
    rescale_factor: Option<f64>,
    rescale_offset: Option<bool>,
    do_normalize: Option<bool>,
    include_top: Option<bool>,
    image_mean: Option<Vec<f64>>,
    image_std: Option<Vec<f64>>,
    #[serde(flatten)]
    others: IndexMap<String, Value>,
}

/// The ways in which sizes are written.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(super) enum Size {
    /// What it means depends on the class.
    Number(u64),
    /// Height and width.
    Pair([u64; 2]),
    /// Both sides.
    Exact {
        /// Rows.
        height: u64,
        /// Columns.
        width: u64,
    },
    /// The shorter side, and the most that the longer one may have.
    Within {
        /// The shorter side.
        shortest_edge: u64,
        /// The longer one.
        longest_edge: u64,
    },
    /// The shorter side.
    Shorter {
        /// The shorter side.
        shortest_edge: u64,
    },
}

impl Size {
    fn read(key: &'static str, value: &Value) -> Result<Self, FolderError> {
        const WANTED: &str = "a number, {height, width}, {shortest_edge} or {shortest_edge, longest_edge}";
        Self::deserialize(value).map_err(|_| FolderError::value(key, value, WANTED))
    }
}

impl Config {
    fn class(&self) -> Result<&'static Processor, FolderError> {
        let (key, name) = match (&self.image_processor_type, &self.feature_extractor_type) {
            (Some(name), _) => ("image_processor_type", name),
            (None, Some(name)) => ("feature_extractor_type", name),
            (None, None) => return Ok(&PROCESSORS[0]),
        };
        let base = ["ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name);
        PROCESSORS.iter().find(|class| class.name == base).ok_or_else(|| {
            let names: Vec<_> = PROCESSORS.iter().map(|class| class.name).collect();
            FolderError::value(key, format!("`{name}`"), format!("that of one of {}", names.join(", ")))
        })
    }

    /// A file that names no class was not written by transformers.
    fn rounding(&self) -> Rounding {
        match (&self.image_processor_type, &self.feature_extractor_type) {
            (None, None) => Rounding::Torchvision,
            _ => Rounding::Transformers,
        }
    }

    /// Every switch that is on does something to the pixels.
    fn refuse_other_switches(&self) -> Result<(), FolderError> {
        let on = |key: &str, value: &Value| {
            key.starts_with("do_") && !HARMLESS.contains(&key) && !matches!(value, Value::Bool(false) | Value::Null)
        };
        match self.others.iter().find(|(key, value)| on(key, value)) {
            Some((key, value)) => Err(FolderError::value(key.clone(), value, "false: nothing here does that")),
            None => Ok(()),
        }
    }

    /// The size before cropping, and the crop that comes with it.
    fn geometry(&self, class: &Processor) -> Result<(Option<Resize>, Option<Crop>), FolderError> {
        if self.do_resize == Some(false) {
            return Ok((None, None));
        }
        let size = match &self.size {
            Some(size) => Size::read("size", size)?,
            None => class.size,
        };
        let size = match (size, class.number, self.max_size) {
            (Size::Number(length), Number::Square, _) => Size::Exact { height: length, width: length },
            (Size::Number(length), Number::Shorter, None) => Size::Shorter { shortest_edge: length },
            (Size::Number(length), Number::Shorter, Some(most)) => {
                Size::Within { shortest_edge: length, longest_edge: most }
            }
            (size, ..) => size,
        };
        match (class.resizing, size) {
            (Resizing::CropPct, Size::Shorter { shortest_edge }) => self.crop_pct(shortest_edge),
            (Resizing::CropPct, _) => {
                let found = self.size.as_ref().map_or_else(String::new, Value::to_string);
                Err(FolderError::value("size", found, format!("{{shortest_edge}} for `{}`", class.name)))
            }
            (Resizing::Larger, Size::Shorter { shortest_edge }) => {
                let larger = side("size", shortest_edge).map(|side| (256.0 / 224.0 * f64::from(side)) as u32)?;
                Ok((Some(Resize::Shorter(side("size", larger.into())?)), None))
            }
            (_, Size::Exact { height, width } | Size::Pair([height, width])) => {
                let (height, width) = (side("size", height)?, side("size", width)?);
                Ok((Some(Resize::Exact { height, width }), None))
            }
            (_, Size::Shorter { shortest_edge }) => Ok((Some(Resize::Shorter(side("size", shortest_edge)?)), None)),
            (_, Size::Within { shortest_edge, longest_edge }) => {
                let (shorter, longer) = (side("size", shortest_edge)?, side("size", longest_edge)?);
                Ok((Some(Resize::Within { shorter, longer }), None))
            }
            (_, Size::Number(_)) => unreachable!("a number has become one of the others"),
        }
    }

    fn crop_pct(&self, length: u64) -> Result<(Option<Resize>, Option<Crop>), FolderError> {
        let length = side("size", length)?;
        if length >= CONVNEXT_WARP_FROM {
            return Ok((Some(Resize::Exact { height: length, width: length }), None));
        }
        let larger = uncropped("crop_pct", length, self.crop_pct.unwrap_or(224.0 / 256.0))?;
        Ok((Some(Resize::Shorter(larger)), Some(Crop::square(length))))
    }

    fn crop(&self, class: &Processor) -> Result<Option<Crop>, FolderError> {
        if !self.do_center_crop.unwrap_or(class.crops) {
            return Ok(None);
        }
        let size = match (&self.crop_size, class.crop_size) {
            (Some(size), _) => Size::read("crop_size", size)?,
            (None, Some(length)) => Size::Number(length),
            (None, None) => return Err(FolderError::Missing("crop_size")),
        };
        let (height, width) = match size {
            Size::Number(length) => (length, length),
            Size::Exact { height, width } | Size::Pair([height, width]) => (height, width),
            Size::Shorter { .. } | Size::Within { .. } => {
                let found = self.crop_size.as_ref().map_or_else(String::new, Value::to_string);
                return Err(FolderError::value("crop_size", found, "a number or {height, width}"));
            }
        };
        Ok(Some(Crop { height: side("crop_size", height)?, width: side("crop_size", width)? }))
    }

    /// Pillow's numbers.
    fn interpolation(&self, class: &Processor) -> Result<Interpolation, FolderError> {
        match self.resample.unwrap_or(class.resample) {
            0 => Ok(Interpolation::Nearest),
            1 => Ok(Interpolation::Lanczos),
            2 => Ok(Interpolation::Bilinear),
            3 => Ok(Interpolation::Bicubic),
            4 => Ok(Interpolation::Box),
            5 => Ok(Interpolation::Hamming),
            other => Err(FolderError::value(
                "resample",
                other,
                "0 (nearest), 1 (lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 (hamming)",
            )),
        }
    }

    /// Pixels are multiplied, shifted by one if so written, then normalised, perhaps twice: one formula in all.
    fn normalize(&self, class: &Processor) -> Result<Normalize, FolderError> {
        let does_rescale = self.do_rescale.unwrap_or(true);
        let factor = if does_rescale { self.rescale_factor.unwrap_or(1.0 / 255.0) } else { 1.0 };
        if !(factor.is_finite() && factor > 0.0) {
            return Err(FolderError::value("rescale_factor", factor, "a number above zero"));
        }
        let shift = if does_rescale && self.rescale_offset.unwrap_or(false) { 1.0 } else { 0.0 };
        let written_std = per_channel("image_std", self.image_std.as_deref().unwrap_or(&class.std))?;
        let (mean, mut std) = if self.do_normalize.unwrap_or(true) {
            (per_channel("image_mean", self.image_mean.as_deref().unwrap_or(&class.mean))?, written_std)
        } else {
            ([0.0; 3], [1.0; 3])
        };
        if self.include_top.unwrap_or(class.include_top) {
            for (std, again) in std.iter_mut().zip(written_std) {
                *std *= again;
            }
        }
        let in_units_of_255 = 255.0 * factor;
        let figures = MeanStd {
            mean: mean.map(|mean| (mean + shift) / in_units_of_255),
            std: std.map(|std| std / in_units_of_255),
        };
        Normalize::named(figures).map_err(|error| FolderError::value("image_std", error, "usable figures"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        json: &str,
        resize: impl Into<Option<Resize>>,
        crop: Option<Crop>,
        interpolation: Interpolation,
        normalize: Normalize,
    ) {
        let names_its_class = json.contains("ImageProcessor") || json.contains("FeatureExtractor");
        let rounding = if names_its_class { Rounding::Transformers } else { Rounding::Torchvision };
        let pixels = Preprocess { resize: resize.into(), crop, letterbox: None, interpolation, rounding };
        let expected = Preset { pixels, normalize };
        assert_eq!(parse_preprocessor(json).map_err(|error| error.to_string()), Ok(expected), "{json}");
    }

    #[test]
    fn each_form_of_size_is_understood() {
        const SQUARE: Resize = Resize::Exact { height: 224, width: 224 };
        // ViT, as first written and as written now.
        check(
            r#"{"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
                "size": 224, "resample": 2, "feature_extractor_type": "ViTFeatureExtractor"}"#,
            SQUARE,
            None,
            Interpolation::Bilinear,
            Normalize::Half,
        );
        check(
            r#"{"do_normalize": true, "do_rescale": true, "image_processor_type": "ViTImageProcessor",
                "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 2,
                "rescale_factor": 0.00392156862745098, "size": {"height": 224, "width": 224}}"#,
            SQUARE,
            None,
            Interpolation::Bilinear,
            Normalize::Half,
        );
        // ResNet.
        check(
            r#"{"crop_pct": 0.875, "do_normalize": true, "do_resize": true, "feature_extractor_type":
                "ConvNextFeatureExtractor", "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
                "resample": 3, "size": 224}"#,
            Resize::Shorter(256),
            Some(Crop::square(224)),
            Interpolation::Bicubic,
            Normalize::Imagenet,
        );
        check(
            r#"{"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}, "resample": 3}"#,
            Resize::Exact { height: 384, width: 384 },
            None,
            Interpolation::Bicubic,
            Normalize::Half,
        );
        // A shorter side and a crop of their own.
        check(
            r#"{"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256}, "do_center_crop": true,
                "crop_size": {"height": 224, "width": 200}, "resample": 4, "image_mean": [0.5, 0.5, 0.5],
                "image_std": [0.5, 0.5, 0.5]}"#,
            Resize::Shorter(256),
            Some(Crop { height: 224, width: 200 }),
            Interpolation::Box,
            Normalize::Half,
        );
        check(
            r#"{"image_processor_type": "SiglipImageProcessor", "size": 256, "do_center_crop": false, "crop_size": 224}"#,
            Resize::Shorter(256),
            None,
            Interpolation::Bicubic,
            Normalize::Half,
        );
        check(
            r#"{"do_resize": false, "do_center_crop": true, "crop_size": 224}"#,
            None,
            Some(Crop::square(224)),
            Interpolation::Bilinear,
            Normalize::Half,
        );
    }

    #[test]
    fn the_newer_file_has_the_image_processor_within() {
        let image = r#"{"image_processor_type": "SiglipImageProcessor", "size": {"height": 384, "width": 384}}"#;
        let json = format!(r#"{{"image_processor": {image}, "processor_class": "SiglipProcessor"}}"#);
        let preset = parse_preprocessor(image).expect("a preset");
        assert_eq!(parse_processor(&json).expect("a preset"), Some(preset));
        assert_eq!(parse_processor(r#"{"processor_class": "CLIPProcessor"}"#).expect("JSON"), None);
    }

    #[test]
    fn the_embedders_files_are_understood() {
        let clip = Normalize::Custom(MeanStd {
            mean: [0.48145466, 0.4578275, 0.40821073],
            std: [0.26862954, 0.26130258, 0.27577711],
        });
        // openai/clip-vit-base-patch32, and laion's.
        for json in [
            r#"{"crop_size": 224, "do_center_crop": true, "do_normalize": true, "do_resize": true,
                "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.48145466, 0.4578275, 0.40821073],
                "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 224}"#,
            r#"{"crop_size": {"height": 224, "width": 224}, "do_center_crop": true, "do_convert_rgb": true,
                "do_normalize": true, "do_rescale": true, "do_resize": true, "feature_extractor_type":
                "CLIPFeatureExtractor", "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_processor_type":
                "CLIPImageProcessor", "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3,
                "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 224}}"#,
        ] {
            check(json, Resize::Shorter(224), Some(Crop::square(224)), Interpolation::Bicubic, clip);
        }
        // google/siglip-so400m-patch14-384; the second one of SigLIP 2 has bilinear.
        for (resample, interpolation) in [(3, Interpolation::Bicubic), (2, Interpolation::Bilinear)] {
            let json = format!(
                r#"{{"do_convert_rgb": null, "do_normalize": true, "do_rescale": true, "do_resize": true,
                "image_mean": [0.5, 0.5, 0.5], "image_processor_type": "SiglipImageProcessor", "image_std": [0.5, 0.5, 0.5],
                "processor_class": "SiglipProcessor", "resample": {resample}, "rescale_factor": 0.00392156862745098,
                "size": {{"height": 384, "width": 384}}}}"#
            );
            check(&json, Resize::Exact { height: 384, width: 384 }, None, interpolation, Normalize::Half);
        }
        // facebook/dinov2-base.
        check(
            r#"{"crop_size": {"height": 224, "width": 224}, "do_center_crop": true, "do_convert_rgb": true,
                "do_normalize": true, "do_rescale": true, "do_resize": true, "image_mean": [0.485, 0.456, 0.406],
                "image_processor_type": "BitImageProcessor", "image_std": [0.229, 0.224, 0.225], "resample": 3,
                "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}}"#,
            Resize::Shorter(256),
            Some(Crop::square(224)),
            Interpolation::Bicubic,
            Normalize::Imagenet,
        );
    }

    #[test]
    fn rescaling_and_normalising_become_one_formula() {
        let square = Resize::Exact { height: 224, width: 224 };
        let custom = |mean, std| Normalize::Custom(MeanStd { mean: [mean; 3], std: [std; 3] });
        for (json, normalize) in [
            (r#"{"do_normalize": false}"#, custom(0.0, 1.0)),
            (r#"{"do_rescale": false, "do_normalize": false}"#, Normalize::None),
            (
                r#"{"rescale_factor": 0.00784313725490196, "rescale_offset": true, "do_normalize": false}"#,
                Normalize::Half,
            ),
            (r#"{"do_rescale": false, "image_mean": [127, 127, 127], "image_std": [128, 128, 128]}"#, Normalize::Tf127),
            (r#"{"image_mean": [0.25, 0.25, 0.25], "image_std": [2, 2, 2]}"#, custom(0.25, 2.0)),
        ] {
            check(json, square, None, Interpolation::Bilinear, normalize);
        }
    }

    #[test]
    fn what_cannot_be_followed_is_said() {
        for (json, expected) in [
            (r#"{"size": 0}"#, "`size` is 0, wanted 1 to 16384"),
            (r#"{"size": {"shortest_edge": 99999999999}}"#, "`size` is 99999999999, wanted 1 to 16384"),
            (
                r#"{"resample": 6}"#,
                "`resample` is 6, wanted 0 (nearest), 1 (lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 (hamming)",
            ),
            (r#"{"image_mean": [0.5]}"#, "`image_mean` is [0.5], wanted one number for each of three colours"),
            (r#"{"rescale_factor": 0}"#, "`rescale_factor` is 0, wanted a number above zero"),
            (
                r#"{"image_processor_type": "ConvNextImageProcessor", "size": 224, "crop_pct": 0}"#,
                "`crop_pct` is 0, wanted 0.1 to 1",
            ),
            (
                r#"{"image_processor_type": "ConvNextImageProcessor", "size": {"height": 9, "width": 9}}"#,
                "`size` is {\"height\":9,\"width\":9}, wanted {shortest_edge} for `ConvNext`",
            ),
            (
                r#"{"image_processor_type": "ConvNextImageProcessor", "size": 224, "do_center_crop": true, "crop_size": 9}"#,
                "`do_center_crop` is true, wanted false: `ConvNext` has cut already",
            ),
            (r#"{"do_center_crop": true}"#, "`crop_size` is missing"),
            (
                r#"{"do_center_crop": true, "crop_size": {"shortest_edge": 9}}"#,
                "`crop_size` is {\"shortest_edge\":9}, wanted a number or {height, width}",
            ),
            (r#"{"do_pad": true}"#, "`do_pad` is true, wanted false: nothing here does that"),
            (r#"{"do_thumbnail": true}"#, "`do_thumbnail` is true, wanted false: nothing here does that"),
            (r#"{"do_flip_channel_order": 1}"#, "`do_flip_channel_order` is 1, wanted false: nothing here does that"),
            (
                r#"{"image_processor_type": "DonutImageProcessor"}"#,
                "`image_processor_type` is `DonutImageProcessor`, wanted that of one of ViT, DeiT, Beit, Pvt, Blip, Siglip, \
                 EfficientNet, CLIP, ChineseCLIP, Bit, ConvNext, Levit, MobileNetV1, MobileNetV2",
            ),
            (
                r#"{"size": {"longest_edge": 9}}"#,
                "`size` is {\"longest_edge\":9}, wanted a number, {height, width}, {shortest_edge} or {shortest_edge, longest_edge}",
            ),
        ] {
            let found = parse_preprocessor(json).map_err(|error| error.to_string());
            assert_eq!(found, Err(expected.to_owned()), "{json}");
        }
    }
}
