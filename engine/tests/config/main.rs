//! Pipeline files, right and wrong, through the public interface of `engine::config`.
#![allow(missing_docs)]

mod diagnostics;
mod documents;
mod hostile;
mod kinds;
mod schema;

use std::path::Path;

use engine::config::{Document, Mistakes};
use kinds::Kinds;

/// The environment of all tests.
fn env(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("hunter22".into()),
        "DATA" => Some("/mnt/data".into()),
        "N" => Some("12".into()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Document, Mistakes> {
    parse_with(text, &[])
}

fn parse_with(text: &str, overrides: &[(&str, &str)]) -> Result<Document, Mistakes> {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Document::parse(text, Path::new("dir/p.yaml"), &overrides, &env, &Kinds::new())
}
