//! Values that came from the environment and must never be shown.

use std::fmt;
use std::sync::Arc;

use super::without_secret_parts;

/// Shorter values are not taken for secrets: hiding each `32` or `no` would spoil every message and protect nothing.
const SHORTEST: usize = 4;

/// What stands in a secret's place.
const HIDDEN: &str = "***";

/// The texts that `${env:NAME}` put into a pipeline, outside of paths.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Remembers a value.
    pub fn insert(&mut self, value: &Arc<str>) {
        if value.len() >= SHORTEST && !self.0.iter().any(|known| **known == **value) {
            self.0.push(value.to_string());
            // A secret may be part of another: the longest goes first, so that no rest of it stays behind.
            self.0.sort_by_key(|known| std::cmp::Reverse(known.len()));
        }
    }

    /// All that is remembered.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// `text` with every secret in it hidden, and what is secret in URLs.
    pub fn redact(&self, text: &str) -> String {
        self.0.iter().fold(without_secret_parts(text), |text, secret| text.replace(secret.as_str(), HIDDEN))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_the_longest_first_and_leaves_short_values() {
        let mut secrets = Secrets::default();
        for value in ["hunter", "hunter22", "32"] {
            secrets.insert(&Arc::from(value));
        }
        assert_eq!(secrets.redact("a hunter22 b hunter c 32"), "a *** b *** c 32");
    }
}
