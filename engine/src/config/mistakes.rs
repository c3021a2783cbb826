//! All the mistakes of one pipeline file.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::secrets::Secrets;
use super::{Mistake, Source, render};

/// Longer texts are cut: a name in them may be as long as a hostile file.
const LONGEST: usize = 2_000;

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
    seen: HashSet<Mistake>,
}

impl Mistakes {
    /// No mistakes yet, in `source`.
    pub fn new(source: Arc<Source>) -> Self {
        Self::hiding(source, Secrets::default())
    }

    /// No mistakes yet; texts of those to come never show a secret.
    pub(super) fn hiding(source: Arc<Source>, secrets: Secrets) -> Self {
        Self { source, secrets, list: Vec::new(), seen: HashSet::new() }
    }

    /// Adds one; what is there already is not said twice.
    pub fn push(&mut self, mistake: Mistake) {
        self.extend([mistake]);
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
            let mistake = mistake.map_texts(|text| shortened(&self.secrets.redact(text)));
            if self.seen.insert(mistake.clone()) {
                self.list.push(mistake);
            }
        }
        // Mistakes without a place come first: they are about the command line.
        self.list.sort_by_key(|mistake| mistake.span.map(|span| span.start));
    }
}

/// The text without the end of one that is much too long to be read.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Look::PLAIN))
    }
}

impl std::error::Error for Mistakes {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Span;

    #[test]
    fn each_is_told_once_in_the_order_of_places() {
        let mut mistakes = Mistakes::new(Arc::new(Source::new("a.yaml", "a: 1\nb: 2\n")));
        assert!(mistakes.clone().into_result(()).is_ok());
        let second = Mistake::at(Span::new(5, 6), "second");
        mistakes.extend([second.clone(), Mistake::at(Span::new(0, 1), "first"), second]);
        mistakes.push(Mistake::nowhere("of the command line"));
        assert_eq!(
            mistakes.lines(),
            "a.yaml: error: of the command line\na.yaml:1:1: error: first\na.yaml:2:1: error: second\n"
        );
        assert_eq!(mistakes.into_result(()).map_err(|mistakes| mistakes.len()), Err(3));
    }

    #[test]
    fn texts_have_an_end() {
        let mut mistakes = Mistakes::new(Arc::new(Source::new("a.yaml", "")));
        mistakes.push(Mistake::nowhere("x".repeat(1 << 20)));
        assert!(mistakes.to_string().len() < 3_000);
    }
}
