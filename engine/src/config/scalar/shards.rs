//! Which shards to run: a number, several, or `auto`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::raw::{RawScalar, ScalarError};

pub(super) const WANTED: &str =
    "a shard such as `3`, several such as `0-15`, or `auto` for the one that the environment names";

/// Which of the shards are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardChoice {
    /// The one that the environment names: Kubernetes and Slurm number what they start.
    Auto,
    /// Those from the first to the last, both included, one after the other.
    Numbers {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
    },
}

impl TryFrom<RawScalar> for ShardChoice {
    type Error = ScalarError;

    fn try_from(raw: RawScalar) -> Result<Self, ScalarError> {
        let wrong = || ScalarError::new(WANTED, &raw);
        // The standard library takes `+3` too.
        let number = |word: &str| word.parse().ok().filter(|_| word.bytes().all(|byte| byte.is_ascii_digit()));
        let (first, last) = match &raw {
            RawScalar::Integer(number) => {
                let number = u32::try_from(*number).map_err(|_| wrong())?;
                (number, number)
            }
            RawScalar::Text(text) if text == "auto" => return Ok(Self::Auto),
            RawScalar::Text(text) => {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                (number(first.trim()).ok_or_else(wrong)?, number(last.trim()).ok_or_else(wrong)?)
            }
            RawScalar::Number(_) => return Err(wrong()),
        };
        if first <= last { Ok(Self::Numbers { first, last }) } else { Err(wrong()) }
    }
}

impl<'de> Deserialize<'de> for ShardChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(RawScalar::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl FromStr for ShardChoice {
    type Err = ScalarError;

    fn from_str(word: &str) -> Result<Self, ScalarError> {
        Self::try_from(RawScalar::Text(word.to_owned()))
    }
}

impl fmt::Display for ShardChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Numbers { first, last } if first == last => write!(f, "{first}"),
            Self::Numbers { first, last } => write!(f, "{first}-{last}"),
        }
    }
}

impl JsonSchema for ShardChoice {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ShardChoice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"const": "auto"},
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^\s*[0-9]+\s*(-\s*[0-9]+\s*)?$"},
            ],
            "x-format": "shard",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_several_or_auto_and_nothing_else() {
        for text in ["auto", "0", "3", "0-15", "7-8"] {
            assert_eq!(text.parse::<ShardChoice>().map(|choice| choice.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("0-15".parse(), Ok(ShardChoice::Numbers { first: 0, last: 15 }));
        assert_eq!(serde_yaml::from_str::<ShardChoice>("3").unwrap(), ShardChoice::Numbers { first: 3, last: 3 });
        for text in ["", "-1", "+1", "3-1", "0-", "-", "1-2-3", "all", "1.5", "4294967296", "0..3"] {
            assert!(text.parse::<ShardChoice>().is_err(), "{text}");
        }
        assert!(serde_yaml::from_str::<ShardChoice>("1.5").is_err());
    }
}
