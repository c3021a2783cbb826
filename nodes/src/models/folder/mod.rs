//! What the JSON files of a Hugging Face folder say about its model.
//!
//! Pure functions on text: they open nothing. Both of the common writers are understood, transformers (`config.json` and
//! `preprocessor_config.json`) and timm (`config.json` alone).

mod config;
mod described;
mod embedders;
mod preprocessor;
mod processors;

pub use config::{FolderConfig, parse_config};
pub use described::Described;
pub use preprocessor::{parse_preprocessor, parse_processor};

use std::borrow::Cow;

use crate::decode::Interpolation;

/// A folder's description does not lead to a model that exists here.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The text is not the JSON that was expected.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A key is needed and is not there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A key's value is something that cannot be followed.
    #[error("`{key}` is {found}, wanted {wanted}")]
    Value {
        /// The key, dotted where it is nested.
        key: Cow<'static, str>,
        /// What stands there.
        found: String,
        /// What could stand there.
        wanted: String,
    },
}

impl FolderError {
    fn value(key: impl Into<Cow<'static, str>>, found: impl std::fmt::Display, wanted: impl Into<String>) -> Self {
        Self::Value { key: key.into(), found: found.to_string(), wanted: wanted.into() }
    }
}

/// The longest side that a description may ask for; what is larger is taken for a mistake or malice.
const MAX_SIDE: u32 = 16_384;

fn side(key: &'static str, side: u64) -> Result<u32, FolderError> {
    match u32::try_from(side) {
        Ok(side) if (1..=MAX_SIDE).contains(&side) => Ok(side),
        _ => Err(FolderError::value(key, side, format!("1 to {MAX_SIDE}"))),
    }
}

/// A side before cropping, given the part of it that is kept. The longest side and the smallest part give no overflow.
fn uncropped(key: &'static str, side: u32, kept: f64) -> Result<u32, FolderError> {
    if (0.1..=1.0).contains(&kept) {
        return Ok((f64::from(side) / kept) as u32);
    }
    Err(FolderError::value(key, kept, "0.1 to 1"))
}

/// One figure per colour.
fn per_channel(key: &'static str, figures: &[f64]) -> Result<[f64; 3], FolderError> {
    figures
        .try_into()
        .map_err(|_| FolderError::value(key, format!("{figures:?}"), "one number for each of three colours"))
}

fn interpolation(key: &'static str, name: &str) -> Result<Interpolation, FolderError> {
    Interpolation::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
        let names = Interpolation::ALL.map(Interpolation::name);
        FolderError::value(key, format!("`{name}`"), format!("one of {}", names.join(", ")))
    })
}
