//! One source file as the rules see it: the paths it names, and which lines are tests.

use crate::tokens::{Token, tokens};

/// A source file, read.
pub struct Source {
    /// From the workspace's root: `engine/src/graph/mod.rs`.
    pub file: String,
    pub tokens: Vec<Token>,
    /// For each token, what it lies in.
    pub places: Vec<Place>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Place {
    /// How many inline `mod x { … }`.
    pub inline_modules: usize,
    /// Behind `#[cfg(test)]` or `#[test]`.
    pub is_test: bool,
    /// In a `const { … }` block, where a panic is a compile error.
    pub is_const: bool,
}

/// A path written in the source, its `use` groups multiplied out, with `super` and `self` resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPath {
    pub segments: Vec<String>,
    pub line: usize,
}

impl Source {
    pub fn new(file: &str, text: &str) -> Self {
        let tokens = tokens(text);
        let places = places(&tokens);
        Self { file: file.into(), tokens, places }
    }

    /// The module's path in its crate: `engine/src/graph/render/svg.rs` is `[graph, render, svg]`.
    pub fn module(&self) -> Vec<String> {
        let inside =
            self.file.split_once("/src/").or_else(|| self.file.split_once('/')).map_or("", |(_, inside)| inside);
        let mut module: Vec<String> = inside.trim_end_matches(".rs").split('/').map(String::from).collect();
        if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
            module.pop();
        }
        module
    }

    /// Every path of two or more segments, and every single name behind `use` and `extern crate`.
    pub fn paths(&self) -> Vec<NamedPath> {
        let mut paths = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let after_use = at > 0 && matches!(self.tokens[at - 1].text.as_str(), "use" | "crate");
            let continues = at > 0 && matches!(self.tokens[at - 1].text.as_str(), "::" | ".");
            let starts_path = self.text(at + 1) == "::";
            if self.tokens[at].is_word() && !continues && (starts_path || (after_use && self.text(at) != "crate")) {
                let place = self.places[at];
                let mut found = Vec::new();
                at = self.read_tree(at, &[], &mut found);
                paths.extend(found.into_iter().map(|path| self.resolve(path, place)));
            } else {
                at += 1;
            }
        }
        paths
    }

    pub fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    /// Reads `a::b::{c, d::e}` from `at`; returns the index behind it.
    fn read_tree(&self, mut at: usize, before: &[String], found: &mut Vec<NamedPath>) -> usize {
        let mut segments = before.to_vec();
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        loop {
            match self.text(at) {
                "{" => {
                    at += 1;
                    while !matches!(self.text(at), "}" | "") {
                        at = if self.text(at) == "," {
                            at + 1
                        } else {
                            self.read_tree(at, &segments, found).max(at + 1)
                        };
                    }
                    return at + 1;
                }
                "*" => at += 1,
                _ if self.tokens.get(at).is_some_and(Token::is_word) => {
                    segments.push(self.text(at).into());
                    at += 1;
                }
                _ => {}
            }
            if self.text(at) != "::" {
                break;
            }
            at += 1;
        }
        if self.text(at) == "as" {
            at += 2;
        }
        if segments.len() > before.len() || !before.is_empty() {
            found.push(NamedPath { segments, line });
        }
        at
    }

    fn resolve(&self, path: NamedPath, place: Place) -> NamedPath {
        // Names of inline modules do not matter: none of them is a top-level module, and `super` only counts them.
        let mut module = self.module();
        module.extend((0..place.inline_modules).map(|_| String::from("inline")));
        let mut rest = path.segments.as_slice();
        if !matches!(rest.first().map(String::as_str), Some("super" | "self")) {
            return path;
        }
        while let Some(first) = rest.first() {
            match first.as_str() {
                "super" => drop(module.pop()),
                "self" => {}
                _ => break,
            }
            rest = &rest[1..];
        }
        let segments = std::iter::once(String::from("crate")).chain(module).chain(rest.iter().cloned()).collect();
        NamedPath { segments, line: path.line }
    }
}

/// Walks the braces once. A brace opens a module if `mod name` is before it, and a test if a test attribute came since
/// the last item ended.
fn places(tokens: &[Token]) -> Vec<Place> {
    let mut open = vec![Place::default()];
    let mut places = Vec::with_capacity(tokens.len());
    let mut test_ahead = false;
    let mut attribute_end = 0;
    for (at, token) in tokens.iter().enumerate() {
        let here = *open.last().expect("the outermost place is never closed");
        if at >= attribute_end && token.text == "#" && tokens.get(at + 1).is_some_and(|next| next.text == "[") {
            attribute_end = closing_bracket(tokens, at + 1);
            let words = &tokens[at + 2..attribute_end];
            let names = |name: &str| words.iter().any(|word| word.text == name);
            test_ahead |= words.len() == 1 && names("test") || names("cfg") && names("test") && !names("not");
        }
        places.push(Place { is_test: here.is_test || test_ahead, ..here });
        match token.text.as_str() {
            "{" => {
                let is_module = at >= 2 && tokens[at - 2].text == "mod" && tokens[at - 1].is_word();
                open.push(Place {
                    inline_modules: here.inline_modules + usize::from(is_module),
                    is_test: here.is_test || test_ahead,
                    is_const: here.is_const || at >= 1 && tokens[at - 1].text == "const",
                });
                test_ahead = false;
            }
            "}" if open.len() > 1 => drop(open.pop()),
            ";" if at >= attribute_end => test_ahead = false,
            _ => {}
        }
    }
    places
}

fn closing_bracket(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}
