//! How what a file holds beyond three colours of eight bits becomes RGB.
//!
//! Nothing here knows of formats: a codec hands over a pixel with its opacity, or a long grey, and gets what is written.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The two rules for what RGB cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Colours {
    /// What becomes of transparency.
    pub alpha: Alpha,
    /// What becomes of greys of more than eight bits.
    pub grey16: Grey16,
}

/// What is not as in Pillow, as it is put behind the rest: `, over white, grey16 scaled`.
impl fmt::Display for Colours {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Alpha::Over(colour) = self.alpha {
            write!(out, ", over {colour}")?;
        }
        if self.grey16 == Grey16::Scale {
            out.write_str(", grey16 scaled")?;
        }
        Ok(())
    }
}

/// What becomes of transparency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Alpha {
    /// It is left out: what is under it shows, as Pillow's `convert("RGB")` does it.
    #[default]
    Drop,
    /// The picture is laid over this colour, as Pillow's `alpha_composite` does it.
    Over(Colour),
}

impl Alpha {
    /// What a pixel of this colour and this opacity becomes.
    #[inline]
    pub(super) fn apply(self, rgb: [u8; 3], opacity: u8) -> [u8; 3] {
        match (self, opacity) {
            (Self::Drop, _) | (_, 255) => rgb,
            (Self::Over(ground), 0) => ground.0,
            (Self::Over(ground), _) => {
                let mut out = rgb;
                for (value, under) in out.iter_mut().zip(ground.0) {
                    *value = mixed(*value, under, opacity);
                }
                out
            }
        }
    }

    /// What a row of pixels with their opacities becomes.
    pub(super) fn apply_all(self, rgba: &[u8], rgb: &mut [u8]) {
        for (out, pixel) in rgb.chunks_exact_mut(3).zip(rgba.chunks_exact(4)) {
            out.copy_from_slice(&self.apply([pixel[0], pixel[1], pixel[2]], pixel[3]));
        }
    }
}

/// The weighted mean of two samples, with Pillow's seven bits behind the point and its rounding.
fn mixed(over: u8, under: u8, opacity: u8) -> u8 {
    let opacity = u32::from(opacity);
    let sum = (u32::from(over) * opacity + u32::from(under) * (255 - opacity) + 128) << 7;
    ((((sum >> 8) + sum) >> 8) >> 7) as u8
}

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

impl Colour {
    const NAMED: [(&str, [u8; 3]); 3] = [("white", [255; 3]), ("black", [0; 3]), ("grey", [128; 3])];
    const EXPECTED: &str = "`white`, `black`, `grey` or `[red, green, blue]` of 0 to 255";
}

impl fmt::Display for Colour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(_, rgb)| *rgb == self.0) {
            Some((name, _)) => out.write_str(name),
            None => write!(out, "[{}, {}, {}]", self.0[0], self.0[1], self.0[2]),
        }
    }
}

impl Serialize for Colour {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(output)
    }
}

// By hand, because serde's untagged enums answer every mistake with "did not match any variant".
impl<'de> Deserialize<'de> for Colour {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(ColourVisitor)
    }
}

struct ColourVisitor;

impl<'de> Visitor<'de> for ColourVisitor {
    type Value = Colour;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(Colour::EXPECTED)
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Colour, E> {
        let named = Colour::NAMED.iter().find(|(known, _)| *known == name);
        named
            .map(|(_, rgb)| Colour(*rgb))
            .ok_or_else(|| E::custom(format!("no colour `{name}`: write {}", Colour::EXPECTED)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Colour, A::Error> {
        let mut samples = Vec::new();
        while let Some(sample) = sequence.next_element::<u8>()? {
            samples.push(sample);
        }
        let n_samples = samples.len();
        let rgb = samples.try_into().map_err(|_| A::Error::invalid_length(n_samples, &self))?;
        Ok(Colour(rgb))
    }
}

impl JsonSchema for Colour {
    fn schema_name() -> Cow<'static, str> {
        "Colour".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`white`, `black`, `grey`, or red, green and blue as numbers from 0 to 255.",
            // What a manual calls it, for short.
            "x-format": "colour",
            "oneOf": [
                {"type": "string", "enum": ["white", "black", "grey"]},
                {
                    "type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255},
                    "minItems": 3, "maxItems": 3
                }
            ]
        })
    }
}

