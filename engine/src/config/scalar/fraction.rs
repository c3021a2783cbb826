//! Parts of a whole: `5%` or `0.05`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use super::raw::{RawScalar, ScalarError};

pub(super) const WANTED: &str = "a fraction such as `5%` or `0.05`";

/// A part of a whole, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "RawScalar")]
pub struct Fraction(f64);

impl Fraction {
    /// The part, from 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<RawScalar> for Fraction {
    type Error = ScalarError;

    fn try_from(raw: RawScalar) -> Result<Self, ScalarError> {
        let part = match &raw {
            RawScalar::Integer(value) => Some(*value as f64),
            RawScalar::Number(value) => Some(*value),
            RawScalar::Text(text) => {
                let percent = text.trim().strip_suffix('%').map(str::trim_end);
                let percent = percent.filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
                percent.and_then(|digits| digits.parse::<f64>().ok()).map(|percent| percent / 100.0)
            }
        };
        let part = part.filter(|part| (0.0..=1.0).contains(part));
        part.map(Self).ok_or_else(|| ScalarError::new(WANTED, &raw))
    }
}

impl FromStr for Fraction {
    type Err = ScalarError;

    fn from_str(word: &str) -> Result<Self, ScalarError> {
        Self::try_from(RawScalar::from_word(word))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to a billionth of a percent: 0.07 × 100 is 7.000000000000001.
        write!(f, "{}%", (self.0 * 100.0 * 1e9).round() / 1e9)
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Fraction {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Fraction".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number"],
            "minimum": 0,
            "maximum": 1,
            "pattern": r"^\s*[0-9]+(\.[0-9]*)?\s*%\s*$",
            "x-format": "fraction",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_and_part_are_the_same() {
        for (text, part) in [("5%", 0.05), ("0.05", 0.05), ("0", 0.0), ("1", 1.0), ("12.5 %", 0.125), ("100%", 1.0)] {
            assert_eq!(text.parse::<Fraction>().map(Fraction::get), Ok(part));
        }
        assert_eq!("7%".parse::<Fraction>().map(|fraction| fraction.to_string()), Ok("7%".into()));
    }

    #[test]
    fn refuses_what_is_no_part_of_a_whole() {
        for text in ["", "%", "101%", "-1%", "2", "1.01", "nan", "inf%", "NaN%", "few"] {
            assert!(text.parse::<Fraction>().is_err(), "{text}");
        }
    }
}
