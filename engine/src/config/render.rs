//! Mistakes as people read them: the line, underlined, and what to write.
//!
//! codespan-reporting draws the parts. Its own arrangement puts an empty line around each piece of source; with several
//! mistakes on one screen the tighter one here shows more of them, so the parts are put together here. A place that
//! runs over several lines is underlined on its first.

use std::collections::BTreeMap;

use codespan_reporting::diagnostic::{LabelStyle, Severity};
use codespan_reporting::files::Error;
use codespan_reporting::term::termcolor::{Ansi, NoColor};
use codespan_reporting::term::{Chars, Config, Renderer, WriteStyle};
use unicode_width::UnicodeWidthChar;

use super::source::floor;
use super::urls::covered;
use super::{Look, Mistake, Mistakes, Source, Span};

/// More are only counted.
const MOST_SHOWN: usize = 500;

/// Longer source lines are shown in part, around what is underlined.
const WIDEST: usize = 240;

/// All of them, and their number in the last line.
pub(super) fn mistakes(mistakes: &Mistakes, look: Look) -> String {
    let chars = if look.ascii { Chars::ascii() } else { Chars::box_drawing() };
    let config = Config { chars, tab_width: 2, ..Config::default() };
    let mut bytes = Vec::new();
    for mistake in mistakes.iter().take(MOST_SHOWN) {
        let mut colour;
        let mut plain;
        let writer: &mut dyn WriteStyle = if look.colour {
            colour = Ansi::new(&mut bytes);
            &mut colour
        } else {
            plain = NoColor::new(&mut bytes);
            &mut plain
        };
        // Writing into memory does not fail, and every span was cut to the text before.
        let _ = draw(writer, &config, mistakes.source(), mistake);
    }
    let count = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        n if n > MOST_SHOWN => format!("{n} mistakes, of which these are the first {MOST_SHOWN}"),
        n => format!("{n} mistakes"),
    };
    let file = mistakes.source().file().display();
    let text = format!("{}{file}: {count}\n", String::from_utf8_lossy(&bytes));
    if look.ascii { ascii(&text) } else { text }
}

/// The text with something as wide in place of each character that a locale without UTF-8 does not have.
fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '…' => plain.push_str("..."),
            '–' => plain.push('-'),
            _ if c.is_ascii() => plain.push(c),
            _ => (0..c.width().unwrap_or(1)).for_each(|_| plain.push('?')),
        }
    }
    plain
}

/// `text` without characters that could move the cursor or change the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn draw(writer: &mut dyn WriteStyle, config: &Config, source: &Source, mistake: &Mistake) -> Result<(), Error> {
    Renderer::new(writer, config).render_header(None, Severity::Error, None, &printable(&mistake.message))?;
    let mut lines: BTreeMap<usize, Vec<(LabelStyle, Span, String)>> = BTreeMap::new();
    let mut label = |style, span: Span, text: &str| {
        let span = on_first_line(source, span);
        lines.entry(source.line_of(span.start)).or_default().push((style, span, printable(text)));
    };
    if let Some(span) = mistake.span {
        label(LabelStyle::Primary, span, &mistake.label);
        for (span, text) in &mistake.secondary {
            label(LabelStyle::Secondary, *span, text);
        }
    }
    let padding = lines.keys().last().map_or(1, |line| line.to_string().len());
    if let Some(span) = mistake.span {
        let at = source.location(on_first_line(source, span).start);
        write!(writer, "{:padding$} ", "")?;
        writer.set_source_border()?;
        write!(writer, "{}", config.chars.snippet_start)?;
        writer.reset()?;
        writeln!(writer, " {}:{}:{}", source.file().display(), at.line, at.column)?;
    }
    let mut renderer = Renderer::new(writer, config);
    if mistake.span.is_none() && !mistake.label.is_empty() {
        renderer.render_snippet_note(padding, &printable(&mistake.label))?;
    }
    let mut previous = None;
    for (line, mut labels) in lines {
        if previous.is_some_and(|previous| line > previous + 1) {
            renderer.render_snippet_break(padding, Severity::Error, 0, &[])?;
        }
        previous = Some(line);
        labels.sort_by_key(|(_, span, _)| *span);
        let window = window(source, line, &labels);
        let cut: Vec<_> = labels
            .iter()
            .map(|(style, span, text)| {
                let start = span.start.clamp(window.start, window.end) - window.start;
                let end = span.end.clamp(window.start, window.end) - window.start;
                (*style, start..end.max(start + 1), text.as_str())
            })
            .collect();
        let text = same_length_printable(&shown(source, window));
        renderer.render_snippet_source(padding, line, &text, Severity::Error, &cut, 0, &[])?;
    }
    for note in &mistake.notes {
        renderer.render_snippet_note(padding, &printable(note))?;
    }
    renderer.render_empty()
}

/// The part of `span` that is on its first line, within the text.
fn on_first_line(source: &Source, span: Span) -> Span {
    let text = source.text();
    let start = floor(text, span.start);
    let line = source.line_span(source.line_of(start));
    let end = floor(text, span.end).min(line.end);
    Span::new(start.min(line.end), end)
}

/// The whole line, or of a very long one the part around the first label.
fn window(source: &Source, line: usize, labels: &[(LabelStyle, Span, String)]) -> Span {
    let whole = source.line_span(line);
    if whole.end - whole.start <= WIDEST {
        return whole;
    }
    let primary = labels.iter().find(|(style, ..)| *style == LabelStyle::Primary).or(labels.first());
    let at = primary.map_or(whole.start, |(_, span, _)| span.start);
    let text = source.text();
    let start = floor(text, at.saturating_sub(WIDEST / 2)).max(whole.start);
    let end = floor(text, (start + WIDEST).min(whole.end));
    Span::new(start, end)
}

/// A part of a line, with what is secret in URLs covered: which of it that is, the whole line shows.
fn shown(source: &Source, window: Span) -> String {
    let line = source.line_span(source.line_of(window.start));
    let line_text = covered(source.slice(line));
    line_text[window.start - line.start..window.end - line.start].to_owned()
}

/// The text without control characters; each gives way to one of as many bytes, so that places stay right.
fn same_length_printable(text: &str) -> String {
    let replace = |c: char| match (c.is_control(), c.len_utf8()) {
        (true, _) if c == '\t' => c,
        (true, 1) => '?',
        (true, _) => '¿',
        (false, _) => c,
    };
    text.chars().map(replace).collect()
}
