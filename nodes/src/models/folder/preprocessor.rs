//! `preprocessor_config.json`: how transformers prepares an image.
//!
//! The file leaves out much that the processor's class knows; where it does, the class's default is taken.

use serde::Deserialize;
use serde_json::Value;

use super::{FolderError, per_channel, side, uncropped};
use crate::decode::{Crop, Interpolation, Preprocess, Resize};
use crate::models::{
    normalize::{MeanStd, Normalize},
    preset::Preset,
};

/// From this size on, the processor of ConvNeXt (which ResNet has too) resizes to a square and cuts nothing.
const CONVNEXT_WARP_FROM: u32 = 384;

/// Reads `preprocessor_config.json`.
pub fn parse_preprocessor(json: &str) -> Result<Preset, FolderError> {
    let config: Preprocessor = serde_json::from_str(json)?;
    let (resize, crop) = config.geometry()?;
    let pixels = Preprocess { resize, crop: config.crop()?.or(crop), interpolation: config.interpolation()? };
    Ok(Preset { pixels, normalize: config.normalize()? })
}

#[derive(Debug, Deserialize)]
struct Preprocessor {
    image_processor_type: Option<String>,
    feature_extractor_type: Option<String>,
    do_resize: Option<bool>,
    size: Option<Value>,
    crop_pct: Option<f64>,
    resample: Option<u8>,
    do_center_crop: Option<bool>,
    crop_size: Option<Value>,
    do_rescale: Option<bool>,
    rescale_factor: Option<f64>,
    rescale_offset: Option<bool>,
    do_normalize: Option<bool>,
    image_mean: Option<Vec<f64>>,
    image_std: Option<Vec<f64>>,
}

/// The three ways in which sizes are written.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Size {
    Number(u64),
    Exact { height: u64, width: u64 },
    Shorter { shortest_edge: u64 },
}

impl Size {
    fn read(key: &'static str, value: &Value) -> Result<Self, FolderError> {
        const WANTED: &str = "a number, {height, width} or {shortest_edge}";
        Self::deserialize(value).map_err(|_| FolderError::value(key, value, WANTED))
    }
}

impl Preprocessor {
    fn class(&self) -> &str {
        self.image_processor_type.as_deref().or(self.feature_extractor_type.as_deref()).unwrap_or("ViT")
    }

    /// The size before cropping, and the crop that comes with it.
    fn geometry(&self) -> Result<(Option<Resize>, Option<Crop>), FolderError> {
        if self.do_resize == Some(false) {
            return Ok((None, None));
        }
        let convnext = self.class().starts_with("ConvNext") || self.crop_pct.is_some();
        let size = match &self.size {
            Some(size) => Size::read("size", size)?,
            None => Size::Number(224),
        };
        match size {
            Size::Exact { height, width } => Ok((Some(exact(height, width)?), None)),
            Size::Number(length) | Size::Shorter { shortest_edge: length } if convnext => self.convnext(length),
            Size::Shorter { shortest_edge } => Ok((Some(Resize::Shorter(side("size", shortest_edge)?)), None)),
            // A bare number is a square to the processors of transformers, and the shorter side to those of
            // convolutional networks.
            Size::Number(length) if ["ViT", "DeiT", "Beit"].iter().any(|class| self.class().starts_with(class)) => {
                Ok((Some(exact(length, length)?), None))
            }
            Size::Number(length) => Ok((Some(Resize::Shorter(side("size", length)?)), None)),
        }
    }

    fn convnext(&self, length: u64) -> Result<(Option<Resize>, Option<Crop>), FolderError> {
        let length = side("size", length)?;
        if length >= CONVNEXT_WARP_FROM {
            return Ok((Some(Resize::Exact { height: length, width: length }), None));
        }
        let larger = uncropped("crop_pct", length, self.crop_pct.unwrap_or(224.0 / 256.0))?;
        Ok((Some(Resize::Shorter(larger)), Some(Crop::square(length))))
    }

