//! How [`Devices`] are written: `auto`, `cpu`, `cuda`, `cuda:0,2`.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::raw::{RawScalar, ScalarError};
use crate::node::Devices;

pub(super) const WANTED: &str = "`auto`, `cpu`, `cuda` or GPUs by number such as `cuda:0` and `cuda:0,2`";

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(RawScalar::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl TryFrom<RawScalar> for Devices {
    type Error = ScalarError;

    fn try_from(raw: RawScalar) -> Result<Self, ScalarError> {
        let wrong = || ScalarError::new(WANTED, &raw);
        let RawScalar::Text(text) = &raw else {
            return Err(wrong());
        };
        match text.as_str() {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(Vec::new())),
            _ => {
                let mut indices: Vec<u32> = Vec::new();
                for word in text.strip_prefix("cuda:").ok_or_else(wrong)?.split(',') {
                    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
                    let index = word.parse().ok().filter(|index| digits && !indices.contains(index));
                    indices.push(index.ok_or_else(wrong)?);
                }
                Ok(Self::Cuda(indices))
            }
        }
    }
}

impl FromStr for Devices {
    type Err = ScalarError;

    fn from_str(word: &str) -> Result<Self, ScalarError> {
        Self::try_from(RawScalar::Text(word.to_owned()))
    }
}

impl Serialize for Devices {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Devices {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Devices".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"enum": ["auto", "cpu", "cuda"]},
                {"type": "string", "pattern": "^cuda:[0-9]+(,[0-9]+)*$"},
            ],
            "x-format": "devices",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_each_form() {
        for text in ["auto", "cpu", "cuda", "cuda:0", "cuda:2,0"] {
            assert_eq!(text.parse::<Devices>().map(|devices| devices.to_string()), Ok(text.into()));
        }
        assert_eq!("cuda:2,0".parse(), Ok(Devices::Cuda(vec![2, 0])));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "gpu", "cuda:", "cuda:0,", "cuda:a", "cuda:+1", "cuda:1,1", "CPU"] {
            assert!(text.parse::<Devices>().is_err(), "{text}");
        }
    }
}
