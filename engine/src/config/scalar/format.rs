//! The list of the scalars' rules, by the names that schemas give them.

use super::super::nearest;
use super::raw::{RawScalar, ScalarError};
use super::{
    Duration, Fraction, Limit, ShardChoice, Size, WorkersPerDevice, devices, duration, fraction, limit, shards, size,
    workers,
};
use crate::node::Devices;

/// A rule that a schema names by `x-format`.
pub(in super::super) struct Format {
    /// What it wants, with examples.
    pub wanted: &'static str,
    words: &'static [&'static str],
    /// Words that are often written, with those that are right.
    instead: &'static [(&'static str, &'static str)],
    check: fn(RawScalar) -> Result<(), ScalarError>,
}

impl Format {
    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        let format = |wanted, check| Self { wanted, words: &[], instead: &[], check };
        Some(match name {
            "duration" => format(duration::WANTED, |raw| Duration::try_from(raw).map(drop)),
            "size" => format(size::WANTED, |raw| Size::try_from(raw).map(drop)),
            "fraction" => format(fraction::WANTED, |raw| Fraction::try_from(raw).map(drop)),
            "limit" => format(limit::WANTED, |raw| Limit::try_from(raw).map(drop)),
            "devices" => Self {
                words: &["auto", "cpu", "cuda"],
                instead: &[("gpu", "cuda"), ("gpus", "cuda"), ("nvidia", "cuda"), ("any", "auto")],
                ..format(devices::WANTED, |raw| Devices::try_from(raw).map(drop))
            },
            "shard" => Self { words: &["auto"], ..format(shards::WANTED, |raw| ShardChoice::try_from(raw).map(drop)) },
            "workers" => {
                Self { words: &["auto"], ..format(workers::WANTED, |raw| WorkersPerDevice::try_from(raw).map(drop)) }
            }
            _ => return None,
        })
    }

    /// The word that was likely meant.
    pub fn meant(&self, text: &str) -> Option<&'static str> {
        let instead = self.instead.iter().find(|(written, _)| text.eq_ignore_ascii_case(written));
        instead.map(|(_, right)| *right).or_else(|| nearest(text, self.words.iter().copied()))
    }

    /// Whether `raw` follows the rule.
    pub fn accepts(&self, raw: RawScalar) -> bool {
        (self.check)(raw).is_ok()
    }
}
