//! A picture as a whole in a frame of a given size, its shape kept: what detectors read.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::MapAccess;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::extent::{Extent, MapForm, Written};

/// The grey that detectors are trained with.
const GREY: [u8; 3] = [114; 3];

/// A frame, and how a picture lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Letterbox {
    /// Columns of the frame.
    pub width: u32,
    /// Rows of the frame.
    pub height: u32,
    /// The colour of what the picture leaves free: red, green, blue.
    pub fill: [u8; 3],
    /// Where the picture lies.
    pub anchor: Anchor,
    /// Whether pictures that are smaller than the frame grow.
    pub upscale: bool,
}

/// Where a picture lies in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// In the middle; of an odd number of free rows or columns the smaller half comes first.
    #[default]
    Center,
    /// In the left upper corner.
    TopLeft,
}

impl Letterbox {
    /// A frame with the usual grey, the picture in its middle and as large as it can be.
    pub fn new(width: u32, height: u32) -> Self {
        Self { width, height, fill: GREY, anchor: Anchor::Center, upscale: true }
    }
}

/// How one picture lies in its frame. A point of the result lies at `(point - place) / scale` in the upright picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// By what lengths are multiplied.
    pub scale: f64,
    /// The size of the resized picture: columns, rows.
    pub size: [u32; 2],
    /// Where it lies in the frame: left, top.
    pub place: [u32; 2],
}

impl Letterbox {
    /// How a picture of `width`×`height` lies in the frame.
    pub fn fit(&self, width: u32, height: u32) -> Fit {
        let scale = (f64::from(self.height) / f64::from(height)).min(f64::from(self.width) / f64::from(width));
        let scale = if self.upscale { scale } else { scale.min(1.0) };
        // Halves go to the even neighbour, and of a picture that is a line at least one pixel stays.
        let scaled = |side: u32, frame: u32| ((f64::from(side) * scale).round_ties_even() as u32).clamp(1, frame);
        let size = [scaled(width, self.width), scaled(height, self.height)];
        let place = match self.anchor {
            Anchor::Center => [(self.width - size[0]) / 2, (self.height - size[1]) / 2],
            Anchor::TopLeft => [0, 0],
        };
        Fit { scale, size, place }
    }
}

impl From<Extent> for Letterbox {
    fn from(extent: Extent) -> Self {
        let [width, height] = extent.sides();
        Self::new(width, height)
    }
}

/// In the words of the pipeline file, without what is usual: `640`, `640×480 top_left`.
impl fmt::Display for Letterbox {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Extent::of_sides([self.width, self.height]).fmt(out)?;
        if self.anchor == Anchor::TopLeft {
            out.write_str(" top_left")?;
        }
        if !self.upscale {
            out.write_str(" never larger")?;
        }
        if self.fill != GREY {
            write!(out, " on {:?}", self.fill)?;
        }
        Ok(())
    }
}

/// The map form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    size: Extent,
    #[serde(default = "grey")]
    fill: [u8; 3],
    #[serde(default)]
    anchor: Anchor,
    #[serde(default = "always")]
    upscale: bool,
}

fn grey() -> [u8; 3] {
    GREY
}

fn always() -> bool {
    true
}

impl MapForm for Letterbox {
    const WANTED: &'static str = "a number of pixels from 1 to 65535, `[width, height]`, or a map with `size`";

    fn read<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let Frame { size, fill, anchor, upscale } = Frame::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Self { fill, anchor, upscale, ..Self::from(size) })
    }
}

impl<'de> Deserialize<'de> for Letterbox {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Ok(match Written::<Self>::deserialize(input)? {
            Written::Extent(extent) => extent.into(),
            Written::Map(letterbox) => letterbox,
        })
    }
}

impl Serialize for Letterbox {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        let size = Extent::of_sides([self.width, self.height]);
        if *self == Self::from(size) {
            return size.serialize(output);
        }
        Frame { size, fill: self.fill, anchor: self.anchor, upscale: self.upscale }.serialize(output)
    }
}

