//! `vars`, `--set` and the environment, and their values put where they are referred to.

use std::sync::Arc;

use indexmap::IndexMap;

use super::reference::{Piece, is_name, pieces};
use super::secrets::Secrets;
use super::tree::{Entry, Origin, Scalar, Tree, Value, build, plain_scalar};
use super::{Mistake, Source, Span, list};

/// What all references together may come to, in bytes: variables made of variables grow by powers.
const MOST_BYTES: usize = 16 << 20;

/// After so many mistakes no more names are compared: each takes as long as there are variables.
const MOST_SUGGESTIONS: usize = 500;

/// What names outside the file stand for.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The variables of one file.
pub(super) struct Variables<'a> {
    source: &'a Source,
    env: Environment<'a>,
    values: IndexMap<String, Tree>,
    n_bytes: usize,
    /// What `${env:…}` gave outside of paths.
    pub secrets: Secrets,
    /// What was wrong.
    pub mistakes: Vec<Mistake>,
}

impl<'a> Variables<'a> {
    /// Reads `vars`, in which a variable may refer to those above it, and puts `--set` in their place.
    pub fn new(source: &'a Source, vars: Option<&Tree>, overrides: &[(String, String)], env: Environment<'a>) -> Self {
        let secrets = Secrets::default();
        let mut variables = Self { source, env, values: IndexMap::new(), n_bytes: 0, secrets, mistakes: Vec::new() };
        for Entry { key, value } in vars.and_then(Tree::as_map).unwrap_or_default() {
            if !is_name(key) {
                let mistake = Mistake::at(key.span, format!("`{}` cannot name a variable", key.value));
                let label = "letters, digits, `_` and `-`, beginning with a letter";
                variables.mistakes.push(mistake.label(label));
            }
            let given = overrides.iter().rev().find(|(name, _)| *name == key.value);
            let value = match given {
                Some((name, text)) => variables.given(name, text, value),
                None => {
                    let mut value = value.clone();
                    variables.put_in(&mut value);
                    value
                }
            };
            variables.values.insert(key.value.clone(), value);
        }
        for (name, _) in overrides {
            if !variables.values.contains_key(name) {
                let mistake = variables.no_such_variable(name);
                variables.mistakes.push(mistake);
            }
        }
        variables
    }

    /// What `--set name=text` makes of a variable that the file declares.
    fn given(&mut self, name: &str, text: &str, declared: &Tree) -> Tree {
        let in_quotes = self.source.slice(declared.span).starts_with(['"', '\'']);
        let text_in_quotes = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let value = match (&declared.value, text_in_quotes) {
            (_, Some(text)) => Value::Scalar(Scalar::Text(text.to_owned())),
            // What the file has in quotes is a text for a reason: `--set label=1` then means the label "1".
            (Value::Scalar(_), None) if in_quotes && !self.source.slice(declared.span).contains("${") => {
                Value::Scalar(Scalar::Text(text.to_owned()))
            }
            (Value::List(_) | Value::Map(_), None) if text.starts_with(['[', '{']) => {
                match build(&Arc::new(Source::new("--set", text))) {
                    (Some(tree), mistakes) if mistakes.is_empty() => tree.value,
                    _ => {
                        let message = format!("`--set {name}={text}` is not valid YAML");
                        self.mistakes.push(Mistake::nowhere(message));
                        Value::Wrong
                    }
                }
            }
            _ => Value::Scalar(plain_scalar(text)),
        };
        let typed = matches!(&value, Value::Scalar(scalar) if !matches!(scalar, Scalar::Text(_)));
        let mut tree = Tree::new(value, declared.span);
        tree.origins.push(Origin::Set { name: name.to_owned(), typed });
        tree
    }

