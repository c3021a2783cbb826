//! The manual of a kind, taken from the JSON Schema of its options and the docs in it.

use std::fmt::Write;

use anstyle::Style;
use engine::node::Kind;
use serde_json::Value as Json;

use crate::progress::{Charset, Colour, Terminal};

/// Lines of text are broken here, or earlier on a narrow terminal.
const WIDEST: usize = 100;

/// What is to be said about a kind.
pub(crate) struct Manual<'a> {
    name: &'a str,
    /// What it does, its input, its output: paragraphs, some with a heading.
    sections: Vec<(Option<String>, String)>,
    options: Vec<OptionManual>,
    example: &'a str,
}

/// What is to be said about an option.
struct OptionManual {
    name: String,
    /// What may be written.
    ty: String,
    /// The default; `None` where there is none, or where it is an object, whose keys say what theirs are.
    default: Option<String>,
    required: bool,
    doc: String,
    /// Alternatives with docs of their own.
    choices: Vec<(String, String)>,
}

impl<'a> Manual<'a> {
    /// The manual of `kind`.
    pub(crate) fn of(kind: &'a Kind) -> Self {
        let schema = kind.schema();
        let description = schema["description"].as_str().unwrap_or_default();
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let options =
            properties.map(|(name, option)| OptionManual::of(name, option, schema, required.contains(&name.as_str())));
        Manual {
            name: kind.name(),
            sections: sections(description),
            options: options.collect(),
            example: kind.example(),
        }
    }
}

