//! Values put into the text of a pipeline file, with everything else left as it was written.
//!
//! YAML can be written in many ways. So an edit is tried at the places where it may stand, and the text is read again: only one
//! that says the same as before but for the value counts.

use std::sync::Arc;

use super::tree::{Entry, Tree, Value, build};
use super::{Source, Span};

/// A value to be put into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The keys from the outside in: `nodes`, `scores`, `with`, `batch`.
    pub path: Vec<String>,
    /// A number or a plain word.
    pub value: String,
}

/// `text` with the values put in.
///
/// # Errors
/// The first edit that has no place where it would change nothing else: a value that is an alias or refers to variables,
/// or is none that can be replaced.
pub fn edited(text: &str, edits: &[Edit]) -> Result<String, Edit> {
    let mut text = text.to_owned();
    for edit in edits {
        text = with(&text, edit).ok_or_else(|| edit.clone())?;
    }
    Ok(text)
}

/// The edits as YAML to write by hand: one line for `run`, one for each node.
pub fn as_yaml(edits: &[Edit]) -> String {
    let mut tree = Nested::default();
    edits.iter().for_each(|edit| tree.put(&edit.path, &edit.value));
    let mut text = String::new();
    for (key, value) in &tree.entries {
        if key == "nodes" {
            text.push_str("nodes:\n");
            value.entries.iter().for_each(|(node, value)| text.push_str(&format!("  {node}: {}\n", value.flow())));
        } else {
            text.push_str(&format!("{key}: {}\n", value.flow()));
        }
    }
    text
}

/// Keys in keys, down to values.
#[derive(Default)]
struct Nested {
    value: String,
    entries: Vec<(String, Nested)>,
}

impl Nested {
    fn put(&mut self, path: &[String], value: &str) {
        let Some((key, rest)) = path.split_first() else {
            value.clone_into(&mut self.value);
            return;
        };
        let at = self.entries.iter().position(|(other, _)| other == key).unwrap_or_else(|| {
            self.entries.push((key.clone(), Nested::default()));
            self.entries.len() - 1
        });
        self.entries[at].1.put(rest, value);
    }

    fn flow(&self) -> String {
        if self.entries.is_empty() {
            return self.value.clone();
        }
        let entries: Vec<_> = self.entries.iter().map(|(key, value)| format!("{key}: {}", value.flow())).collect();
        format!("{{{}}}", entries.join(", "))
    }
}

fn read(text: &str) -> Option<(Arc<Source>, Tree)> {
    let source = Arc::new(Source::new("", text));
    match build(&source) {
        (Some(tree), mistakes) if mistakes.is_empty() => Some((source, tree)),
        _ => None,
    }
}

fn with(text: &str, edit: &Edit) -> Option<String> {
    let (source, tree) = read(text)?;
    let mut wanted = tree.to_yaml();
    set(&mut wanted, &edit.path, &edit.value)?;
    let says_that = |text: &String| read(text).is_some_and(|(_, tree)| tree.to_yaml() == wanted);
    places(&source, &tree, edit).into_iter().find(says_that)
}

fn set(yaml: &mut serde_yaml::Value, path: &[String], value: &str) -> Option<()> {
    let Some((key, rest)) = path.split_first() else {
        *yaml = serde_yaml::from_str(value).ok()?;
        return Some(());
    };
    let entries = yaml.as_mapping_mut()?;
    let empty = || serde_yaml::Value::Mapping(serde_yaml::Mapping::new());
    set(entries.entry(key.as_str().into()).or_insert_with(empty), rest, value)
}

/// The texts that may be meant, the nicest first.
fn places(source: &Source, tree: &Tree, edit: &Edit) -> Vec<String> {
    let mut map = tree;
    for (at, key) in edit.path.iter().enumerate() {
        let rest = &edit.path[at + 1..];
        let Some(entry) = map.entry(key) else {
            let mut nested = Nested::default();
            nested.put(rest, &edit.value);
            return inserted(source, map, &format!("{key}: {}", nested.flow()));
        };
        if rest.is_empty() {
            return replaced(source, entry.value.span, &edit.value).into_iter().collect();
        }
        map = &entry.value;
    }
    Vec::new()
}

fn replaced(source: &Source, span: Span, value: &str) -> Option<String> {
    let written = source.slice(span);
    // A variable is there so that its value is set elsewhere.
    let is_plain = !written.is_empty() && !written.contains(['$', '\n']) && !written.starts_with(['&', '*', '!']);
    is_plain.then(|| spliced(source, span, value))
}

