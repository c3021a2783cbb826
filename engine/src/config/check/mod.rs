//! A tree against a JSON Schema, with every mistake at its place.
//!
//! This is no general validator: it knows the parts of JSON Schema that schemars writes for options, and its purpose
//! is the message. Where a schema has alternatives, the one that fits best is taken to be what was meant, and its
//! mistakes are told. What it does not know it lets pass: deserialising comes after it.

mod object;
mod scalar;
mod schema;
mod union;
mod words;

use serde_json::Value as Json;

use super::scalar::{Format, RawScalar};
use super::tree::{Scalar, Tree, Value};
use super::{Mistake, Span};
use schema::Schemas;
use words::given;

/// Nesting of schemas within schemas, against those that refer to themselves.
const DEEPEST: usize = 100;

/// What a schema's map is called in messages.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    /// `option` or `key`.
    pub noun: &'a str,
    /// What follows "unknown option `x`": ` for `decode.image``, ` in node `pixels``, or nothing.
    pub whose: &'a str,
    /// Where something that is missing would have to be written.
    pub span: Span,
}

/// All that is wrong with `tree` by `schema`. A map at the top may have no keys but those in the schema.
pub(super) fn check(schema: &Json, tree: &Tree, owner: Owner<'_>) -> Vec<Mistake> {
    let mut checker = Checker { schemas: Schemas::new(schema), noun: owner.noun, depth: 0, mistakes: Vec::new() };
    let place = Place { name: "this", whose: owner.whose, span: owner.span, closed: true };
    checker.check(schema, tree, place);
    checker.mistakes
}

/// What is being looked at, in words.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The subject of a sentence: `` `size` `` or `an item of `path``.
    name: &'p str,
    /// What follows the name of one of its keys.
    whose: &'p str,
    /// Where something missing would be written.
    span: Span,
    /// Whether keys that the schema does not list are mistakes, whatever it says of them.
    closed: bool,
}

struct Checker<'a> {
    schemas: Schemas<'a>,
    noun: &'a str,
    depth: usize,
    mistakes: Vec<Mistake>,
}

impl<'a> Checker<'a> {
    fn check(&mut self, schema: &'a Json, tree: &Tree, place: Place<'_>) {
        if self.depth >= DEEPEST || matches!(tree.value, Value::Wrong) {
            return;
        }
        self.depth += 1;
        self.check_parts(schema, tree, place);
        self.depth -= 1;
    }

    fn check_parts(&mut self, schema: &'a Json, tree: &Tree, place: Place<'_>) {
        let before = self.mistakes.len();
        if let Some(format) = schema::text(schema, "x-format").and_then(Format::named) {
            if !(tree.is_null() && schema::types(schema).contains(&"null")) {
                self.check_format(&format, tree, place);
            }
            return;
        }
        if let Some(target) = self.schemas.target(schema) {
            self.check(target, tree, place);
        }
        for part in schema::list(schema, "allOf") {
            self.check(part, tree, Place { closed: false, ..place });
        }
        if self.mistakes.len() > before {
            return;
        }
        if schema::alternatives(schema).is_some() {
            self.check_union(schema, tree, place);
        }
        if self.mistakes.len() > before || !self.check_values(schema, tree, place) {
            return;
        }
        if !schema::allows_type(schema, tree) {
            let mistake = self.wrong_type(schema, tree, place);
            return self.tell(tree, mistake);
        }
        match &tree.value {
            Value::Scalar(Scalar::Text(text)) => self.check_length(schema, text, tree, place),
            Value::Scalar(scalar) => self.check_number(schema, scalar, tree, place),
            Value::List(items) => self.check_items(schema, items, tree, place),
            Value::Map(entries) => self.check_object(schema, entries, tree, place),
            Value::Wrong => {}
        }
    }

    /// Notes a mistake about a value, with where the value came from.
    fn tell(&mut self, tree: &Tree, mistake: Mistake) {
        self.mistakes.push(tree.origins.iter().fold(mistake, |mistake, origin| origin.tell(mistake)));
    }

    fn check_format(&mut self, format: &Format, tree: &Tree, place: Place<'_>) {
        let raw = match &tree.value {
            Value::Scalar(Scalar::Integer(value)) => u64::try_from(*value).ok().map(RawScalar::Integer),
            Value::Scalar(Scalar::Number(value)) => Some(RawScalar::Number(*value)),
            Value::Scalar(Scalar::Text(text)) => Some(RawScalar::Text(text.clone())),
            _ => None,
        };
        if raw.is_some_and(|raw| format.accepts(raw)) {
            return;
        }
        let message = format!("{} wants {}, and this is {}", place.name, format.wanted, given(tree));
        let mistake = Mistake::at(tree.span, message);
        self.tell(
            tree,
            match tree.as_text().and_then(|text| format.meant(text)) {
                Some(word) => mistake.label(format!("did you mean `{word}`?")),
                None => mistake,
            },
        );
    }