/// What becomes of greys of more than eight bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grey16 {
    /// Everything from 255 on is white, as Pillow's `convert("RGB")` does it.
    #[default]
    Clip,
    /// The highest eight bits are taken.
    Scale,
}

impl Grey16 {
    /// The eight bits that stand for an unsigned sample of `bits` bits, of which there are more than eight.
    #[inline]
    pub(super) fn apply(self, sample: u32, bits: u32) -> u8 {
        match self {
            Self::Clip => sample.min(255) as u8,
            Self::Scale => (sample >> (bits - 8)) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Alpha, Colour, Colours, Grey16};

    #[test]
    fn opacity_decides_between_the_picture_and_the_colour() {
        let over = Alpha::Over(Colour([255, 0, 100]));
        assert_eq!(over.apply([10, 20, 30], 0), [255, 0, 100]);
        assert_eq!(over.apply([10, 20, 30], 255), [10, 20, 30]);
        // Pillow: alpha_composite of (10, 20, 30, 77) over (255, 0, 100, 255).
        assert_eq!(over.apply([10, 20, 30], 77), [181, 6, 79]);
        assert_eq!(Alpha::Drop.apply([10, 20, 30], 0), [10, 20, 30]);
    }

    #[test]
    fn mixing_is_the_rounded_mean_for_all_values() {
        for opacity in 0..=255u32 {
            for over in (0..=255u32).step_by(5) {
                for under in [0, 1, 127, 128, 254, 255u32] {
                    let exact = f64::from(over * opacity + under * (255 - opacity)) / 255.0;
                    let got = super::mixed(over as u8, under as u8, opacity as u8);
                    assert_eq!(f64::from(got), exact.round(), "{over} over {under} at {opacity}");
                }
            }
        }
    }

    #[test]
    fn colours_are_names_or_numbers() {
        let parse = |json: &str| serde_json::from_str::<Alpha>(json).map_err(|error| error.to_string());
        assert_eq!(parse(r#""drop""#), Ok(Alpha::Drop));
        assert_eq!(parse(r#"{"over": "white"}"#), Ok(Alpha::Over(Colour([255; 3]))));
        assert_eq!(parse(r#"{"over": [1, 2, 3]}"#), Ok(Alpha::Over(Colour([1, 2, 3]))));
        for (json, needle) in [
            (r#"{"over": "pink"}"#, "no colour `pink`: write `white`, `black`, `grey` or `[red, green, blue]`"),
            (r#"{"over": [1, 2]}"#, "expected `white`, `black`, `grey` or `[red, green, blue]` of 0 to 255"),
            (r#"{"over": [1, 2, 256]}"#, "256"),
            (r#""keep""#, "`drop` or `over`"),
        ] {
            let message = parse(json).unwrap_err();
            assert!(message.contains(needle), "{json}: {message}");
        }
        let colours = Colours { alpha: Alpha::Over(Colour([255; 3])), grey16: Grey16::Scale };
        assert_eq!(colours.to_string(), ", over white, grey16 scaled");
        assert_eq!(Colours::default().to_string(), "");
    }

    #[test]
    fn long_greys_are_clipped_or_scaled() {
        assert_eq!(Grey16::Clip.apply(0x8000, 16), 255);
        assert_eq!(Grey16::Clip.apply(200, 16), 200);
        assert_eq!(Grey16::Scale.apply(0x8000, 16), 128);
        assert_eq!(Grey16::Scale.apply(0xfff, 12), 255);
    }
}
