//! The options that say which pixels a model gets.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest side that can be asked for.
const MAX_SIDE: u32 = 65_535;

/// How a picture becomes the pixels that a model gets: resized, then cropped.
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
    /// How pixels are weighed when the size changes. All but `nearest` average over what a pixel covers, as Pillow does.
    #[serde(default)]
    pub interpolation: Interpolation,
}

impl Preprocess {
    /// Height and width of the result, where they do not depend on the picture.
    pub fn output_size(&self) -> Option<(u32, u32)> {
        match (self.crop, self.resize) {
            (Some(crop), _) => Some((crop.height, crop.width)),
            (None, Some(Resize::Exact { width, height })) => Some((height, width)),
            (None, _) => None,
        }
    }
}

/// In the words of the pipeline file: `256 bicubic, crop 224`.
impl fmt::Display for Preprocess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.resize {
            Some(resize) => write!(out, "{resize} {}", self.interpolation)?,
            None => out.write_str("original size")?,
        }
        match self.crop {
            Some(crop) => write!(out, ", crop {crop}"),
            None => Ok(()),
        }
    }
}

/// The size before the crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resize {
    /// The shorter side gets this length.
    Shorter(u32),
    /// Both sides are given.
    Exact {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
    },
}

/// The part that is kept, from the centre.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Crop {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Crop {
    /// A square.
    pub fn square(side: u32) -> Self {
        Self { width: side, height: side }
    }
}

/// How pixels are weighed when the size changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// The pixel at the place. Fast, and lowers the accuracy of models that were not trained with it.
    Nearest,
    /// A triangle. What most models were trained with.
    #[default]
    Bilinear,
    /// A cubic with a = -0.5: sharper.
    Bicubic,
    /// A windowed sinc of three lobes: the sharpest, and the slowest.
    Lanczos,
}

impl fmt::Display for Interpolation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Nearest => "nearest",
            Self::Bilinear => "bilinear",
            Self::Bicubic => "bicubic",
            Self::Lanczos => "lanczos",
        })
    }
}

impl fmt::Display for Resize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Extent::from(*self).fmt(out)
    }
}

impl fmt::Display for Crop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Extent::from(*self).fmt(out)
    }
}

/// What both options look like in a file: one number, or width and height.
#[derive(Debug, Clone, Copy)]
enum Extent {
    One(u32),
    Two([u32; 2]),
}

impl fmt::Display for Extent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(side) => write!(out, "{side}"),
            Self::Two([width, height]) => write!(out, "{width}×{height}"),
        }
    }
}

impl From<Extent> for Resize {
    fn from(extent: Extent) -> Self {
        match extent {
            Extent::One(side) => Self::Shorter(side),
            Extent::Two([width, height]) => Self::Exact { width, height },
        }
    }
}

impl From<Resize> for Extent {
    fn from(resize: Resize) -> Self {
        match resize {
            Resize::Shorter(side) => Self::One(side),
            Resize::Exact { width, height } => Self::Two([width, height]),
        }
    }
}

impl From<Extent> for Crop {
    fn from(extent: Extent) -> Self {
        match extent {
            Extent::One(side) => Self::square(side),
            Extent::Two([width, height]) => Self { width, height },
        }
    }
}

impl From<Crop> for Extent {
    fn from(crop: Crop) -> Self {
        if crop.width == crop.height { Self::One(crop.width) } else { Self::Two([crop.width, crop.height]) }
    }
}

impl<'de> Deserialize<'de> for Resize {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Extent::deserialize(input).map(Self::from)
    }
}

impl Serialize for Resize {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        Extent::from(*self).serialize(output)
    }
}

impl<'de> Deserialize<'de> for Crop {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Extent::deserialize(input).map(Self::from)
    }
}

impl Serialize for Crop {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        Extent::from(*self).serialize(output)
    }
}

impl Serialize for Extent {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(side) => side.serialize(output),
            Self::Two(sides) => sides.serialize(output),
        }
    }
}