/// The paragraphs of a doc comment by their headings. The example is left out: the kind gives it by itself.
fn sections(description: &str) -> Vec<(Option<String>, String)> {
    let mut sections = vec![(None, String::new())];
    for line in description.lines() {
        match line.strip_prefix("# ") {
            Some(heading) => sections.push((Some(heading.to_owned()), String::new())),
            None => {
                let (_, text) = sections.last_mut().expect("there is a first one");
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    sections.retain(|(heading, text)| heading.as_deref() != Some("Example") && !text.trim().is_empty());
    sections
}

impl OptionManual {
    fn of(name: &str, option: &Json, root: &Json, required: bool) -> Self {
        let mut choices = Vec::new();
        collect_choices(option, root, &mut choices, 0);
        OptionManual {
            name: name.to_owned(),
            ty: ty(option, root, 0),
            default: option.get("default").filter(|default| !default.is_null() && !default.is_object()).map(word),
            required,
            doc: option["description"].as_str().unwrap_or_default().to_owned(),
            choices,
        }
    }
}

/// Keys of an object whose types are shown.
const MOST_TYPED_KEYS: usize = 4;

/// Schemas refer to each other; a circle is not followed.
const DEEPEST: usize = 6;

fn resolved<'a>(schema: &'a Json, root: &'a Json) -> &'a Json {
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

fn alternatives(schema: &Json) -> impl Iterator<Item = &Json> {
    ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten()
}

/// What may be written, in a few words: `text`, `true or false`, `"nearest", "bilinear"`, `[whole number, whole number]`.
fn ty(schema: &Json, root: &Json, depth: usize) -> String {
    if depth > DEEPEST {
        return "…".to_owned();
    }
    let schema = resolved(schema, root);
    if let Some(format) = schema["x-format"].as_str() {
        return format_words(format).to_owned();
    }
    if let Some(constant) = schema.get("const") {
        return word(constant);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().filter(|word| !word.is_null()).map(word).collect::<Vec<_>>().join(", ");
    }
    let mut parts: Vec<String> = Vec::new();
    for part in alternatives(schema).filter(|part| part["type"] != "null") {
        let part = ty(part, root, depth + 1);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    if !parts.is_empty() {
        return parts.join(" or ");
    }
    let types: Vec<_> = match &schema["type"] {
        Json::String(one) => vec![one.as_str()],
        Json::Array(many) => many.iter().filter_map(Json::as_str).filter(|ty| *ty != "null").collect(),
        _ => Vec::new(),
    };
    let shown = types.iter().map(|one| match *one {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => list_ty(schema, root, depth),
        "object" => object_ty(schema, root, depth),
        other => other.to_owned(),
    });
    shown.collect::<Vec<_>>().join(" or ")
}

/// The engine's own scalars.
fn format_words(format: &str) -> &str {
    match format {
        "duration" => "duration such as `50ms`",
        "size" => "size such as `64MiB`",
        "fraction" => "fraction such as `5%`",
        "limit" => "count, or fraction such as `5%`",
        "devices" => "`auto`, `cpu`, `cuda` or `cuda:0,2`",
        other => other,
    }
}

fn list_ty(schema: &Json, root: &Json, depth: usize) -> String {
    if let Some(items) = schema["prefixItems"].as_array() {
        let items: Vec<_> = items.iter().map(|item| ty(item, root, depth + 1)).collect();
        return format!("[{}]", items.join(", "));
    }
    let item = ty(&schema["items"], root, depth + 1);
    match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
        (Some(least), Some(most)) if least == most && least <= 4 => {
            format!("[{}]", vec![item; least as usize].join(", "))
        }
        _ => format!("list of {item}"),
    }
}

fn object_ty(schema: &Json, root: &Json, depth: usize) -> String {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let properties = schema["properties"].as_object();
    // Of many keys the names are enough for a line.
    let is_long = properties.is_some_and(|properties| properties.len() > MOST_TYPED_KEYS);
    let keys: Vec<_> = properties
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            match depth {
                0 | 1 if !is_long => format!("{name}{mark}: {}", ty(value, root, depth + 1)),
                _ => format!("{name}{mark}"),
            }
        })
        .collect();
    match (&keys[..], schema.get("additionalProperties")) {
        ([], Some(value)) if value.is_object() => format!("{{name: {}}}", ty(value, root, depth + 1)),
        _ => format!("{{{}}}", keys.join(", ")),
    }
}

fn word(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("`{text}`"))
}

/// The alternatives that have docs of their own.
fn collect_choices(schema: &Json, root: &Json, choices: &mut Vec<(String, String)>, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    for part in alternatives(resolved(schema, root)) {
        let part = resolved(part, root);
        if alternatives(part).next().is_some() {
            collect_choices(part, root, choices, depth + 1);
        } else if let (Some(doc), true) = (part["description"].as_str(), part.get("type").is_none_or(|ty| ty != "null"))
        {
            choices.push((ty(part, root, 1), doc.to_owned()));
        }
    }
}

/// The manual of one kind as text.
pub(crate) fn text(manual: &Manual<'_>, terminal: &Terminal) -> String {
    let mut page = Page::new(terminal);
    page.heading(manual.name);
    for (heading, text) in &manual.sections {
        if let Some(heading) = heading {
            page.blank();
            page.heading(heading);
        }
        page.markdown(text, 2);
    }
    page.blank();
    page.heading("Options");
    if manual.options.is_empty() {
        page.paragraph("none", 2);
    }
    for option in &manual.options {
        let mut facts = vec![option.ty.clone()];
        match &option.default {
            Some(default) => facts.push(format!("default {default}")),
            None if option.required => facts.push("required".to_owned()),
            None => {}
        }
        facts.retain(|fact| !fact.is_empty());
        page.option(&option.name, &facts.join("; "));
        page.markdown(&option.doc, 6);
        for (choice, doc) in &option.choices {
            page.paragraph(&format!("{choice}: {}", doc.replace('\n', " ")), 8);
        }
    }
    page.blank();
    page.heading("Example");
    for line in manual.example.trim_end().lines() {
        page.verbatim(line, 2);
    }
    page.text
}

/// All kinds, a line each.
pub(crate) fn list(kinds: &[&Kind], terminal: &Terminal) -> String {
    let mut page = Page::new(terminal);
    let columns = kinds.iter().map(|kind| kind.name().len()).max().unwrap_or(0);
    let mut role = None;
    for kind in kinds {
        if role.replace(kind.role()).is_some_and(|last| last != kind.role()) {
            page.blank();
        }
        let summary = first_sentence(kind.schema()["description"].as_str().unwrap_or_default());
        page.entry(kind.name(), columns, &summary);
    }
    page.blank();
    page.paragraph("`flowgpu nodes KIND` shows the options of one.", 0);
    page.text
}

/// Up to the first full stop that ends a sentence.
fn first_sentence(doc: &str) -> String {
    let paragraph: Vec<_> = doc.lines().take_while(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
    let paragraph = paragraph.join(" ");
    match paragraph.find(". ") {
        Some(end) => paragraph[..=end].to_owned(),
        None => paragraph,
    }
}

/// Text under way, with its lines broken at the page's width.
struct Page {
    text: String,
    width: usize,
    colour: Colour,
    charset: Charset,
}

impl Page {
    fn new(terminal: &Terminal) -> Self {
        let width = terminal.width().map_or(WIDEST, |width| width.clamp(40, WIDEST));
        Page { text: String::new(), width, colour: terminal.colour, charset: terminal.charset }
    }

    fn strong(&self, text: &str) -> String {
        match self.colour {
            Colour::On => format!("{0}{text}{0:#}", Style::new().bold()),
            Colour::Off => text.to_owned(),
        }
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn heading(&mut self, text: &str) {
        let heading = self.strong(text);
        self.push_line(&heading);
    }

    fn option(&mut self, name: &str, facts: &str) {
        let name = self.strong(name);
        let facts = if facts.is_empty() { String::new() } else { format!("  ({facts})") };
        self.push_line(&format!("  {name}{facts}"));
    }

    fn entry(&mut self, name: &str, columns: usize, text: &str) {
        let padding = " ".repeat(columns + 2 - name.len());
        let mut lines = broken(text, self.width.saturating_sub(columns + 2)).into_iter();
        let first = format!("{}{padding}{}", self.strong(name), lines.next().unwrap_or_default());
        self.push_line(first.trim_end());
        for line in lines {
            self.push_line(&format!("{}{line}", " ".repeat(columns + 2)));
        }
    }

    /// Paragraphs, and blocks of code as they are.
    fn markdown(&mut self, text: &str, indent: usize) {
        let (mut paragraph, mut in_code) = (String::new(), false);
        for line in text.lines() {
            let fence = line.trim_start().starts_with("```");
            let item = line.trim_start().starts_with("- ");
            if fence || in_code || item || line.trim().is_empty() {
                self.paragraph(&std::mem::take(&mut paragraph), indent);
            }
            if fence {
                in_code = !in_code;
            } else if in_code {
                self.verbatim(line, indent + 2);
            } else {
                paragraph.push_str(line.trim());
                paragraph.push(' ');
            }
        }
        self.paragraph(&paragraph, indent);
    }

    fn paragraph(&mut self, text: &str, indent: usize) {
        if text.trim().is_empty() {
            return;
        }
        for line in broken(text, self.width.saturating_sub(indent)) {
            self.verbatim(&line, indent);
        }
    }

    fn verbatim(&mut self, line: &str, indent: usize) {
        self.push_line(&format!("{}{line}", " ".repeat(indent)));
    }

    fn push_line(&mut self, line: &str) {
        let line = match self.charset {
            Charset::Unicode => line.to_owned(),
            Charset::Ascii => ascii(line),
        };
        // Writing into a String does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Our own docs in plain letters.
fn ascii(line: &str) -> String {
    let plain = line
        .replace('×', "x")
        .replace('→', "->")
        .replace('…', "...")
        .replace(['–', '−'], "-")
        .replace('≥', ">=")
        .replace('≤', "<=");
    plain.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// The words of a text in lines of at most `columns`.
fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_said_in_words() {
        let root = serde_json::json!({"$defs": {"Size": {"anyOf": [
            {"type": "integer"},
            {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
            {"type": "null"},
        ]}}});
        let check = |schema: Json, expected: &str| assert_eq!(ty(&schema, &root, 0), expected);
        check(serde_json::json!({"$ref": "#/$defs/Size"}), "whole number or [whole number, whole number]");
        check(serde_json::json!({"enum": ["a", "b"]}), "`a`, `b`");
        check(serde_json::json!({"type": ["string", "null"]}), "text");
        check(serde_json::json!({"type": "array", "items": {"type": "string"}}), "list of text");
        check(
            serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}, "required": ["n"]}),
            "{n: whole number, s?: text}",
        );
        check(serde_json::json!({"type": "object", "additionalProperties": {"type": "string"}}), "{name: text}");
    }

    #[test]
    fn a_schema_that_contains_itself_has_a_type() {
        let root = serde_json::json!({"$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}});
        assert!(ty(&root["$defs"]["Tree"], &root, 0).starts_with("list of list of"));
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(broken("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(broken("aaaaaaaa b", 5), ["aaaaaaaa", "b"]);
        assert_eq!(first_sentence("One. Two.\n\n# Input\nx"), "One.");
        assert_eq!(first_sentence("One\ntwo"), "One two");
    }
}
