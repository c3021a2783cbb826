//! Rejects by code, then by node.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use nodes::source::rejects::{Numbered, RejectLine, RejectLines};

use super::input::Input;
use crate::failure::{Failure, reason};

/// Examples for each code and node.
const MAX_EXAMPLES: usize = 3;
/// Codes, and nodes for each of them, that are told apart: those of a run are a dozen.
const MAX_NAMES: usize = 200;
/// What further ones are called.
const OTHERS: &str = "(others)";
/// Letters of a name, and of what an example says.
const MAX_LETTERS: (usize, usize) = (80, 400);
/// Damaged lines that are named.
const MAX_DAMAGED: usize = 10;

/// What was rejected.
#[derive(Debug)]
pub(super) struct Summary {
    /// The files, as people write them.
    pub(super) files: Vec<String>,
    /// The path that a node would read: none for standard input.
    pub(super) paths: Vec<String>,
    /// Whether a run is not done.
    pub(super) is_unfinished: bool,
    /// Whether all files were read to their ends.
    pub(super) is_whole: bool,
    pub(super) total: u64,
    codes: BTreeMap<String, Code>,
    pub(super) n_damaged: u64,
    pub(super) damaged: Vec<Damaged>,
}

/// Rejects of one code.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) rows: u64,
    nodes: BTreeMap<String, Node>,
}

/// Rejects of one code by one node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) rows: u64,
    pub(super) examples: Vec<Example>,
}

/// A row that was rejected.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) uri: String,
    pub(super) message: String,
}

/// A line that is no reject.
#[derive(Debug)]
pub(super) struct Damaged {
    pub(super) file: String,
    pub(super) line: u64,
    pub(super) what: String,
}

impl Default for Summary {
    fn default() -> Self {
        Summary {
            files: Vec::new(),
            paths: Vec::new(),
            is_unfinished: false,
            is_whole: true,
            total: 0,
            codes: BTreeMap::new(),
            n_damaged: 0,
            damaged: Vec::new(),
        }
    }
}

impl Summary {
    /// Reads a file to its end, or as far as that can be done.
    pub(super) fn read(&mut self, input: &Input) -> Result<(), Failure> {
        let file = input.shown();
        self.files.push(file.clone());
        match input {
            Input::File(_) => self.paths.push(file.clone()),
            Input::OfPipeline { named, .. } => self.paths.push(named.clone()),
            Input::Unfinished(_) => self.is_unfinished = true,
            Input::Absent(_) | Input::Standard => {}
        }
        if let Some(mut lines) = input.open()? {
            self.read_lines(&file, &mut lines);
        }
        Ok(())
    }

    fn read_lines(&mut self, file: &str, lines: &mut RejectLines) {
        loop {
            match lines.next_line() {
                Ok(None) => return,
                Ok(Some(Numbered { line: Ok(line), .. })) => self.add(line),
                Ok(Some(Numbered { number, line: Err(what) })) => self.add_damaged(file, number, what),
                Err(error) => {
                    self.is_whole = false;
                    let what = format!("nothing can be read from here on: {}", reason(&error));
                    return self.add_damaged(file, lines.number() + 1, what);
                }
            }
        }
    }

    fn add(&mut self, line: RejectLine) {
        self.total += 1;
        let code = entry(&mut self.codes, &line.code);
        code.rows += 1;
        let node = entry(&mut code.nodes, &line.node);
        node.rows += 1;
        if node.examples.len() < MAX_EXAMPLES {
            let (uri, message) = (cut(&line.uri, MAX_LETTERS.1), cut(&line.message, MAX_LETTERS.1));
            node.examples.push(Example { uri, message });
        }
    }

    fn add_damaged(&mut self, file: &str, line: u64, what: String) {
        self.n_damaged += 1;
        if self.damaged.len() < MAX_DAMAGED {
            self.damaged.push(Damaged { file: file.to_owned(), line, what: cut(&what, MAX_LETTERS.1) });
        }
    }

