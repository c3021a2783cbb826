//! How many are too many: a count, or a part of all.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use super::Fraction;
use super::raw::{RawScalar, ScalarError};

pub(super) const WANTED: &str = "a count such as `100`, or a fraction such as `5%` or `0.05`";

/// The most that are allowed: so many, or such a part of all.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawScalar")]
pub enum Limit {
    /// So many.
    Count(u64),
    /// Such a part of all.
    Fraction(Fraction),
}

impl Limit {
    /// Whether `part` of `whole` is more than allowed.
    pub fn exceeded(self, part: u64, whole: u64) -> bool {
        match self {
            Self::Count(most) => part > most,
            Self::Fraction(most) => part as f64 > most.get() * whole as f64,
        }
    }
}

impl TryFrom<RawScalar> for Limit {
    type Error = ScalarError;

    fn try_from(raw: RawScalar) -> Result<Self, ScalarError> {
        if let RawScalar::Integer(count) = raw {
            return Ok(Self::Count(count));
        }
        let fraction = Fraction::try_from(raw.clone());
        fraction.map(Self::Fraction).map_err(|_| ScalarError::new(WANTED, &raw))
    }
}

impl FromStr for Limit {
    type Err = ScalarError;

    fn from_str(word: &str) -> Result<Self, ScalarError> {
        Self::try_from(RawScalar::from_word(word))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Fraction(fraction) => fraction.fmt(f),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => count.serialize(serializer),
            Self::Fraction(fraction) => fraction.serialize(serializer),
        }
    }
}

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]*)?\s*%\s*$"},
            ],
            "x-format": "limit",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_absolute_and_a_fraction_is_of_all() {
        let limit = |text: &str| text.parse::<Limit>().expect("a limit");
        assert!(!limit("5").exceeded(5, 6));
        assert!(limit("5").exceeded(6, 1_000_000));
        assert!(!limit("5%").exceeded(50, 1_000));
        assert!(limit("0.05").exceeded(51, 1_000));
        assert!(limit("0").exceeded(1, 1_000));
        assert_eq!(limit("1"), Limit::Count(1));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "1.5", "-1", "few", "200%"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
