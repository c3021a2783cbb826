//! How much room text takes, without a font at hand.
//!
//! The reader's fonts are not known, so widths are those of a wide one (DejaVu Sans, Verdana), rounded up; fonts for
//! code agree on six tenths of their size.

use unicode_width::UnicodeWidthChar;

use super::super::plain::{Charset, fit, width};

/// Width in pixels in a font for text.
#[must_use]
pub fn sans(text: &str, size: f64) -> f64 {
    text.chars().map(sans_em).sum::<f64>() * size
}

/// Width in pixels in a font for code.
#[must_use]
pub fn mono(text: &str, size: f64) -> f64 {
    // A wide character is two columns of a terminal but up to a full em here, which is less than two of 0.602.
    width(text) as f64 * 0.602 * size
}

fn sans_em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '.' | ',' | ':' | ';' | '|' | '!' | ' ' | 'I' => 0.37,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.45,
        'm' | 'M' | 'W' | '@' | '%' | '…' => 1.0,
        'w' | '+' | '=' | '<' | '>' | '#' => 0.84,
        'A'..='Z' => 0.78,
        c if c.is_ascii() => 0.64,
        c => 0.8 * c.width().unwrap_or(0) as f64,
    }
}

/// The text in lines of at most `columns`, broken at spaces, at most `most` of them; the last ends in an ellipsis where
/// text was left out. A no-break space holds words together.
#[must_use]
pub fn wrap(text: &str, columns: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut cut = false;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let is_full = lines.len() == most;
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ if is_full => {
                cut = true;
                break;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if let (true, Some(last)) = (cut, lines.last_mut()) {
        last.push_str(" …");
    }
    lines.iter().map(|line| shorten(line, columns)).collect()
}

/// The text cut to at most `columns`.
#[must_use]
pub fn shorten(text: &str, columns: usize) -> String {
    fit(text, columns, Charset::Unicode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_to_their_width_and_say_what_is_missing() {
        assert_eq!(wrap("256 bicubic, crop 224 (from model)", 22, 2), ["256 bicubic, crop 224", "(from model)"]);
        assert_eq!(wrap("one two three four", 9, 1), ["one two …"]);
        assert_eq!(wrap("averyveryverylongword", 10, 2), ["averyvery…"]);
        assert_eq!(wrap("id, image u8\u{a0}[2,3]", 14, 3), ["id, image", "u8\u{a0}[2,3]"]);
        assert!(wrap("  ", 10, 2).is_empty());
    }
}
