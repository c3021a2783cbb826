//! Schemas and values in words.

use serde_json::Value as Json;

use super::super::nearest::either;
use super::super::scalar::Format;
use super::super::tree::{Scalar, Tree, Value};
use super::Checker;
use super::schema::{alternatives, list, text, types, values};

/// Longer texts are shown in part.
const LONGEST: usize = 40;

/// What a value is: "the text `big`".
pub(super) fn given(tree: &Tree) -> String {
    match &tree.value {
        Value::Scalar(Scalar::Null) => "empty".into(),
        Value::Scalar(Scalar::Bool(value)) => format!("`{value}`"),
        Value::Scalar(Scalar::Integer(value)) => format!("the integer `{value}`"),
        Value::Scalar(Scalar::Number(value)) => format!("the number `{value}`"),
        Value::Scalar(Scalar::Text(text)) if text.is_empty() => "an empty text".into(),
        Value::Scalar(Scalar::Text(text)) => format!("the text `{}`", shown(tree, text)),
        Value::List(_) => "a list".into(),
        Value::Map(_) => "a map".into(),
        Value::Wrong => "wrong".into(),
    }
}

/// The text of a value. What came from the environment may be a secret, of which even a part would be too much.
pub(super) fn shown(tree: &Tree, text: &str) -> String {
    if tree.from_env.is_empty() { shortened(text) } else { "***".into() }
}

/// The text, or the beginning of a long one.
pub(super) fn shortened(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or("");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.trim().len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

/// How long a list is.
pub(super) fn count(n_items: usize) -> String {
    match n_items {
        0 => "is empty".into(),
        1 => "has 1 item".into(),
        n => format!("has {n} items"),
    }
}

/// The first line of a schema's description.
pub(super) fn description(schema: &Json) -> Option<&str> {
    text(schema, "description").and_then(|text| text.lines().next()).filter(|line| !line.is_empty())
}

/// A value of a schema as it is written in YAML.
pub(super) fn written(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl<'a> Checker<'a> {
    /// What a schema wants: "a positive integer", "a list of 2 integers".
    pub(super) fn wanted(&self, schema: &'a Json) -> String {
        self.wanted_within(schema, 0)
    }

    fn wanted_within(&self, schema: &'a Json, depth: usize) -> String {
        if let Some(title) = text(schema, "title").filter(|_| depth > 0) {
            return title.to_lowercase();
        }
        let schema = self.schemas.resolve(schema);
        if depth > 4 {
            return "a value".into();
        }
        if let Some(format) = text(schema, "x-format").and_then(Format::named) {
            return format.wanted.into();
        }
        if let Some(values) = values(schema) {
            let values: Vec<String> = values.iter().map(|value| format!("`{}`", written(value))).collect();
            return either(&values);
        }
        if alternatives(schema).is_some() {
            let branches = self.schemas.branches(schema).into_iter().filter(|branch| types(branch) != ["null"]);
            let mut parts: Vec<String> = Vec::new();
            for part in branches.map(|branch| self.wanted_within(branch, depth + 1)) {
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            return either(&parts);
        }
        let parts: Vec<String> = types(schema)
            .into_iter()
            .filter(|name| *name != "null")
            .map(|name| match name {
                "integer" => number_words(schema, "integer", "an integer"),
                "number" => number_words(schema, "number", "a number"),
                "string" => "a text".into(),
                "boolean" => "`true` or `false`".into(),
                "array" => self.list_words(schema, depth),
                "object" => self.map_words(schema),
                other => format!("a value of type {other}"),
            })
            .collect();
        if parts.is_empty() { "a value".into() } else { either(&parts) }
    }

    fn list_words(&self, schema: &'a Json, depth: usize) -> String {
        let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
        let number = match (least, most) {
            (Some(least), Some(most)) if least == most => format!(" of {least}"),
            (Some(least), Some(most)) => format!(" of {least} to {most}"),
            (Some(1) | None, None) | (Some(0), None) => String::new(),
            (Some(least), None) => format!(" of at least {least}"),
            (None, Some(most)) => format!(" of at most {most}"),
        };
        let item = schema.get("items").or_else(|| list(schema, "prefixItems").first());
        let Some(item) = item.filter(|item| item.is_object()) else {
            return format!("a list{number}");
        };
        let item = self.wanted_within(item, depth + 1);
        match (number.is_empty(), plural(&item)) {
            (false, Some(items)) => format!("a list{number} {items}"),
            (true, Some(items)) => format!("a list of {items}"),
            (_, None) => format!("a list{number}, each {item}"),
        }
    }

    fn map_words(&self, schema: &'a Json) -> String {
        let required: Vec<&str> = list(schema, "required").iter().filter_map(Json::as_str).collect();
        let all: Vec<&str> = self.schemas.properties(schema).into_iter().map(|(name, _)| name).collect();
        match (required.is_empty(), all.len()) {
            (false, _) => format!("a map with `{}`", required.join("` and `")),
            (true, 1..=6) => format!("a map of `{}`", all.join("`, `")),
            (true, _) => "a map".into(),
        }
    }
}

fn number_words(schema: &Json, noun: &str, alone: &str) -> String {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number());
    let more = bound("exclusiveMinimum");
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => {
            format!("{alone} from {least} to {most}")
        }
        (Some(least), _) if noun == "integer" && least.as_i64() == Some(1) => "a positive integer".into(),
        (Some(least), _) if least.as_f64() == Some(0.0) => format!("{alone} that is not negative"),
        (Some(least), _) => format!("{alone} of at least {least}"),
        (None, most) => match (more, most) {
            (Some(more), _) if more.as_f64() == Some(0.0) => format!("a positive {noun}"),
            (Some(more), _) => format!("{alone} above {more}"),
            (None, Some(most)) => format!("{alone} of at most {most}"),
            (None, None) => alone.into(),
        },
    }
}

/// The plural of a simple want.
fn plural(item: &str) -> Option<String> {
    let simple = item.strip_prefix("a ").or_else(|| item.strip_prefix("an "))?;
    let (noun, rest) = match simple.find(" that is not negative") {
        Some(at) => (&simple[..at], " that are not negative"),
        None => (simple, ""),
    };
    let known = matches!(noun, "integer" | "number" | "text" | "positive integer" | "positive number");
    known.then(|| format!("{noun}s{rest}"))
}