impl JsonSchema for Letterbox {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Letterbox".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = Extent::schema(
            "A number: the side of a square frame. `[width, height]`: a frame of this size. A map: the frame and how the picture \
             lies in it.",
        );
        let map = json_schema!({
            "type": "object", "additionalProperties": false, "required": ["size"],
            "properties": {
                "size": Extent::schema("The frame: a number for a square, or `[width, height]`."),
                "fill": {
                    "description": "The colour of what the picture leaves free: red, green, blue. Default `[114, 114, 114]`.",
                    "type": "array", "minItems": 3, "maxItems": 3,
                    "items": {"type": "integer", "minimum": 0, "maximum": 255}
                },
                "anchor": {
                    "description": "Where the picture lies: `center` (default) or `top_left`.",
                    "enum": ["center", "top_left"]
                },
                "upscale": {
                    "description": "Whether pictures that are smaller than the frame grow. Default true.",
                    "type": "boolean"
                }
            }
        });
        if let Some(forms) = schema.get_mut("anyOf").and_then(|forms| forms.as_array_mut()) {
            forms.push(map.into());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_written_short_where_it_is_the_usual_one() {
        let check = |json: &str, expected: Letterbox, shortest: &str, shown: &str| {
            let got: Letterbox = serde_json::from_str(json).unwrap();
            assert_eq!(got, expected, "{json}");
            assert_eq!(serde_json::to_string(&got).unwrap(), shortest, "{json}");
            assert_eq!(got.to_string(), shown, "{json}");
        };
        check("640", Letterbox::new(640, 640), "640", "640");
        check(r#"{"size": [640, 480], "upscale": true}"#, Letterbox::new(640, 480), "[640,480]", "640×480");
        check(
            r#"{"size": 32, "fill": [0, 1, 2], "anchor": "top_left", "upscale": false}"#,
            Letterbox { fill: [0, 1, 2], anchor: Anchor::TopLeft, upscale: false, ..Letterbox::new(32, 32) },
            r#"{"size":32,"fill":[0,1,2],"anchor":"top_left","upscale":false}"#,
            "32 top_left never larger on [0, 1, 2]",
        );
    }

    // The expectations are those of the formula of Ultralytics' `LetterBox`, computed in Python.
    #[test]
    fn a_picture_fills_the_frame_one_way_and_lies_in_its_middle_the_other() {
        let check = |frame: Letterbox, [width, height]: [u32; 2], scale: f64, size: [u32; 2], place: [u32; 2]| {
            assert_eq!(frame.fit(width, height), Fit { scale, size, place }, "{width}×{height} in {frame}");
        };
        let square = Letterbox::new(640, 640);
        check(square, [640, 640], 1.0, [640, 640], [0, 0]);
        check(square, [1280, 720], 0.5, [640, 360], [0, 140]);
        check(square, [720, 1281], 640.0 / 1281.0, [360, 640], [140, 0]);
        check(square, [320, 199], 2.0, [640, 398], [0, 121]);
        check(square, [1280, 721], 0.5, [640, 360], [0, 140]); // 360.5 → 360
        check(square, [1280, 723], 0.5, [640, 362], [0, 139]); // 361.5 → 362
        check(square, [1280, 722], 0.5, [640, 361], [0, 139]); // 279 rows are free: 139 above, 140 below
        check(square, [10_000, 3], 0.064, [640, 1], [0, 319]); // 0.19 → at least 1
        check(Letterbox { upscale: false, ..square }, [320, 199], 1.0, [320, 199], [160, 220]);
        check(Letterbox { anchor: Anchor::TopLeft, ..square }, [1280, 720], 0.5, [640, 360], [0, 0]);
        check(Letterbox::new(416, 256), [500, 375], 256.0 / 375.0, [341, 256], [37, 0]);
    }

    #[test]
    fn mistakes_are_told_with_what_to_write() {
        for (json, needle) in [
            ("0", "from 1 to 65535 pixels"),
            ("\"big\"", "or a map with `size`"),
            ("{}", "missing field `size`"),
            (r#"{"size": 1, "fill": [1, 2]}"#, "invalid length 2"),
            (r#"{"size": 1, "fill": [1, 2, 256]}"#, "256"),
            (r#"{"size": 1, "anchor": "left"}"#, "`center` or `top_left`"),
            (r#"{"size": 1, "scale": true}"#, "unknown field `scale`"),
        ] {
            let message = serde_json::from_str::<Letterbox>(json).unwrap_err().to_string();
            assert!(message.contains(needle), "{json}: {message}");
        }
    }
}
