//! Lengths of time: `50ms`, `2s`, `5m`, `1h`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use super::raw::{RawScalar, ScalarError, split_unit};

pub(super) const WANTED: &str = "a duration such as `50ms`, `2s`, `5m` or `1h`";

/// A length of time, written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "RawScalar")]
pub struct Duration(std::time::Duration);

impl Duration {
    /// The length.
    pub fn get(self) -> std::time::Duration {
        self.0
    }
}

impl From<std::time::Duration> for Duration {
    fn from(length: std::time::Duration) -> Self {
        Self(length)
    }
}

impl TryFrom<RawScalar> for Duration {
    type Error = ScalarError;

    fn try_from(raw: RawScalar) -> Result<Self, ScalarError> {
        let RawScalar::Text(text) = &raw else {
            return Err(ScalarError::new(WANTED, &raw));
        };
        let seconds = split_unit(text).and_then(|(number, unit)| {
            let scale = match unit {
                "us" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            Some(number * scale)
        });
        let length = seconds.and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
        length.map(Self).ok_or_else(|| ScalarError::new(WANTED, &raw))
    }
}

impl FromStr for Duration {
    type Err = ScalarError;

    fn from_str(word: &str) -> Result<Self, ScalarError> {
        Self::try_from(RawScalar::Text(word.to_owned()))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        for (unit, size) in [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)] {
            if micros != 0 && micros.is_multiple_of(size) {
                return write!(f, "{}{unit}", micros / size);
            }
        }
        if micros == 0 { f.write_str("0s") } else { write!(f, "{micros}us") }
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^\s*[0-9]+(\.[0-9]*)?\s*(us|ms|s|m|h)$",
            "x-format": "duration",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_and_writes_them_back() {
        for (text, millis) in [("50ms", 50), ("2s", 2_000), ("1.5s", 1_500), ("5m", 300_000), ("1h", 3_600_000)] {
            let duration: Duration = text.parse().expect("a duration");
            assert_eq!(duration.get().as_millis(), millis);
            assert_eq!(duration.to_string().parse(), Ok(duration));
        }
        assert_eq!("90s".parse::<Duration>().map(|d| d.to_string()), Ok("90s".into()));
    }

    #[test]
    fn refuses_what_has_no_unit_or_no_end() {
        for text in ["", "5", "s", "-1s", "1e99h", "99999999999999999999999h", "1 day", "1..2s", "٣s"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }
}
