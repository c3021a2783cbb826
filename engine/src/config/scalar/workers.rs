//! How many workers share a device: `auto`, or a number.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::raw::{RawScalar, ScalarError};

pub(super) const WANTED: &str = "`auto` or a number of workers from 1 on";

/// How many worker processes share a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkersPerDevice {
    /// As many as the plan finds useful.
    #[default]
    Auto,
    /// So many.
    Count(NonZeroUsize),
}

impl TryFrom<RawScalar> for WorkersPerDevice {
    type Error = ScalarError;

    fn try_from(raw: RawScalar) -> Result<Self, ScalarError> {
        let wrong = || ScalarError::new(WANTED, &raw);
        let count = match &raw {
            RawScalar::Text(text) if text == "auto" => return Ok(Self::Auto),
            RawScalar::Text(text) => text.parse().map_err(|_| wrong())?,
            RawScalar::Integer(number) => usize::try_from(*number).map_err(|_| wrong())?,
            _ => return Err(wrong()),
        };
        NonZeroUsize::new(count).map(Self::Count).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for WorkersPerDevice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(RawScalar::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl FromStr for WorkersPerDevice {
    type Err = ScalarError;

    fn from_str(word: &str) -> Result<Self, ScalarError> {
        Self::try_from(RawScalar::Text(word.to_owned()))
    }
}

impl fmt::Display for WorkersPerDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

impl JsonSchema for WorkersPerDevice {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WorkersPerDevice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1}], "x-format": "workers"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_or_auto_and_nothing_else() {
        assert_eq!("auto".parse(), Ok(WorkersPerDevice::Auto));
        assert_eq!("3".parse::<WorkersPerDevice>().map(|workers| workers.to_string()), Ok("3".to_owned()));
        for text in ["0", "-1", "many", ""] {
            assert!(text.parse::<WorkersPerDevice>().is_err(), "{text}");
        }
        assert!(serde_yaml::from_str::<WorkersPerDevice>("1.5").is_err());
        assert_eq!(serde_yaml::from_str::<WorkersPerDevice>("2").unwrap().to_string(), "2");
    }
}
