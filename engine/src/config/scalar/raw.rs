//! What the scalar types are read from.

use std::fmt;

use serde::Deserialize;

/// A scalar before it is known what it is to be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(in super::super) enum RawScalar {
    /// A whole number, not negative.
    Integer(u64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
}

impl RawScalar {
    /// A word of a command line, where numbers come as text.
    pub fn from_word(word: &str) -> Self {
        match (word.parse(), word.parse()) {
            (Ok(integer), _) => Self::Integer(integer),
            (_, Ok(number)) if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') => Self::Number(number),
            _ => Self::Text(word.to_owned()),
        }
    }
}

impl fmt::Display for RawScalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// A scalar that is not of the wanted form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wanted {wanted}, and this is `{given}`")]
pub struct ScalarError {
    /// What was wanted, with examples.
    pub wanted: &'static str,
    /// What was given.
    pub given: String,
}

impl ScalarError {
    pub(super) fn new(wanted: &'static str, given: &RawScalar) -> Self {
        Self { wanted, given: given.to_string() }
    }
}

/// A number and the letters after it: `1.5GiB`, `50 ms`.
pub(super) fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}