    fn no_such_variable(&self, name: &str) -> Mistake {
        let mistake = Mistake::nowhere(format!("`--set {name}=…` names no variable of this file"));
        let mistake = mistake.suggest(name, self.names());
        match self.values.is_empty() {
            true => mistake.note("there are no `vars`"),
            false => mistake.note(self.known()),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    fn known(&self) -> String {
        format!("variables: {}", list(self.names()))
    }

    /// Puts values in for all references below `tree`, and takes note of secrets.
    pub fn expand(&mut self, tree: &mut Tree) {
        self.put_in(tree);
        self.note_secrets(tree, None);
    }

    fn note_secrets(&mut self, tree: &Tree, key: Option<&str>) {
        // Where something lies is no secret: graphs and logs must be able to name files.
        if key != Some("path") {
            for value in &tree.from_env {
                self.secrets.insert(value);
            }
        }
        match &tree.value {
            Value::List(items) => items.iter().for_each(|item| self.note_secrets(item, key)),
            Value::Map(entries) => entries.iter().for_each(|entry| self.note_secrets(&entry.value, Some(&entry.key))),
            Value::Scalar(_) | Value::Wrong => {}
        }
    }

    fn put_in(&mut self, tree: &mut Tree) {
        match &mut tree.value {
            Value::List(items) => items.iter_mut().for_each(|item| self.put_in(item)),
            Value::Map(entries) => entries.iter_mut().for_each(|entry| self.put_in(&mut entry.value)),
            Value::Scalar(Scalar::Text(text)) if text.contains('$') => {
                let text = std::mem::take(text);
                *tree = self.expanded(&text, tree.span);
            }
            Value::Scalar(_) | Value::Wrong => {}
        }
    }

    /// The value of a text with references, written at `span`.
    fn expanded(&mut self, text: &str, span: Span) -> Tree {
        let pieces = pieces(text);
        let places = self.places(&pieces, span);
        let mut places = places.into_iter();
        if let [Piece::Reference { inside, .. }] = pieces[..] {
            let mut tree = self.lookup(inside, places.next().unwrap_or(span));
            tree.span = span;
            return tree;
        }
        let mut result = Tree::new(Value::Wrong, span);
        let mut joined = String::new();
        let mut wrong = false;
        for piece in &pieces {
            match piece {
                Piece::Text(text) => joined.push_str(text),
                Piece::Dollar => joined.push('$'),
                Piece::Open { .. } => {
                    let mistake = Mistake::at(places.next().unwrap_or(span), "`${` without a `}`");
                    self.mistakes.push(mistake.label("write `$$` for a `$` that stands for itself"));
                    wrong = true;
                }
                Piece::Reference { inside, .. } => {
                    let place = places.next().unwrap_or(span);
                    let tree = self.lookup(inside, place);
                    match &tree.value {
                        Value::Scalar(Scalar::Text(text)) => joined.push_str(text),
                        Value::Scalar(Scalar::Bool(value)) => joined.push_str(&value.to_string()),
                        Value::Scalar(Scalar::Integer(value)) => joined.push_str(&value.to_string()),
                        Value::Scalar(Scalar::Number(value)) => joined.push_str(&value.to_string()),
                        Value::Wrong => wrong = true,
                        Value::Scalar(Scalar::Null) | Value::List(_) | Value::Map(_) => {
                            let message = format!("`${{{inside}}}` cannot stand inside a text");
                            let mistake = Mistake::at(place, message).label("only a text, number or boolean can");
                            self.mistakes
                                .push(tree.origins.iter().fold(mistake, |mistake, origin| origin.tell(mistake)));
                            wrong = true;
                        }
                    }
                    result.take_history(tree);
                }
            }
        }
        if !wrong {
            result.value = Value::Scalar(Scalar::Text(joined));
        }
        result
    }

    fn lookup(&mut self, inside: &str, place: Span) -> Tree {
        if self.n_bytes > MOST_BYTES {
            return Tree::new(Value::Wrong, place);
        }
        if let Some(name) = inside.strip_prefix("env:") {
            return self.environment(name, place);
        }
        if let Some((name, value)) = self.values.get_key_value(inside) {
            self.n_bytes += value.n_bytes();
            if self.n_bytes > MOST_BYTES {
                let message = format!("the variables come to more than {} MiB", MOST_BYTES >> 20);
                self.mistakes.push(Mistake::at(place, message));
                return Tree::new(Value::Wrong, place);
            }
            let mut tree = value.clone();
            if tree.origins.is_empty() {
                tree.origins.push(Origin::Var { name: name.clone(), span: value.span });
            }
            return tree;
        }
        let mistake = if inside.is_empty() {
            Mistake::at(place, "`${}` names no variable")
        } else if is_name(inside) {
            Mistake::at(place, format!("unknown variable `{inside}`"))
        } else {
            Mistake::at(place, format!("`{inside}` cannot name a variable"))
        };
        if self.mistakes.len() > MOST_SUGGESTIONS {
            self.mistakes.push(mistake);
            return Tree::new(Value::Wrong, place);
        }
        let mistake = mistake.suggest(inside, self.names());
        let mistake = match self.values.is_empty() {
            true => mistake.note(format!("there are no `vars` yet: write `vars: {{{inside}: …}}` above `nodes`")),
            false => mistake.note(self.known()),
        };
        self.mistakes.push(mistake);
        Tree::new(Value::Wrong, place)
    }

    fn environment(&mut self, name: &str, place: Span) -> Tree {
        let Some(text) = (self.env)(name) else {
            let mistake = Mistake::at(place, format!("the environment variable `{name}` is not set"));
            self.mistakes.push(mistake.label("set it before the run"));
            return Tree::new(Value::Wrong, place);
        };
        let mut tree = Tree::scalar(plain_scalar(&text), place);
        tree.origins.push(Origin::Env { name: name.to_owned() });
        tree.from_env.push(Arc::from(text));
        tree
    }

    /// Where each reference of a text stands in the file. The text may have been folded or unescaped, so they are
    /// looked for in what was written; where that does not agree, the whole value has to do.
    fn places(&self, read: &[Piece<'_>], span: Span) -> Vec<Span> {
        let inside = |piece: &Piece<'_>| match piece {
            Piece::Reference { inside, .. } => Some(Some((*inside).to_owned())),
            Piece::Open { .. } => Some(None),
            _ => None,
        };
        let raw = self.source.slice(span);
        let written = pieces(raw);
        let same = written.iter().filter_map(inside).eq(read.iter().filter_map(inside));
        let place = |piece: &Piece<'_>| match piece {
            Piece::Reference { inside, at } => Some(Span::new(span.start + at, span.start + at + inside.len() + 3)),
            Piece::Open { at } => Some(Span::new(span.start + at, span.start + at + 2)),
            _ => None,
        };
        if same { written.iter().filter_map(place).collect() } else { Vec::new() }
    }
}

impl Origin {
    /// Adds to a mistake about the value where it came from.
    pub fn tell(&self, mistake: Mistake) -> Mistake {
        match self {
            Self::Var { name, span } => mistake.also(*span, format!("`${{{name}}}` is set here")),
            Self::Set { name, typed } => {
                let mistake = mistake.note(format!("`${{{name}}}` was set by `--set {name}=…`"));
                match typed {
                    true => mistake.note(format!("`--set '{name}=\"…\"'` makes it a text")),
                    false => mistake,
                }
            }
            Self::Env { name } => mistake.note(format!("`${{env:{name}}}` is read from the environment")),
        }
    }
}