    fn crop(&self) -> Result<Option<Crop>, FolderError> {
        let Some(crop_size) = &self.crop_size else {
            return Ok(None);
        };
        if self.do_center_crop != Some(true) {
            return Ok(None);
        }
        let (height, width) = match Size::read("crop_size", crop_size)? {
            Size::Number(length) | Size::Shorter { shortest_edge: length } => (length, length),
            Size::Exact { height, width } => (height, width),
        };
        Ok(Some(Crop { height: side("crop_size", height)?, width: side("crop_size", width)? }))
    }

    /// Pillow's numbers.
    fn interpolation(&self) -> Result<Interpolation, FolderError> {
        match self.resample {
            Some(0) => Ok(Interpolation::Nearest),
            Some(1) => Ok(Interpolation::Lanczos),
            None | Some(2) => Ok(Interpolation::Bilinear),
            Some(3) => Ok(Interpolation::Bicubic),
            Some(other) => {
                Err(FolderError::value("resample", other, "0 (nearest), 1 (lanczos), 2 (bilinear) or 3 (bicubic)"))
            }
        }
    }

    /// Pixels are multiplied, shifted by one if so written, then normalised: one formula in all.
    fn normalize(&self) -> Result<Normalize, FolderError> {
        let factor = match (self.do_rescale.unwrap_or(true), self.rescale_factor) {
            (false, _) => 1.0,
            (true, factor) => factor.unwrap_or(1.0 / 255.0),
        };
        if !(factor.is_finite() && factor > 0.0) {
            return Err(FolderError::value("rescale_factor", factor, "a number above zero"));
        }
        let shift = if self.rescale_offset.unwrap_or(false) { 1.0 } else { 0.0 };
        let (mean, std) = if self.do_normalize.unwrap_or(true) {
            (
                per_channel("image_mean", self.image_mean.as_deref().unwrap_or(&[0.5; 3]))?,
                per_channel("image_std", self.image_std.as_deref().unwrap_or(&[0.5; 3]))?,
            )
        } else {
            ([0.0; 3], [1.0; 3])
        };
        let in_units_of_255 = 255.0 * factor;
        let figures = MeanStd {
            mean: mean.map(|mean| (mean + shift) / in_units_of_255),
            std: std.map(|std| std / in_units_of_255),
        };
        Normalize::named(figures).map_err(|error| FolderError::value("image_std", error, "usable figures"))
    }
}

fn exact(height: u64, width: u64) -> Result<Resize, FolderError> {
    Ok(Resize::Exact { height: side("size", height)?, width: side("size", width)? })
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
        let pixels = Preprocess { resize: resize.into(), crop, interpolation };
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
                "crop_size": {"height": 224, "width": 200}, "resample": 3}"#,
            Resize::Shorter(256),
            Some(Crop { height: 224, width: 200 }),
            Interpolation::Bicubic,
            Normalize::Half,
        );
        check(
            r#"{"image_processor_type": "CLIPImageProcessor", "size": 256, "do_center_crop": false, "crop_size": 224}"#,
            Resize::Shorter(256),
            None,
            Interpolation::Bilinear,
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
            (r#"{"resample": 4}"#, "`resample` is 4, wanted 0 (nearest), 1 (lanczos), 2 (bilinear) or 3 (bicubic)"),
            (r#"{"image_mean": [0.5]}"#, "`image_mean` is [0.5], wanted one number for each of three colours"),
            (r#"{"rescale_factor": 0}"#, "`rescale_factor` is 0, wanted a number above zero"),
            (r#"{"size": 224, "crop_pct": 0}"#, "`crop_pct` is 0, wanted 0.1 to 1"),
            (
                r#"{"size": {"longest_edge": 9}}"#,
                "`size` is {\"longest_edge\":9}, wanted a number, {height, width} or {shortest_edge}",
            ),
        ] {
            let found = parse_preprocessor(json).map_err(|error| error.to_string());
            assert_eq!(found, Err(expected.to_owned()), "{json}");
        }
    }
}