// By hand, because serde's untagged enums answer every mistake with "did not match any variant".
impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct ExtentVisitor;

        impl<'de> Visitor<'de> for ExtentVisitor {
            type Value = Extent;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "a number of pixels from 1 to {MAX_SIDE}, or `[width, height]`")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Extent, E> {
                side(value).map(Extent::One)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Extent, E> {
                side(u64::try_from(value).unwrap_or(0)).map(Extent::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Extent, A::Error> {
                let mut sides = [0; 2];
                for (n, slot) in sides.iter_mut().enumerate() {
                    let value = items.next_element::<u64>()?.ok_or_else(|| A::Error::invalid_length(n, &self))?;
                    *slot = side(value)?;
                }
                if items.next_element::<serde::de::IgnoredAny>()?.is_some() {
                    return Err(A::Error::invalid_length(3, &self));
                }
                Ok(Extent::Two(sides))
            }
        }

        input.deserialize_any(ExtentVisitor)
    }
}

fn side<E: serde::de::Error>(value: u64) -> Result<u32, E> {
    u32::try_from(value)
        .ok()
        .filter(|side| (1..=MAX_SIDE).contains(side))
        .ok_or_else(|| E::custom(format_args!("a side is from 1 to {MAX_SIDE} pixels long")))
}

fn extent_schema(description: &str) -> Schema {
    json_schema!({
        "description": description,
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": MAX_SIDE},
            {
                "type": "array", "minItems": 2, "maxItems": 2,
                "items": {"type": "integer", "minimum": 1, "maximum": MAX_SIDE}
            }
        ]
    })
}

impl JsonSchema for Resize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Resize".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        extent_schema("A number: the length of the shorter side. `[width, height]`: exactly this size.")
    }
}

impl JsonSchema for Crop {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Crop".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        extent_schema("A number: the side of a square. `[width, height]`: a rectangle.")
    }
}

#[cfg(test)]
mod tests {
    use super::{Crop, Interpolation, Preprocess, Resize};

    fn parse(json: &str) -> Result<Preprocess, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_is_the_shorter_side_and_a_square() {
        let got = parse(r#"{"resize": 256, "crop": 224, "interpolation": "bicubic"}"#).unwrap();
        let crop = Some(Crop::square(224));
        let expected = Preprocess { resize: Some(Resize::Shorter(256)), crop, interpolation: Interpolation::Bicubic };
        assert_eq!(got, expected);
        assert_eq!(got.to_string(), "256 bicubic, crop 224");
        assert_eq!(got.output_size(), Some((224, 224)));
        assert_eq!(serde_json::to_string(&got).unwrap(), r#"{"resize":256,"crop":224,"interpolation":"bicubic"}"#);
    }

    #[test]
    fn a_pair_is_width_and_height() {
        let got = parse(r#"{"resize": [320, 200]}"#).unwrap();
        assert_eq!(got.resize, Some(Resize::Exact { width: 320, height: 200 }));
        assert_eq!(got.output_size(), Some((200, 320)));
        assert_eq!(got.interpolation, Interpolation::Bilinear);
        assert_eq!(serde_json::to_string(&got).unwrap(), r#"{"resize":[320,200],"interpolation":"bilinear"}"#);
    }

    #[test]
    fn mistakes_are_told_with_what_to_write() {
        for (json, needle) in [
            (r#"{"resize": 0}"#, "from 1 to 65535 pixels"),
            (r#"{"resize": -5}"#, "from 1 to 65535 pixels"),
            (r#"{"resize": "big"}"#, "or `[width, height]`"),
            (r#"{"crop": [1]}"#, "or `[width, height]`"),
            (r#"{"crop": [1, 2, 3]}"#, "or `[width, height]`"),
            (r#"{"interpolation": "cubic"}"#, "`nearest`, `bilinear`, `bicubic`, `lanczos`"),
        ] {
            let message = parse(json).unwrap_err();
            assert!(message.contains(needle), "{json}: {message}");
        }
    }
}
