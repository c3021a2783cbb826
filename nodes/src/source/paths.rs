//! Options that take one text or several.

use schemars::JsonSchema;
use serde::Deserialize;

/// One, or several in order.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    /// One.
    One(String),
    /// Several, in order.
    Many(#[schemars(length(min = 1))] Vec<String>),
}

impl OneOrMany {
    /// All of them.
    pub(super) fn texts(&self) -> &[String] {
        match self {
            OneOrMany::One(text) => std::slice::from_ref(text),
            OneOrMany::Many(texts) => texts,
        }
    }

    /// Where number `text_idx` of them stands in the option `option`.
    pub(super) fn place(&self, option: &str, text_idx: usize) -> Vec<String> {
        match self {
            OneOrMany::One(_) => vec![option.to_owned()],
            OneOrMany::Many(_) => vec![option.to_owned(), text_idx.to_string()],
        }
    }
}
