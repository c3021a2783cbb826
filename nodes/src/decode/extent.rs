//! How sizes look in a file: one number, width and height, or a map of an option's own.

use std::fmt;
use std::marker::PhantomData;

use schemars::{Schema, json_schema};
use serde::de::{Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest side that can be asked for.
pub(super) const MAX_SIDE: u32 = 65_535;

/// One number, or width and height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// What the option says that one number means.
    One(u32),
    /// Width and height.
    Two([u32; 2]),
}

impl Extent {
    /// Width and height, where one number means a square.
    pub(super) fn sides(self) -> [u32; 2] {
        match self {
            Self::One(side) => [side; 2],
            Self::Two(sides) => sides,
        }
    }

    /// The shortest way to write width and height, where one number means a square.
    pub(super) fn of_sides(sides: [u32; 2]) -> Self {
        if sides[0] == sides[1] { Self::One(sides[0]) } else { Self::Two(sides) }
    }

    /// What stands in a JSON Schema for it.
    pub(super) fn schema(description: &str) -> Schema {
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
}

impl fmt::Display for Extent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(side) => write!(out, "{side}"),
            Self::Two([width, height]) => write!(out, "{width}×{height}"),
        }
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

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        match Written::<NoMap>::deserialize(input)? {
            Written::Extent(extent) => Ok(extent),
            Written::Map(never) => match never {},
        }
    }
}

/// A map in place of an extent.
pub(super) trait MapForm: Sized {
    /// What can be written, for the message of a mistake.
    const WANTED: &'static str;

    /// Reads it.
    fn read<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

/// For options that have no map.
pub(super) enum NoMap {}

impl MapForm for NoMap {
    const WANTED: &'static str = "a number of pixels from 1 to 65535, or `[width, height]`";

    fn read<'de, A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &Self::WANTED))
    }
}

/// An extent, or the option's map.
pub(super) enum Written<M> {
    Extent(Extent),
    Map(M),
}

// By hand, because serde's untagged enums answer every mistake with "did not match any variant".
impl<'de, M: MapForm> Deserialize<'de> for Written<M> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct WrittenVisitor<M>(PhantomData<M>);

        impl<'de, M: MapForm> Visitor<'de> for WrittenVisitor<M> {
            type Value = Written<M>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(M::WANTED)
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Written<M>, E> {
                side(value).map(|side| Written::Extent(Extent::One(side)))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Written<M>, E> {
                self.visit_u64(u64::try_from(value).unwrap_or(0))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Written<M>, A::Error> {
                let mut sides = [0; 2];
                for (n, slot) in sides.iter_mut().enumerate() {
                    let value = items.next_element::<u64>()?.ok_or_else(|| A::Error::invalid_length(n, &self))?;
                    *slot = side(value)?;
                }
                if items.next_element::<serde::de::IgnoredAny>()?.is_some() {
                    return Err(A::Error::invalid_length(3, &self));
                }
                Ok(Written::Extent(Extent::Two(sides)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written<M>, A::Error> {
                M::read(map).map(Written::Map)
            }
        }

        input.deserialize_any(WrittenVisitor(PhantomData))
    }
}

/// A length in pixels that can be asked for.
pub(super) fn side<E: serde::de::Error>(value: u64) -> Result<u32, E> {
    u32::try_from(value)
        .ok()
        .filter(|side| (1..=MAX_SIDE).contains(side))
        .ok_or_else(|| E::custom(format_args!("a side is from 1 to {MAX_SIDE} pixels long")))
}