    fn check_items(&mut self, schema: &'a Json, items: &[Tree], tree: &Tree, place: Place<'_>) {
        let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
        let most = schema["maxItems"].as_u64().map_or(usize::MAX, |most| most as usize);
        if items.len() < least || items.len() > most {
            let wanted = self.wanted(schema);
            let message = format!("{} wants {wanted}, and this list {}", place.name, words::count(items.len()));
            return self.tell(tree, Mistake::at(tree.span, message));
        }
        let name = format!("an item of {}", place.name);
        let firsts = schema::list(schema, "prefixItems");
        for (index, item) in items.iter().enumerate() {
            let item_schema = firsts.get(index).or_else(|| schema.get("items"));
            if let Some(item_schema) = item_schema {
                let place = Place { name: &name, whose: place.whose, span: item.span, closed: false };
                self.check(item_schema, item, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::Source;
    use super::super::tree::build;
    use super::*;

    fn messages(schema: &Json, yaml: &str) -> Vec<String> {
        let source = Arc::new(Source::new("a.yaml", yaml));
        let (tree, mistakes) = build(&source);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let owner = Owner { noun: "option", whose: " for `k`", span: Span::default() };
        check(schema, &tree.expect("a tree"), owner).into_iter().map(|mistake| mistake.message).collect()
    }

    #[test]
    fn parts_of_a_schema_are_known_to_each_other() {
        let schema = json!({
            "$defs": {"A": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
            "type": "object",
            "allOf": [{"$ref": "#/$defs/A"}],
            "properties": {"b": {"type": "number", "exclusiveMinimum": 0}},
        });
        assert_eq!(messages(&schema, "{a: 1, b: 0.5}"), [""; 0]);
        assert_eq!(messages(&schema, "{a: x}"), ["`a` wants an integer, and this is the text `x`"]);
        assert_eq!(messages(&schema, "{a: 1, c: 2}"), ["unknown option `c` for `k`"]);
        assert_eq!(messages(&schema, "{a: 1, b: 0}"), ["`b` wants a positive number, and this is the integer `0`"]);
    }

    #[test]
    fn recursive_schemas_end_with_the_value_or_at_a_depth() {
        let schema = json!({
            "type": "object",
            "properties": {"inner": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "n": {"type": "integer"}},
            "additionalProperties": false,
        });
        assert_eq!(messages(&schema, "{inner: {inner: {n: 1}}}"), [""; 0]);
        assert_eq!(messages(&schema, "{inner: {inner: {m: 1}}}"), ["unknown option `m` in `inner`"]);
        assert_eq!(messages(&json!({"allOf": [{"$ref": "#"}]}), "[1]"), [""; 0]);
    }

    #[test]
    fn constants_lengths_and_additional_values() {
        let schema = json!({
            "type": "object",
            "properties": {
                "version": {"const": 2},
                "as": {"type": "string", "minLength": 1, "maxLength": 3},
                "rename": {"type": "object", "additionalProperties": {"type": "string"}},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2},
            },
        });
        assert_eq!(messages(&schema, "{version: 2, as: abc, rename: {a: b}, pair: [1, x]}"), [""; 0]);
        assert_eq!(
            messages(&schema, "{version: 3, as: '', rename: {a: 1}, pair: [x, 1]}"),
            [
                "`version` wants `2`, and this is the integer `3`",
                "`as` wants a text that is not empty, and this is an empty text",
                "`a` wants a text, and this is the integer `1`",
                "an item of `pair` wants an integer, and this is the text `x`",
                "an item of `pair` wants a text, and this is the integer `1`",
            ]
        );
    }

    #[test]
    fn variants_written_as_maps_are_told_apart() {
        let variant = |name: &str, value: Json| json!({"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": false});
        let schema = json!({"type": "object", "properties": {"crop": {"oneOf": [
            {"type": "string", "enum": ["none"]},
            variant("center", json!({"type": "integer", "minimum": 1})),
            variant("random", json!({"type": "number"})),
        ]}}});
        assert_eq!(messages(&schema, "{crop: none}"), [""; 0]);
        assert_eq!(messages(&schema, "{crop: {center: 5}}"), [""; 0]);
        assert_eq!(
            messages(&schema, "{crop: {center: 0}}"),
            ["`center` wants a positive integer, and this is the integer `0`"]
        );
        assert_eq!(
            messages(&schema, "{crop: 5}"),
            ["`crop` wants `none`, a map with `center` or a map with `random`, and this is the integer `5`"]
        );
    }
}
