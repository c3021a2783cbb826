//! The text of a pipeline file, shared by everything that points into it.

use std::path::{Path, PathBuf};

use super::Span;

/// A pipeline file's name and text, with a table of its lines.
#[derive(Debug)]
pub struct Source {
    file: PathBuf,
    text: String,
    line_starts: Vec<usize>,
}

/// A place as people and editors count: lines and columns from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

impl Source {
    /// The text of `file`. A byte order mark is not part of the text.
    pub fn new(file: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        let mut text: String = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { file: file.into(), text, line_starts }
    }

    /// The file's name, as it was given.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text at `span`; empty where the span is none of this text's.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Line and column of a byte; a byte past the end counts as the end.
    pub fn location(&self, byte: usize) -> Location {
        let byte = floor(&self.text, byte);
        let line = self.line_of(byte);
        let column = self.text[self.line_starts[line - 1]..byte].chars().count() + 1;
        Location { line, column }
    }

    /// The line, from 1, that a byte is on.
    pub(super) fn line_of(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= byte).max(1)
    }

    /// The bytes of a line, from 1, without its line break.
    pub(super) fn line_span(&self, line: usize) -> Span {
        let start = self.line_starts[line - 1];
        let end = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        Span::new(start, start + self.text[start..end].trim_end_matches(['\n', '\r']).len())
    }
}

/// The last character boundary that is not past `byte`.
pub(super) fn floor(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_before_their_break() {
        let source = Source::new("a.yaml", "\u{feff}é: ü\r\nb");
        assert_eq!(source.text(), "é: ü\r\nb");
        assert_eq!(source.location(4), Location { line: 1, column: 4 });
        assert_eq!(source.location(8), Location { line: 2, column: 1 });
        assert_eq!(source.location(999), Location { line: 2, column: 2 });
        assert_eq!(source.slice(source.line_span(1)), "é: ü");
    }
}