    /// The codes, most frequent first.
    pub(super) fn codes(&self) -> Vec<(&str, &Code)> {
        sorted(&self.codes, |code| code.rows)
    }

    /// A part of all rejects.
    pub(super) fn share(&self, rows: u64) -> f64 {
        if self.total == 0 { 0.0 } else { rows as f64 / self.total as f64 }
    }

    /// The node that runs the rows of the most frequent code again.
    pub(super) fn again(&self) -> Option<String> {
        let codes = self.codes();
        let (code, _) = codes.first()?;
        let path = match &self.paths[..] {
            [] => return None,
            [path] => quoted(path),
            paths => format!("[{}]", paths.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(", ")),
        };
        let is_known = engine::data::code::ALL.contains(code);
        let chosen = if is_known && codes.len() > 1 { format!(", codes: [{code}]") } else { String::new() };
        Some(format!("again: {{kind: source.rejects, with: {{path: {path}{chosen}}}}}"))
    }
}

impl Code {
    /// The nodes, most frequent first.
    pub(super) fn nodes(&self) -> Vec<(&str, &Node)> {
        sorted(&self.nodes, |node| node.rows)
    }
}

fn entry<'a, T: Default>(map: &'a mut BTreeMap<String, T>, name: &str) -> &'a mut T {
    let name = cut(name, MAX_LETTERS.0);
    let name = if map.len() < MAX_NAMES || map.contains_key(&name) { name } else { OTHERS.to_owned() };
    map.entry(name).or_default()
}

fn sorted<T>(map: &BTreeMap<String, T>, rows: impl Fn(&T) -> u64) -> Vec<(&str, &T)> {
    let mut sorted: Vec<_> = map.iter().map(|(name, value)| (name.as_str(), value)).collect();
    sorted.sort_by_key(|(name, value)| (Reverse(rows(value)), *name));
    sorted
}

fn cut(text: &str, n_letters: usize) -> String {
    match text.char_indices().nth(n_letters) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A text as it is written in a pipeline file.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-');
    let begins_well = !text.starts_with(['-', '.']) || text.starts_with("../");
    if begins_well && text.chars().all(is_plain) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn summed(content: String) -> Summary {
        let mut summary = Summary::default();
        summary.read_lines("f", &mut RejectLines::new(Cursor::new(content)).unwrap());
        summary
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let line = |n: usize| {
            let long = "x".repeat(1000);
            format!(
                "{{\"uri\": \"{n}{long}\", \"node\": \"{n}{long}\", \"code\": \"{n}\", \"message\": \"{long}\"}}\n{n}\n"
            )
        };
        let summary = summed((0..1000).map(line).collect());
        assert_eq!((summary.total, summary.n_damaged, summary.damaged.len()), (1000, 1000, MAX_DAMAGED));
        let codes = summary.codes();
        assert_eq!((codes.len(), codes[0].0, codes[0].1.rows), (MAX_NAMES + 1, OTHERS, 800));
        let nodes = codes[0].1.nodes();
        assert_eq!((nodes.len(), nodes[0].0, nodes[0].1.rows), (MAX_NAMES + 1, OTHERS, 600));
        assert_eq!(nodes[0].1.examples.len(), MAX_EXAMPLES);
        assert!(nodes[0].1.examples.iter().all(|example| example.uri.chars().count() == MAX_LETTERS.1 + 1));
    }

    #[test]
    fn paths_are_written_so_that_yaml_reads_them() {
        for (path, expected) in [
            ("out/a-b_1.rejects.jsonl", "out/a-b_1.rejects.jsonl"),
            ("../x.jsonl", "../x.jsonl"),
            ("a b.jsonl", "\"a b.jsonl\""),
            ("s3://b/x", "\"s3://b/x\""),
            (".p.partial", "\".p.partial\""),
        ] {
            assert_eq!(quoted(path), expected);
        }
    }
}
