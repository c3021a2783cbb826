//! Rust source as words and signs: comments, strings and characters are gone, so that what is left is code.

/// One word (identifier, keyword, number) or sign, with its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

impl Token {
    pub fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphanumeric() || first == '_')
    }
}

/// Splits `source`. `::` is one token, every other sign is one character.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer { rest: source.chars().collect(), at: 0, line: 1 };
    let mut tokens = Vec::new();
    loop {
        let line = lexer.line;
        match lexer.next() {
            Some(text) if text.is_empty() => {}
            Some(text) => tokens.push(Token { text, line }),
            None => return tokens,
        }
    }
}

struct Lexer {
    rest: Vec<char>,
    at: usize,
    line: usize,
}

impl Lexer {
    /// The next token; an empty one for what is skipped.
    fn next(&mut self) -> Option<String> {
        let first = self.peek(0)?;
        if first == '/' && self.peek(1) == Some('/') {
            self.skip_while(|c| c != '\n');
        } else if first == '/' && self.peek(1) == Some('*') {
            self.skip_block_comment();
        } else if let Some((prefix, hashes)) = self.raw_string() {
            self.skip_raw_string(prefix, hashes);
        } else if first == '"' || (matches!(first, 'b' | 'c') && self.peek(1) == Some('"')) {
            self.skip_while(|c| c != '"');
            self.skip_quoted('"');
        } else if first == 'b' && self.peek(1) == Some('\'') {
            self.bump();
            self.skip_quoted('\'');
        } else if first == '\'' {
            let is_char = self.peek(1) == Some('\\') || self.peek(2) == Some('\'');
            if is_char {
                self.skip_quoted('\'');
            } else {
                self.bump();
                self.skip_while(|c| c.is_alphanumeric() || c == '_');
            }
        } else if first.is_alphanumeric() || first == '_' {
            return Some(self.word());
        } else if first == ':' && self.peek(1) == Some(':') {
            self.bump();
            self.bump();
            return Some("::".into());
        } else {
            self.bump();
            return Some(if first.is_whitespace() { String::new() } else { first.to_string() });
        }
        Some(String::new())
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let passed = self.peek(0)?;
        self.at += 1;
        if passed == '\n' {
            self.line += 1;
        }
        Some(passed)
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.bump();
        }
    }

    fn word(&mut self) -> String {
        let start = self.at;
        self.skip_while(|c| c.is_alphanumeric() || c == '_');
        let word: String = self.rest[start..self.at].iter().collect();
        if word == "r" && self.peek(0) == Some('#') {
            self.bump();
            return self.word();
        }
        word
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                (None, _) => return,
                _ => {
                    self.bump();
                    continue;
                }
            }
            self.bump();
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    /// From the opening quote to behind the closing one.
    fn skip_quoted(&mut self, quote: char) {
        self.bump();
        while let Some(passed) = self.bump() {
            if passed == '\\' {
                self.bump();
            } else if passed == quote {
                return;
            }
        }
    }

    /// `r"`, `r#"`, `br##"` …: the length of the letters and the number of hashes.
    fn raw_string(&self) -> Option<(usize, usize)> {
        let prefix = match (self.peek(0)?, self.peek(1)?) {
            ('r', _) => 1,
            ('b' | 'c', 'r') => 2,
            _ => return None,
        };
        let hashes = (0..).take_while(|ahead| self.peek(prefix + ahead) == Some('#')).count();
        (self.peek(prefix + hashes) == Some('"')).then_some((prefix, hashes))
    }

    fn skip_raw_string(&mut self, prefix: usize, hashes: usize) {
        for _ in 0..prefix + hashes + 1 {
            self.bump();
        }
        while let Some(passed) = self.bump() {
            if passed == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                (0..hashes).for_each(|_| {
                    self.bump();
                });
                return;
            }
        }
    }
}
