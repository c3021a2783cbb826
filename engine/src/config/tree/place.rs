//! Where the parser's events stand, in bytes and without what is not part of the value.

use saphyr_parser::{ScalarStyle, Span as ParserSpan};

use super::super::{Source, Span};

/// From the parser's counting of characters to bytes.
pub(super) enum Offsets {
    Ascii { length: usize },
    Table(Vec<usize>),
}

impl Offsets {
    pub fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Self::Ascii { length: text.len() };
        }
        Self::Table(text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect())
    }

    pub fn byte(&self, index: usize) -> usize {
        match self {
            Self::Ascii { length } => index.min(*length),
            Self::Table(table) => table[index.min(table.len() - 1)],
        }
    }

    pub fn span(&self, span: ParserSpan) -> Span {
        Span::new(self.byte(span.start.index()), self.byte(span.end.index()))
    }
}

/// The span without the anchor and tag that the parser counts in.
pub(super) fn after_properties(source: &Source, span: Span) -> Span {
    let mut rest = source.slice(span);
    while rest.starts_with(['&', '!']) {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest[word..].trim_start();
    }
    Span::new(span.end - rest.len(), span.end)
}

/// The span without the blanks and comments that the parser counts in.
pub(super) fn scalar_span(source: &Source, span: Span, style: ScalarStyle) -> Span {
    let text = source.slice(span);
    let length = match style {
        ScalarStyle::SingleQuoted => {
            let mut length = 1;
            while let Some(quote) = text.get(length..).and_then(|rest| rest.find('\'')) {
                length += quote + 1;
                if !text[length..].starts_with('\'') {
                    break;
                }
                length += 1;
            }
            length
        }
        ScalarStyle::DoubleQuoted => {
            let mut escaped = false;
            let close = text.char_indices().skip(1).find(|&(_, c)| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            close.map_or(text.len(), |(at, _)| at + 1)
        }
        // An empty value has the span of the token after it.
        ScalarStyle::Plain if text.starts_with(['}', ']', ',']) => 0,
        _ => text.trim_end().len(),
    };
    Span::new(span.start, span.start + length.min(text.len()))
}

/// `x` of `&x {…`.
pub(super) fn anchor_name(text: &str) -> String {
    let from = text.find('&').map_or(text.len(), |at| at + 1);
    text[from..].chars().take_while(|c| !c.is_whitespace() && !",[]{}".contains(*c)).collect()
}