fn spliced(source: &Source, span: Span, with: &str) -> String {
    let text = source.text();
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

/// With a line, or a part of one, put into a map.
fn inserted(source: &Source, map: &Tree, line: &str) -> Vec<String> {
    let at = |byte: usize, with: &str| spliced(source, Span::new(byte, byte), with);
    let Value::Map(entries) = &map.value else { return Vec::new() };
    if source.slice(map.span).starts_with('{') {
        return match entries.last() {
            None => vec![at(map.span.start + 1, line)],
            Some(last) => vec![at(last.value.span.end, &format!(", {line}"))],
        };
    }
    let newline = if source.text().contains("\r\n") { "\r\n" } else { "\n" };
    let indent = |entry: &Entry| " ".repeat(source.location(entry.key.span.start).column - 1);
    let before = |entry: &Entry| at(entry.key.span.start, &format!("{line}{newline}{}", indent(entry)));
    // `run` stands above `nodes`; other lines behind the first of their map, such as `kind`.
    if let Some(nodes) = entries.iter().find(|entry| entry.key.value == "nodes") {
        return vec![before(nodes)];
    }
    let Some(first) = entries.first() else { return Vec::new() };
    let end = source.line_span(source.line_of(first.value.span.end)).end;
    vec![at(end, &format!("{newline}{}{line}", indent(first))), before(first)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(path: &str, value: &str) -> Edit {
        Edit { path: path.split('.').map(str::to_owned).collect(), value: value.to_owned() }
    }

    #[track_caller]
    fn check(text: &str, path: &str, expected: &str) {
        assert_eq!(edited(text, &[edit(path, "16")]).as_deref(), Ok(expected));
    }

    #[track_caller]
    fn refuses(text: &str, path: &str) {
        assert_eq!(edited(text, &[edit(path, "16")]), Err(edit(path, "16")));
    }

    #[test]
    fn a_value_is_replaced_where_it_stands() {
        check(
            "nodes:\n  a: {with: {batch: 8}} # why\n",
            "nodes.a.with.batch",
            "nodes:\n  a: {with: {batch: 16}} # why\n",
        );
        check("run:\n  threads:\n    rows: 2 # é\n", "run.threads.rows", "run:\n  threads:\n    rows: 16 # é\n");
    }

    #[test]
    fn a_missing_key_is_put_into_its_map() {
        check("nodes: {a: {kind: infer}}\n", "nodes.a.with.batch", "nodes: {a: {kind: infer, with: {batch: 16}}}\n");
        check("a: {b: {}} # c\n", "a.b.c", "a: {b: {c: 16}} # c\n");
        check("a: {\n  b: 1, # one\n}\n", "a.c", "a: {\n  b: 1, c: 16, # one\n}\n");
        check(
            "# top\nname: p\n# n\nnodes: {}\n",
            "run.threads.rows",
            "# top\nname: p\n# n\nrun: {threads: {rows: 16}}\nnodes: {}\n",
        );
        check(
            "a:\n  kind: infer # k\n  # f\n  from: b\n",
            "a.with.batch",
            "a:\n  kind: infer # k\n  with: {batch: 16}\n  # f\n  from: b\n",
        );
        check(
            "run:\n  threads:\n    rows: 2\n  quiet: true\n",
            "run.x",
            "run:\n  threads:\n    rows: 2\n  x: 16\n  quiet: true\n",
        );
        check("a:\r\n  b: 1\r\n", "a.c", "a:\r\n  b: 1\r\n  c: 16\r\n");
        check("a:\n  b: 1", "a.c", "a:\n  b: 1\n  c: 16");
    }

    #[test]
    fn what_has_no_safe_place_is_refused() {
        refuses("a: {b: \"${n}\"}\n", "a.b");
        refuses("a: &x {b: 1}\nc: *x\n", "a.b");
        refuses("a: &x {b: 1}\nc: *x\n", "c.d");
        refuses("a: {b: }\n", "a.b");
        refuses("a: {b: [1]}\n", "a.b.c");
        refuses("a: {b: 1\n", "a.b");
    }

    #[test]
    fn edits_are_yaml_to_write_by_hand() {
        let edits = [edit("run.threads.rows", "3"), edit("nodes.a.with.batch", "16"), edit("run.isolation", "thread")];
        assert_eq!(as_yaml(&edits), "run: {threads: {rows: 3}, isolation: thread}\nnodes:\n  a: {with: {batch: 16}}\n");
    }
}
