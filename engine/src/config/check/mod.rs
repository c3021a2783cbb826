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
        let mistake = mistake.suggest(tree.as_text().unwrap_or(""), format.words.iter().copied());
        self.tell(tree, mistake);
    }

    fn check_items(&mut self, schema: &'a Json, items: &[Tree], tree: &Tree, place: Place<'_>) {
        let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
        let most = schema["maxItems"].as_u64().map_or(usize::MAX, |most| most as usize);
        if items.len() < least || items.len() > most {
            let wanted = self.wanted(schema);
            let message = format!("{} wants {wanted}, and this list has {}", place.name, words::count(items.len()));
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
