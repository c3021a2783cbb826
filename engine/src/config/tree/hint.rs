//! What to write where the YAML itself is wrong.

use super::super::{Mistake, Source, Span};

/// Deeper nesting is refused: nothing in a pipeline needs it, and each level costs stack.
pub(super) const DEEPEST: usize = 64;

/// What is known at the place where the parser stopped.
pub(super) struct Context<'a> {
    pub source: &'a Source,
    /// The bracket of the innermost flow collection, if inside one.
    pub open: Option<Span>,
    pub last_scalar: Option<Span>,
    pub anchor_names: &'a [String],
}

/// Nesting that no pipeline needs.
pub(super) fn too_deep(span: Span) -> Mistake {
    Mistake::at(span, format!("more than {DEEPEST} levels of nesting"))
}

impl Context<'_> {
    /// The parser's words about byte `at`, as a mistake that says what to write.
    pub fn explain(&self, info: &str, at: usize) -> Mistake {
        let text = self.source.text();
        let rest = &text[at.min(text.len())..];
        if rest.starts_with('*') && (info.contains("anchor")) {
            return self.alias(at);
        }
        if rest.starts_with(['@', '`', '%']) && info.contains("unexpected character") {
            let span = self.word(at);
            let first = rest.chars().next().unwrap_or('@');
            let message = format!("a text cannot begin with `{first}` unless it is quoted");
            return Mistake::at(span, message).label(self.quoted(span));
        }
        if rest.starts_with('{') && self.open.is_some() && text[..at].ends_with('$') {
            // The parser took the text up to the `$` for all of the value.
            let start = self.last_scalar.filter(|scalar| scalar.end == at).map_or(at - 1, |scalar| scalar.start);
            let span = Span::new(start, self.word(at).end);
            let message = "`${…}` inside `{}` or `[]` must be quoted";
            return Mistake::at(span, message).label(self.quoted(span));
        }
        if let Some(tab) = self.tab(at).filter(|_| info.contains("tab")) {
            let mistake = Mistake::at(Span::new(tab, tab + 1), "a tab cannot indent in YAML");
            return mistake.label("write spaces");
        }
        match info {
            "simple key expect ':'" => {
                let span = self.line_before(at);
                let mistake = Mistake::at(span, "this line is neither a `key: value` nor a list's `- item`");
                mistake.label("a `:` with a space after it is missing")
            }
            "mapping values are not allowed in this context" if self.long_scalar_before(at) => {
                Mistake::at(self.char_at(at), "a key of more than 1024 characters")
            }
            "mapping values are not allowed in this context" => {
                let mistake = Mistake::at(self.char_at(at), "a second `:` on a line that has its key already");
                mistake.label("quote the value if the `:` is part of it, or begin a new line")
            }
            "recursion limit exceeded" => too_deep(self.char_at(at)),
            "while scanning a quoted scalar, found unexpected end of stream"
            | "invalid indentation in quoted scalar" => {
                Mistake::at(self.char_at(at), "this quote is never closed").label("opened here")
            }
            "invalid trailing content after double-quoted scalar" => {
                let mistake = Mistake::at(self.char_at(at), "text goes on after the closing quote");
                mistake.label("double a `'` that is part of the text, and write `\\\"` for a `\"`")
            }
            "while parsing a quoted scalar, found unknown escape character" => {
                let mistake = Mistake::at(self.char_at(at), "unknown escape after `\\` in this text");
                mistake.label("use single quotes, in which `\\` is a letter like others")
            }
            "block sequence entries are not allowed in this context" => {
                Mistake::at(self.char_at(at), "a list's `-` begins a line").label("begin a new line, or write `[a, b]`")
            }
            _ => self.unclosed(at).unwrap_or_else(|| {
                let mistake = Mistake::at(self.char_at(at), "this is not valid YAML");
                mistake.label(info.replace(['`', '\''], ""))
            }),
        }
    }

    /// Whether the text that ends at `at` is too long to be a key by YAML's rules.
    fn long_scalar_before(&self, at: usize) -> bool {
        self.last_scalar.is_some_and(|scalar| scalar.end == at && scalar.end - scalar.start > 1024)
    }

    /// `*` opens an alias; far more often it was to be a pattern.
    fn alias(&self, at: usize) -> Mistake {
        let span = self.word(at);
        let word = self.source.slice(span);
        let name = &word[1..];
        if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            let names = self.anchor_names.iter().map(String::as_str);
            let mistake = Mistake::at(span, format!("no `&{name}` stands above for `*{name}`"));
            let mistake = mistake.note(format!("if it is meant as text, quote it: \"{word}\""));
            return match super::super::nearest(name, names) {
                Some(near) => mistake.label(format!("did you mean `*{near}`?")),
                None => mistake,
            };
        }
        Mistake::at(span, "a text cannot begin with `*` unless it is quoted").label(self.quoted(span))
    }

    /// A bracket that is not closed, or closed by the wrong one.
    fn unclosed(&self, at: usize) -> Option<Mistake> {
        let open = self.open?;
        let bracket = self.source.slice(open);
        let close = if bracket == "{" { '}' } else { ']' };
        let text = self.source.text();
        // At the end of a line the comma or bracket is missing behind what is there.
        let before = text[..at.min(text.len())].trim_end();
        let at = if text[at.min(text.len())..].trim_start().is_empty() { before.len() } else { at };
        let mistake = Mistake::at(self.char_at(at), format!("`,` or `{close}` is missing before this"));
        Some(mistake.also(open, format!("this `{bracket}` is open")))
    }

    fn quoted(&self, span: Span) -> String {
        let word = self.source.slice(span);
        if word.contains(['"', '\\']) {
            return format!("quote it: '{}'", word.replace('\'', "''"));
        }
        format!("quote it: \"{word}\"")
    }

    /// From `at` to where the value was likely meant to end.
    fn word(&self, at: usize) -> Span {
        let text = self.source.text();
        let mut depth = 0_usize;
        let mut previous = ' ';
        let mut end = text.len();
        for (offset, c) in text[at..].char_indices() {
            let ends = match c {
                '\n' | '\r' => true,
                '#' => previous == ' ',
                ',' | ']' => self.open.is_some() && depth == 0,
                '}' if depth > 0 => {
                    depth -= 1;
                    false
                }
                '}' => self.open.is_some(),
                '{' => {
                    depth += 1;
                    false
                }
                _ => false,
            };
            if ends {
                end = at + offset;
                break;
            }
            previous = c;
        }
        Span::new(at, at + text[at..end].trim_end().len())
    }

    fn char_at(&self, at: usize) -> Span {
        let text = self.source.text();
        let at = at.min(text.len());
        Span::new(at, at + text[at..].chars().next().map_or(0, char::len_utf8))
    }

    /// The last line before `at` that says something.
    fn line_before(&self, at: usize) -> Span {
        let text = &self.source.text()[..at.min(self.source.text().len())];
        let mut said = text.trim_end();
        // A word on a line of its own goes on into the key below it, and only that key's `:` stops the parser.
        let start = said.rfind('\n').map_or(0, |at| at + 1);
        let above = said[..start].trim_end();
        let line_above = above.rsplit('\n').next().unwrap_or(above);
        if said.len() == text.len() && !line_above.is_empty() && !line_above.contains(':') {
            said = above;
        }
        let start = said.rfind('\n').map_or(0, |at| at + 1);
        let line = &said[start..];
        let line = line.split(" #").next().unwrap_or(line).trim_end();
        let blank = line.len() - line.trim_start().len();
        Span::new(start + blank, start + line.len())
    }

    /// The first tab in the indentation of the line at `at` or after it.
    fn tab(&self, at: usize) -> Option<usize> {
        let text = self.source.text();
        let mut start = text[..at.min(text.len())].rfind('\n').map_or(0, |at| at + 1);
        for line in text[start..].split_inclusive('\n').take(3) {
            let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
            if let Some(tab) = line[..indentation].find('\t') {
                return Some(start + tab);
            }
            start += line.len();
        }
        None
    }
}
