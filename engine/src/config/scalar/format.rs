//! The list of the scalars' rules, by the names that schemas give them.

use super::raw::{RawScalar, ScalarError};
use super::{Devices, Duration, Fraction, Limit, Size, devices, duration, fraction, limit, size};

/// A rule that a schema names by `x-format`.
pub(in super::super) struct Format {
    /// What it wants, with examples.
    pub wanted: &'static str,
    /// Words that are right, to find the nearest.
    pub words: &'static [&'static str],
    check: fn(RawScalar) -> Result<(), ScalarError>,
}

impl Format {
    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        let format = |wanted, check| Self { wanted, words: &[], check };
        Some(match name {
            "duration" => format(duration::WANTED, |raw| Duration::try_from(raw).map(drop)),
            "size" => format(size::WANTED, |raw| Size::try_from(raw).map(drop)),
            "fraction" => format(fraction::WANTED, |raw| Fraction::try_from(raw).map(drop)),
            "limit" => format(limit::WANTED, |raw| Limit::try_from(raw).map(drop)),
            "devices" => Self {
                words: &["auto", "cpu", "cuda"],
                ..format(devices::WANTED, |raw| Devices::try_from(raw).map(drop))
            },
            _ => return None,
        })
    }

    /// Whether `raw` follows the rule.
    pub fn accepts(&self, raw: RawScalar) -> bool {
        (self.check)(raw).is_ok()
    }
}
