//! A line of text with tones, which become colours at the very end: width is counted without them.

use anstyle::{AnsiColor, Style};
use engine::graph::render::plain::{fit, for_terminal, pad, width};

use super::terminal::{Charset, Colour};

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it comes.
    Plain,
    /// A name.
    Strong,
    /// Something that can be passed over.
    Faint,
    /// Progress.
    Good,
    /// What asks for attention.
    Alert,
}

/// A line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    pieces: Vec<(Tone, String)>,
}

impl Line {
    /// Adds text, made harmless.
    pub fn push(&mut self, tone: Tone, text: &str, charset: Charset) {
        self.pieces.push((tone, for_terminal(text, charset)));
    }

    /// Adds another line at its end.
    pub fn append(&mut self, mut other: Self) {
        self.pieces.append(&mut other.pieces);
    }

    /// Adds text that is this module's own.
    pub fn push_own(&mut self, tone: Tone, text: impl Into<String>) {
        self.pieces.push((tone, text.into()));
    }

    /// Adds text, made harmless, and spaces up to `columns`.
    pub fn push_padded(&mut self, tone: Tone, text: &str, columns: usize, charset: Charset) {
        self.pieces.push((tone, pad(&for_terminal(text, charset), columns)));
    }

    /// Columns that it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| width(text)).sum()
    }

    /// The line without spaces at its end, cut to `columns`.
    #[must_use]
    pub fn fitted(mut self, columns: Option<usize>, charset: Charset) -> Self {
        while let Some((_, last)) = self.pieces.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            self.pieces.pop();
        }
        let Some(columns) = columns else { return self };
        if self.width() <= columns {
            return self;
        }
        let mut fitted = Self::default();
        let mut used = 0;
        for (tone, text) in self.pieces {
            let room = columns - used;
            // The mark of what is missing must have room in the last piece that is kept.
            if width(&text) + width(charset.ellipsis()) <= room {
                used += width(&text);
                fitted.pieces.push((tone, text));
                continue;
            }
            let longer = format!("{text}{}", " ".repeat(room + 1));
            fitted.pieces.push((tone, fit(&longer, room, charset)));
            break;
        }
        fitted
    }

    /// The text, with escapes for colours if they are wanted.
    #[must_use]
    pub fn painted(&self, colour: Colour) -> String {
        let mut painted = String::new();
        for (tone, text) in &self.pieces {
            match (colour, style_of(*tone)) {
                (Colour::On, Some(style)) => painted.push_str(&format!("{style}{text}{style:#}")),
                _ => painted.push_str(text),
            }
        }
        painted
    }
}

fn style_of(tone: Tone) -> Option<Style> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some(Style::new().bold()),
        Tone::Faint => Some(Style::new().dimmed()),
        Tone::Good => Some(AnsiColor::Green.on_default()),
        Tone::Alert => Some(AnsiColor::Yellow.on_default().bold()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let mut line = Line::default();
        line.push(Tone::Strong, "pixels", Charset::Unicode);
        line.push_own(Tone::Plain, "  ");
        line.push(Tone::Alert, "画像\x1b[2J", Charset::Unicode);
        line.push_own(Tone::Plain, "   ");
        line
    }

    #[test]
    fn a_cut_line_is_never_wider_than_asked() {
        for charset in [Charset::Unicode, Charset::Ascii] {
            for columns in 0..20 {
                assert!(line().fitted(Some(columns), charset).width() <= columns);
            }
        }
        assert_eq!(line().fitted(Some(11), Charset::Unicode).painted(Colour::Off), "pixels  画…");
        assert_eq!(line().fitted(Some(8), Charset::Unicode).painted(Colour::Off), "pixels…");
        assert_eq!(line().fitted(None, Charset::Unicode).painted(Colour::Off), "pixels  画像\u{fffd}[2J");
    }

    #[test]
    fn colours_are_only_added_around_text() {
        let painted = line().painted(Colour::On);
        assert_eq!(painted, "\x1b[1mpixels\x1b[0m  \x1b[1m\x1b[33m画像\u{fffd}[2J\x1b[0m   ");
    }
}
