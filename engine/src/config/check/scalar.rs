//! Values without parts: type, range, and lists of what is allowed.

use serde_json::Value as Json;

use super::super::tree::{Scalar, Tree, Value};
use super::super::{Mistake, list};
use super::words::{description, given, shown, written};
use super::{Checker, Place, schema};

impl<'a> Checker<'a> {
    /// The values that the schema lists, if it does; whether all is well.
    pub(super) fn check_values(&mut self, schema: &'a Json, tree: &Tree, place: Place<'_>) -> bool {
        let Some(values) = schema::values(schema) else {
            return true;
        };
        if values.iter().any(|value| schema::equals(value, tree)) {
            return true;
        }
        let words: Vec<String> = values.into_iter().filter(|value| !value.is_null()).map(written).collect();
        let mistake = self.unknown_value(&words, "", tree, place);
        self.tell(tree, mistake);
        false
    }

    /// A value that is none of `words`; `besides` says what else could stand there.
    pub(super) fn unknown_value(&self, words: &[String], besides: &str, tree: &Tree, place: Place<'_>) -> Mistake {
        let names = || words.iter().map(String::as_str);
        let all = format!("values: {}{besides}", list(names()));
        match tree.as_text() {
            Some(text) => {
                let message = format!("unknown value `{}` for {}", shown(tree, text), place.name);
                Mistake::at(tree.span, message).suggest(text, names()).note(all)
            }
            None => {
                let wanted: Vec<String> = names().map(|word| format!("`{word}`")).collect();
                let wanted = super::super::nearest::either(&wanted);
                Mistake::at(tree.span, format!("{} wants {wanted}{besides}, and this is {}", place.name, given(tree)))
            }
        }
    }

    /// A value of a type that the schema does not allow.
    pub(super) fn wrong_type(&self, schema: &'a Json, tree: &Tree, place: Place<'_>) -> Mistake {
        let message = format!("{} wants {}, and this is {}", place.name, self.wanted(schema), given(tree));
        let mistake = Mistake::at(tree.span, message).label(correction(schema, tree));
        match description(schema) {
            Some(text) => mistake.note(format!("{}: {}", place.name, text.trim_end_matches('.'))),
            None => mistake,
        }
    }

    pub(super) fn check_length(&mut self, schema: &'a Json, text: &str, tree: &Tree, place: Place<'_>) {
        let length = text.chars().count() as u64;
        let least = schema["minLength"].as_u64().unwrap_or(0);
        let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
        let wanted = match length {
            _ if length < least && least == 1 => "a text that is not empty".into(),
            _ if length < least => format!("a text of at least {least} characters"),
            _ if length > most => format!("a text of at most {most} characters"),
            _ => return,
        };
        let message = format!("{} wants {wanted}, and this is {}", place.name, given(tree));
        self.tell(tree, Mistake::at(tree.span, message));
    }

    pub(super) fn check_number(&mut self, schema: &'a Json, scalar: &Scalar, tree: &Tree, place: Place<'_>) {
        let (value, integer) = match scalar {
            Scalar::Integer(value) => (*value as f64, Some(*value)),
            Scalar::Number(value) => (*value, None),
            _ => return,
        };
        let bound = |key: &str| schema.get(key).and_then(Json::as_f64);
        let within = bound("minimum").is_none_or(|least| value >= least)
            && bound("maximum").is_none_or(|most| value <= most)
            && bound("exclusiveMinimum").is_none_or(|least| value > least)
            && bound("exclusiveMaximum").is_none_or(|most| value < most);
        let fits = integer.is_none_or(|value| fits_format(schema::text(schema, "format"), value));
        if within && fits {
            return;
        }
        let mistake = match within {
            false => self.wrong_type(schema, tree, place),
            true => Mistake::at(tree.span, format!("{} is too large a number for {}", value_text(tree), place.name)),
        };
        self.tell(tree, mistake);
    }
}

fn value_text(tree: &Tree) -> String {
    match &tree.value {
        Value::Scalar(Scalar::Integer(value)) => format!("`{value}`"),
        _ => given(tree),
    }
}

/// Whether an integer fits the Rust type that schemars notes as its format.
fn fits_format(format: Option<&str>, value: i128) -> bool {
    let range = match format {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int64" | "int") => (i64::MIN.into(), i64::MAX.into()),
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint64" | "uint") => (0, u64::MAX.into()),
        _ => return true,
    };
    (range.0..=range.1).contains(&value)
}

/// What to write, where that can be told from what was written.
fn correction(schema: &Json, tree: &Tree) -> String {
    let types = schema::types(schema);
    let wants = |name: &str| types.contains(&name);
    let Value::Scalar(scalar) = &tree.value else {
        return String::new();
    };
    // What stands at the place is a reference, and its value is to be put right elsewhere.
    if !tree.origins.is_empty() {
        return String::new();
    }
    match scalar {
        Scalar::Text(text) => {
            let plain = super::super::tree::plain_scalar(text);
            let numeric = matches!(plain, Scalar::Integer(_)) && (wants("integer") || wants("number"))
                || matches!(plain, Scalar::Number(_)) && wants("number");
            match text.to_lowercase().as_str() {
                _ if numeric => format!("write `{text}` without quotes"),
                "yes" | "on" | "y" if wants("boolean") => "write `true`".into(),
                "no" | "off" | "n" if wants("boolean") => "write `false`".into(),
                "true" | "false" if wants("boolean") => format!("write `{text}` without quotes"),
                _ if wants("array") => format!("write `[{}]`", shown(tree, text)),
                _ => String::new(),
            }
        }
        Scalar::Integer(value) if wants("string") => format!("quote it: \"{value}\""),
        Scalar::Number(value) if wants("string") => format!("quote it: \"{value}\""),
        Scalar::Bool(value) if wants("string") => format!("quote it: \"{value}\""),
        Scalar::Integer(value) if wants("array") => format!("write `[{value}]`"),
        _ => String::new(),
    }
}
