//! The size that a picture gets before the crop.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::extent::{Extent, MAX_SIDE, MapForm, Written, side};

/// The size before the crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resize {
    /// The shorter side gets this length.
    Shorter(u32),
    /// The longer side gets this length.
    Longer(u32),
    /// The shorter side gets its length, unless the longer one would then be longer than it may: then that one gets its own.
    Within {
        /// What the shorter side is to become.
        shorter: u32,
        /// What the longer side may be.
        longer: u32,
    },
    /// Both sides are given.
    Exact {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
    },
}

impl fmt::Display for Resize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shorter(side) => write!(out, "{side}"),
            Self::Longer(side) => write!(out, "longer side {side}"),
            Self::Within { shorter, longer } => write!(out, "{shorter} (longer side at most {longer})"),
            Self::Exact { width, height } => Extent::Two([width, height]).fmt(out),
        }
    }
}

/// The map form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sides {
    #[serde(skip_serializing_if = "Option::is_none")]
    shorter: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longer: Option<u64>,
}

impl MapForm for Resize {
    const WANTED: &'static str = "a number of pixels from 1 to 65535, `[width, height]` or `{shorter: …, longer: …}`";

    fn read<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let Sides { shorter, longer } = Sides::deserialize(MapAccessDeserializer::new(map))?;
        match (shorter.map(side).transpose()?, longer.map(side).transpose()?) {
            (Some(shorter), Some(longer)) if longer <= shorter => Err(A::Error::custom(format_args!(
                "`longer: {longer}` leaves no room for `shorter: {shorter}`; it is the most that the longer side may have"
            ))),
            (Some(shorter), Some(longer)) => Ok(Self::Within { shorter, longer }),
            (Some(shorter), None) => Ok(Self::Shorter(shorter)),
            (None, Some(longer)) => Ok(Self::Longer(longer)),
            (None, None) => Err(A::Error::custom("neither `shorter` nor `longer` is given")),
        }
    }
}

impl<'de> Deserialize<'de> for Resize {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Ok(match Written::<Self>::deserialize(input)? {
            Written::Extent(Extent::One(side)) => Self::Shorter(side),
            Written::Extent(Extent::Two([width, height])) => Self::Exact { width, height },
            Written::Map(resize) => resize,
        })
    }
}

impl Serialize for Resize {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        let (shorter, longer) = match *self {
            Self::Shorter(side) => return Extent::One(side).serialize(output),
            Self::Exact { width, height } => return Extent::Two([width, height]).serialize(output),
            Self::Longer(longer) => (None, Some(longer.into())),
            Self::Within { shorter, longer } => (Some(shorter.into()), Some(longer.into())),
        };
        Sides { shorter, longer }.serialize(output)
    }
}

impl JsonSchema for Resize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Resize".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = Extent::schema(
            "A number: the length of the shorter side. `[width, height]`: exactly this size. `{longer: …}`: the length of the \
             longer side. `{shorter: …, longer: …}`: the length of the shorter side, and the most that the longer one may have.",
        );
        let side = |description: &str| json_schema!({"description": description, "type": "integer", "minimum": 1, "maximum": MAX_SIDE});
        let map = json_schema!({
            "type": "object", "minProperties": 1, "additionalProperties": false,
            "properties": {
                "shorter": side("What the shorter side becomes."),
                "longer": side("What the longer side becomes; beside `shorter`, the most that it may have.")
            }
        });
        if let Some(forms) = schema.get_mut("anyOf").and_then(|forms| forms.as_array_mut()) {
            forms.push(map.into());
        }
        schema
    }
}
