//! Text that is safe on one line of a terminal or a page, and its width in columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// Box drawing, arrows, an ellipsis.
    Unicode,
    /// The 95 printable characters of ASCII, for locales that are not UTF-8.
    Ascii,
}

impl Charset {
    /// The mark of text left out.
    #[must_use]
    pub fn ellipsis(self) -> &'static str {
        match self {
            Self::Unicode => "…",
            Self::Ascii => "...",
        }
    }
}

/// The text on one line: line ends and tabs become spaces, other control characters and those that turn the direction
/// of writing are shown as U+FFFD, so that a name can neither move a cursor nor hide what follows it.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(harmless).collect()
}

fn harmless(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{fffe}' | '\u{ffff}' => {
            '\u{fffd}'
        }
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// As [`one_line`]; for an ASCII terminal every other character is a `?`.
#[must_use]
pub fn for_terminal(text: &str, charset: Charset) -> String {
    let line = one_line(text);
    match charset {
        Charset::Unicode => line,
        Charset::Ascii => line.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect(),
    }
}

/// Columns that the text takes on a terminal.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text cut to at most `columns`, with an ellipsis where something was left out.
#[must_use]
pub fn fit(text: &str, columns: usize, charset: Charset) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mark = charset.ellipsis();
    if columns < width(mark) {
        return ".".repeat(columns);
    }
    let room = columns - width(mark);
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > room {
            break;
        }
        kept.push(c);
        used += wide;
    }
    let mut kept = kept.trim_end().to_owned();
    kept.push_str(mark);
    kept
}

/// The text followed by spaces up to `columns`.
#[must_use]
pub fn pad(text: &str, columns: usize) -> String {
    let mut padded = text.to_owned();
    padded.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(text))));
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_text_is_never_wider_than_asked() {
        for text in ["", "a", "photos/**/*.jpg", "画像の分類", "e\u{301}e\u{301}e\u{301}", "👩‍🚀 mission"] {
            for columns in 0..20 {
                for charset in [Charset::Unicode, Charset::Ascii] {
                    let cut = fit(text, columns, charset);
                    assert!(width(&cut) <= columns, "{text:?} in {columns}: {cut:?}");
                    assert_eq!(cut == text, width(text) <= columns);
                }
            }
        }
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(one_line("a\x1b[2Jb\nc\u{202e}d\u{9b}e"), "a\u{fffd}[2Jb c\u{fffd}d\u{fffd}e");
        assert_eq!(for_terminal("é…\n", Charset::Ascii), "?? ");
    }
}
