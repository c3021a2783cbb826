//! Amounts of memory: `2GiB`, `512MiB`, `1MB`, or bytes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use super::raw::{RawScalar, ScalarError, split_unit};

pub(super) const WANTED: &str = "a size such as `2GiB`, `512MiB`, `1MB` or a number of bytes";

/// An amount of memory, as bytes or with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "RawScalar")]
pub struct Size(u64);

impl Size {
    /// The amount in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl From<u64> for Size {
    fn from(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl TryFrom<RawScalar> for Size {
    type Error = ScalarError;

    fn try_from(raw: RawScalar) -> Result<Self, ScalarError> {
        let bytes = match &raw {
            RawScalar::Integer(bytes) => Some(*bytes),
            RawScalar::Number(_) => None,
            RawScalar::Text(text) => split_unit(text).and_then(|(number, unit)| {
                let scale: u64 = match unit.to_ascii_lowercase().as_str() {
                    "b" => 1,
                    "kb" => 1_000,
                    "mb" => 1_000_000,
                    "gb" => 1_000_000_000,
                    "tb" => 1_000_000_000_000,
                    "kib" => 1 << 10,
                    "mib" => 1 << 20,
                    "gib" => 1 << 30,
                    "tib" => 1 << 40,
                    _ => return None,
                };
                let bytes = number * scale as f64;
                (bytes < u64::MAX as f64).then_some(bytes as u64)
            }),
        };
        bytes.map(Self).ok_or_else(|| ScalarError::new(WANTED, &raw))
    }
}

impl FromStr for Size {
    type Err = ScalarError;

    fn from_str(word: &str) -> Result<Self, ScalarError> {
        Self::try_from(RawScalar::from_word(word))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}B", self.0)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Size {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "minimum": 0,
            "pattern": r"^\s*[0-9]+(\.[0-9]*)?\s*([kKmMgGtT][iI]?)?[bB]$",
            "x-format": "size",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_and_writes_them_back() {
        for (text, bytes) in [("2GiB", 2 << 30), ("512 MiB", 512 << 20), ("1MB", 1_000_000), ("7", 7), ("0.5KiB", 512)]
        {
            let size: Size = text.parse().expect("a size");
            assert_eq!(size.bytes(), bytes);
            assert_eq!(size.to_string().parse(), Ok(size));
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "GiB", "-1", "1.5", "1 pound", "99999999TiB", "NaN"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
