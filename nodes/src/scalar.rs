//! Stand-ins for the scalars of `engine::config`.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// A duration such as `50ms`.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(with = "String")]
pub(crate) struct Duration(std::time::Duration);

impl Duration {
    pub(crate) fn get(self) -> std::time::Duration {
        self.0
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let millis = text.strip_suffix("ms").and_then(|digits| digits.parse().ok());
        millis
            .map(|millis| Duration(std::time::Duration::from_millis(millis)))
            .ok_or(serde::de::Error::custom("a duration"))
    }
}

/// A size such as `2GiB`.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(with = "String")]
pub(crate) struct Size(u64);

impl Size {
    pub(crate) fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = match text.strip_suffix("GiB") {
            Some(digits) => digits.parse::<u64>().ok().map(|count| count << 30),
            None => text.strip_suffix("B").unwrap_or(&text).parse().ok(),
        };
        bytes.map(Size).ok_or(serde::de::Error::custom("a size"))
    }
}
