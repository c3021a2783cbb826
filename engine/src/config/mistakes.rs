//! All the mistakes of one pipeline file.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::secrets::Secrets;
use super::{Mistake, Source, render};

/// How mistakes are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// In colour, for a terminal.
    pub colour: bool,
    /// Frames of ASCII characters, for locales without UTF-8.
    pub ascii: bool,
}

impl Look {
    /// For pipes and files.
    pub const PLAIN: Self = Self { colour: false, ascii: false };
    /// For terminals.
    pub const COLOUR: Self = Self { colour: true, ascii: false };
}

/// Mistakes in one file, in the order of their places, with the text that they point into.
#[derive(Clone, Debug)]
pub struct Mistakes {
    source: Arc<Source>,
    secrets: Secrets,
    list: Vec<Mistake>,
}

impl Mistakes {
    /// No mistakes yet, in `source`.
    pub fn new(source: Arc<Source>) -> Self {
        Self::hiding(source, Secrets::default())
    }

    /// No mistakes yet; texts of those to come never show a secret.
    pub(super) fn hiding(source: Arc<Source>, secrets: Secrets) -> Self {
        Self { source, secrets, list: Vec::new() }
    }

    /// Adds one; what is there already is not said twice.
    pub fn push(&mut self, mistake: Mistake) {
        let mistake = mistake.map_texts(|text| self.secrets.redact(text));
        if self.list.contains(&mistake) {
            return;
        }
        // Mistakes without a place come first: they are about the command line.
        let place = |mistake: &Mistake| mistake.span.map(|span| span.start);
        let index = self.list.partition_point(|known| place(known) <= place(&mistake));
        self.list.insert(index, mistake);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Each, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.list.iter()
    }

    /// The file that they are in.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// `value` where there are none.
    pub fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Each drawn with its line underlined, and their number last.
    pub fn render(&self, look: Look) -> String {
        render::mistakes(self, look)
    }

    /// Each as one line, `file:line:column: error: message`.
    pub fn lines(&self) -> String {
        let file = self.source.file().display();
        let line = |mistake: &Mistake| match mistake.span {
            Some(span) => {
                let at = self.source.location(span.start);
                format!("{file}:{}:{}: error: {}\n", at.line, at.column, render::printable(&mistake.message))
            }
            None => format!("{file}: error: {}\n", render::printable(&mistake.message)),
        };
        self.iter().map(line).collect()
    }

    /// Each as a value for editors and other programs. One without a place has `null` for it.
    pub fn to_json(&self) -> Vec<Json> {
        let value = |mistake: &Mistake| {
            let start = mistake.span.map(|span| self.source.location(span.start));
            let end = mistake.span.map(|span| self.source.location(span.end));
            json!({
                "file": self.source.file().display().to_string(),
                "line": start.map(|at| at.line),
                "column": start.map(|at| at.column),
                "end_line": end.map(|at| at.line),
                "end_column": end.map(|at| at.column),
                "message": mistake.message,
                "label": mistake.label,
                "notes": mistake.notes,
            })
        };
        self.iter().map(value).collect()
    }
}

impl Extend<Mistake> for Mistakes {
    fn extend<I: IntoIterator<Item = Mistake>>(&mut self, mistakes: I) {
        for mistake in mistakes {
            self.push(mistake);
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Look::PLAIN))
    }
}

impl std::error::Error for Mistakes {}
