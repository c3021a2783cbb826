//! Reading JSON Schemas.

use serde_json::Value as Json;

use super::super::tree::{Scalar, Tree, Value};

/// References within one schema.
#[derive(Clone, Copy)]
pub(super) struct Schemas<'a> {
    root: &'a Json,
}

impl<'a> Schemas<'a> {
    pub fn new(root: &'a Json) -> Self {
        Self { root }
    }

    /// What a schema's `$ref` points to.
    pub fn target(&self, schema: &'a Json) -> Option<&'a Json> {
        self.root.pointer(text(schema, "$ref")?.strip_prefix('#')?)
    }

    /// The schema at the end of its `$ref`s, where there are some.
    pub fn resolve(&self, schema: &'a Json) -> &'a Json {
        let mut schema = schema;
        for _ in 0..32 {
            match self.target(schema) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    /// The alternatives of a schema; those that have alternatives themselves give way to them.
    pub fn branches(&self, schema: &'a Json) -> Vec<&'a Json> {
        let mut found = Vec::new();
        self.collect_branches(schema, 0, &mut found);
        found
    }

    fn collect_branches(&self, schema: &'a Json, depth: usize, found: &mut Vec<&'a Json>) {
        for branch in alternatives(schema).unwrap_or_default() {
            let resolved = self.resolve(branch);
            let pure = alternatives(resolved).is_some()
                && resolved.get("properties").is_none()
                && resolved.get("x-format").is_none();
            if pure && depth < 8 {
                self.collect_branches(resolved, depth + 1, found);
            } else {
                found.push(resolved);
            }
        }
    }

    /// Each option that the schema lists, also in its parts and alternatives, with the schema of it.
    pub fn properties(&self, schema: &'a Json) -> Vec<(&'a str, &'a Json)> {
        let mut found = Vec::new();
        self.collect_properties(schema, 0, &mut found);
        found
    }

    fn collect_properties(&self, schema: &'a Json, depth: usize, found: &mut Vec<(&'a str, &'a Json)>) {
        if depth > 8 {
            return;
        }
        for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            if !found.iter().any(|(known, _)| known == name) {
                found.push((name, property));
            }
        }
        let parts = list(schema, "allOf").iter().chain(alternatives(schema).unwrap_or_default());
        for part in parts.chain(self.target(schema)) {
            self.collect_properties(part, depth + 1, found);
        }
    }
}

/// The text under a key of a schema.
pub(super) fn text<'a>(schema: &'a Json, key: &str) -> Option<&'a str> {
    schema.get(key)?.as_str()
}

/// The list under a key of a schema; empty where there is none.
pub(super) fn list<'a>(schema: &'a Json, key: &str) -> &'a [Json] {
    schema.get(key).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

/// `anyOf` or `oneOf`.
pub(super) fn alternatives(schema: &Json) -> Option<&[Json]> {
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf"))?;
    alternatives.as_array().map(Vec::as_slice)
}

/// The values that a schema allows and no others, if it lists them.
pub(super) fn values(schema: &Json) -> Option<Vec<&Json>> {
    match (schema.get("enum").and_then(Json::as_array), schema.get("const")) {
        (Some(values), _) => Some(values.iter().collect()),
        (None, Some(value)) => Some(vec![value]),
        (None, None) => None,
    }
}

/// The types that a schema allows; empty where it does not say.
pub(super) fn types(schema: &Json) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(name)) => vec![name],
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a value is of a type that the schema allows.
pub(super) fn allows_type(schema: &Json, tree: &Tree) -> bool {
    let types = types(schema);
    let is = |name: &&str| match &tree.value {
        Value::Scalar(Scalar::Null) => *name == "null",
        Value::Scalar(Scalar::Bool(_)) => *name == "boolean",
        Value::Scalar(Scalar::Integer(_)) => matches!(*name, "integer" | "number"),
        Value::Scalar(Scalar::Number(_)) => *name == "number",
        Value::Scalar(Scalar::Text(_)) => *name == "string",
        Value::List(_) => *name == "array",
        Value::Map(_) => *name == "object",
        Value::Wrong => true,
    };
    *schema != Json::Bool(false) && (types.is_empty() || types.iter().any(is))
}

/// Whether a value is the one in a schema's `enum` or `const`.
pub(super) fn equals(value: &Json, tree: &Tree) -> bool {
    match &tree.value {
        Value::Scalar(Scalar::Null) => value.is_null(),
        Value::Scalar(Scalar::Bool(own)) => value.as_bool() == Some(*own),
        Value::Scalar(Scalar::Integer(own)) => value.as_i64().map(i128::from) == Some(*own),
        Value::Scalar(Scalar::Number(own)) => value.as_f64() == Some(*own),
        Value::Scalar(Scalar::Text(own)) => value.as_str() == Some(own),
        Value::List(_) | Value::Map(_) => false,
        Value::Wrong => true,
    }
}
