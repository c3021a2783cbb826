//! The options that say which pixels a model gets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::crop::Crop;
pub use super::interpolation::Interpolation;
pub use super::letterbox::{Anchor, Letterbox};
pub use super::resize::Resize;

/// How a picture becomes the pixels that a model gets: resized, then cropped, or put into a frame as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub struct Preprocess {
    /// The size before the crop. A number: the shorter side becomes this long and the longer one follows. `[width, height]`:
    /// exactly this size, whatever the shape. Left out: the picture keeps its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize: Option<Resize>,
    /// The part to keep, from the centre. A number: a square of this side. `[width, height]`: a rectangle. A picture that is
    /// smaller gets black edges. Left out: the whole picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crop: Option<Crop>,
    /// In place of both: a frame that the whole picture is fitted into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letterbox: Option<Letterbox>,
    /// How pixels are weighed when the size changes. All but `nearest` average over what a pixel covers, as Pillow does.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Whose roundings sizes and places have.
    #[serde(default, skip_serializing_if = "Rounding::is_default")]
    pub rounding: Rounding,
}

/// Whose roundings sizes and places have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rounding {
    /// torchvision's: a crop that leaves an odd number of pixels goes to the even place, and black edges of an odd number are
    /// smaller on the left and at the top.
    #[default]
    Torchvision,
    /// That of the image processors of transformers on Pillow: a crop goes to the smaller place, and black edges of an odd number
    /// are larger on the left and at the top. It also rounds otherwise where the longer side is bounded.
    Transformers,
}

impl Rounding {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Preprocess {
    /// Height and width of the result, where they do not depend on the picture.
    pub fn output_size(&self) -> Option<(u32, u32)> {
        match (self.letterbox, self.crop, self.resize) {
            (Some(frame), ..) => Some((frame.height, frame.width)),
            (None, Some(crop), _) => Some((crop.height, crop.width)),
            (None, None, Some(Resize::Exact { width, height })) => Some((height, width)),
            (None, None, _) => None,
        }
    }

    /// Whether the roundings show: with a crop, or with a bound for the longer side.
    fn is_rounded(&self) -> bool {
        self.letterbox.is_none() && (self.crop.is_some() || matches!(self.resize, Some(Resize::Within { .. })))
    }
}

/// In the words of the pipeline file: `256 bicubic, crop 224`.
impl fmt::Display for Preprocess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(letterbox) = self.letterbox {
            return write!(out, "letterbox {letterbox} {}", self.interpolation);
        }
        match self.resize {
            Some(resize) => write!(out, "{resize} {}", self.interpolation)?,
            None => out.write_str("original size")?,
        }
        if let Some(crop) = self.crop {
            write!(out, ", crop {crop}")?;
        }
        match self.rounding {
            Rounding::Transformers if self.is_rounded() => out.write_str(", rounded as transformers"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Crop, Interpolation, Letterbox, Preprocess, Resize, Rounding};

    fn parse(json: &str) -> Result<Preprocess, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// `json` is these options, is written like this, is told like this, and gives pictures of this height and width.
    fn check(json: &str, expected: Preprocess, written: &str, told: &str, size: Option<(u32, u32)>) {
        let got = parse(json).unwrap();
        assert_eq!(got, expected, "{json}");
        assert_eq!(serde_json::to_string(&got).unwrap(), written, "{json}");
        assert_eq!(got.to_string(), told, "{json}");
        assert_eq!(got.output_size(), size, "{json}");
    }

    #[test]
    fn a_number_is_the_shorter_side_and_a_square() {
        let resize = Some(Resize::Shorter(256));
        let crop = Some(Crop::square(224));
        let json = r#"{"resize":256,"crop":224,"interpolation":"bicubic"}"#;
        let expected = Preprocess { resize, crop, interpolation: Interpolation::Bicubic, ..Preprocess::default() };
        check(json, expected, json, "256 bicubic, crop 224", Some((224, 224)));
        let json = r#"{"resize":256,"crop":224,"interpolation":"bicubic","rounding":"transformers"}"#;
        let expected = Preprocess { rounding: Rounding::Transformers, ..expected };
        check(json, expected, json, "256 bicubic, crop 224, rounded as transformers", Some((224, 224)));
    }

    #[test]
    fn a_pair_is_width_and_height() {
        let resize = Some(Resize::Exact { width: 320, height: 200 });
        let written = r#"{"resize":[320,200],"interpolation":"bilinear"}"#;
        let expected = Preprocess { resize, ..Preprocess::default() };
        check(r#"{"resize": [320, 200]}"#, expected, written, "320×200 bilinear", Some((200, 320)));
    }

    #[test]
    fn a_map_speaks_of_both_sides() {
        for (json, resize, told) in [
            (r#"{"longer":640}"#, Resize::Longer(640), "longer side 640 bilinear"),
            (
                r#"{"shorter":800,"longer":1333}"#,
                Resize::Within { shorter: 800, longer: 1333 },
                "800 (longer side at most 1333) bilinear",
            ),
        ] {
            let json = format!(r#"{{"resize":{json},"interpolation":"bilinear"}}"#);
            let expected = Preprocess { resize: Some(resize), ..Preprocess::default() };
            check(&json, expected, &json, told, None);
        }
        assert_eq!(parse(r#"{"resize": {"shorter": 7}}"#).unwrap().resize, Some(Resize::Shorter(7)));
    }

    #[test]
    fn a_letterbox_stands_in_place_of_both() {
        let json = r#"{"letterbox":[640,480],"interpolation":"bilinear"}"#;
        let expected = Preprocess { letterbox: Some(Letterbox::new(640, 480)), ..Preprocess::default() };
        check(json, expected, json, "letterbox 640×480 bilinear", Some((480, 640)));
    }

    #[test]
    fn mistakes_are_told_with_what_to_write() {
        for (json, needle) in [
            (r#"{"resize": 0}"#, "from 1 to 65535 pixels"),
            (r#"{"resize": -5}"#, "from 1 to 65535 pixels"),
            (r#"{"resize": "big"}"#, "`[width, height]` or `{shorter: …, longer: …}`"),
            (r#"{"resize": {}}"#, "neither `shorter` nor `longer`"),
            (r#"{"resize": {"longer": 0}}"#, "from 1 to 65535 pixels"),
            (r#"{"resize": {"shorter": 9, "longer": 9}}"#, "`longer: 9` leaves no room for `shorter: 9`"),
            (r#"{"resize": {"long": 9}}"#, "unknown field `long`, expected `shorter` or `longer`"),
            (r#"{"crop": [1]}"#, "or `[width, height]`"),
            (r#"{"crop": [1, 2, 3]}"#, "or `[width, height]`"),
            (r#"{"crop": {"shorter": 1}}"#, "or `[width, height]`"),
            (r#"{"interpolation": "cubic"}"#, "`nearest`, `bilinear`, `bicubic`, `lanczos`, `box`, `hamming`"),
        ] {
            let message = parse(json).unwrap_err();
            assert!(message.contains(needle), "{json}: {message}");
        }
    }
}
