//! The part of a picture that is kept.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::extent::Extent;

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

    fn extent(self) -> Extent {
        Extent::of_sides([self.width, self.height])
    }
}

impl fmt::Display for Crop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.extent().fmt(out)
    }
}

impl<'de> Deserialize<'de> for Crop {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let [width, height] = Extent::deserialize(input)?.sides();
        Ok(Self { width, height })
    }
}

impl Serialize for Crop {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.extent().serialize(output)
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
        Extent::schema("A number: the side of a square. `[width, height]`: a rectangle.")
    }
}
