//! From the tree to the [`Document`], with all mistakes on the way.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::check::{Owner, check};
use super::layout::{FILE, NODE, RUN};
use super::tree::{Entry, Scalar, Tree, Value, build};
use super::variables::{Environment, Variables};
use super::{
    Document, Input, KindSchemas, Mistake, Mistakes, NodeDecl, OnError, RunOptions, Source, Span, Spanned, list,
    nearest,
};

/// What `source` says, with all that is wrong with it; only that if its nodes and their inputs are not known.
pub(super) fn compile(
    source: Arc<Source>,
    overrides: &[(String, String)],
    env: Environment<'_>,
    kinds: &dyn KindSchemas,
) -> Result<Document, Mistakes> {
    let (tree, mistakes) = build(&source);
    let mut compiler = Compiler { kinds, mistakes };
    let Some(tree) = tree else {
        let mut all = Mistakes::new(source);
        all.extend(compiler.mistakes);
        return Err(all);
    };
    let mut variables = Variables::new(&source, tree.get("vars"), overrides, env);
    let parts = compiler.document(tree, &mut variables);
    let Variables { secrets, mistakes, .. } = variables;
    let mut all = Mistakes::hiding(Arc::clone(&source), secrets.clone());
    all.extend(compiler.mistakes);
    all.extend(mistakes);
    match parts {
        Some((name, run, nodes)) => Ok(Document { name, run, nodes, source, secrets, told: all }),
        // Without one of its nodes there has been a mistake.
        None => Err(all),
    }
}

struct Compiler<'a> {
    kinds: &'a dyn KindSchemas,
    mistakes: Vec<Mistake>,
}

type Parts = (Spanned<String>, RunOptions, Vec<NodeDecl>);

impl Compiler<'_> {
    fn document(&mut self, mut tree: Tree, variables: &mut Variables<'_>) -> Option<Parts> {
        if let Value::Map(entries) = &mut tree.value {
            entries.retain(|entry| !entry.key.starts_with("x-"));
            for entry in entries.iter_mut().filter(|entry| entry.key.value != "vars") {
                variables.expand(&mut entry.value);
            }
        }
        let start = Span::new(tree.span.start, tree.span.start);
        let start = tree.as_map().and_then(|entries| entries.first()).map_or(start, |first| first.key.span);
        let owner = Owner { noun: "key", whose: "", span: start };
        if tree.as_map().is_none() {
            let label = "a pipeline is a map with `name` and `nodes`";
            self.mistakes.push(Mistake::at(tree.span, "this is no pipeline").label(label));
            return None;
        }
        self.mistakes.extend(check(&FILE, &tree, owner));
        let name = tree.entry("name").and_then(|entry| self.pipeline_name(entry));
        let run = self.run(tree.entry("run"));
        let nodes = tree.get("nodes").and_then(Tree::as_map).unwrap_or_default();
        let n_nodes = nodes.len();
        let nodes: Vec<NodeDecl> = nodes.iter().filter_map(|entry| self.node(entry)).collect();
        let name = name.unwrap_or_else(|| Spanned::new(String::new(), start));
        (nodes.len() == n_nodes).then(|| (name, run.unwrap_or_default(), nodes))
    }

    fn pipeline_name(&mut self, entry: &Entry) -> Option<Spanned<String>> {
        let text = entry.value.as_text()?;
        self.check_name(text, "", entry.value.span, "a pipeline");
        Some(Spanned::new(text.to_owned(), entry.value.span))
    }

    /// Names become parts of file names, of edges' names and of pictures.
    fn check_name(&mut self, name: &str, besides: &str, span: Span, what: &str) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || besides.contains(c);
        if (1..=64).contains(&name.len()) && name.chars().all(fits) {
            return;
        }
        let mistake = Mistake::at(span, format!("`{name}` cannot name {what}"));
        let fitting: String = name.to_lowercase().chars().map(|c| if fits(c) { c } else { '-' }).collect();
        let fitting = fitting.trim_matches('-');
        let mistake = match (1..=64).contains(&fitting.len()) {
            true => mistake.label(format!("write `{fitting}`")),
            false => mistake,
        };
        let letters = if besides.is_empty() { "a–z, 0–9 and `-`" } else { "a–z, 0–9, `-` and `_`" };
        self.mistakes.push(mistake.note(format!("names are made of {letters}, at most 64 of them")));
    }

    fn run(&mut self, entry: Option<&Entry>) -> Option<RunOptions> {
        let Some(entry) = entry.filter(|entry| entry.value.as_map().is_some()) else {
            return Some(RunOptions::default());
        };
        let owner = Owner { noun: "key", whose: " in `run`", span: entry.key.span };
        let mistakes = check(&RUN, &entry.value, owner);
        if !mistakes.is_empty() {
            self.mistakes.extend(mistakes);
            return None;
        }
        match serde_yaml::from_value(entry.value.to_yaml()) {
            Ok(options) => Some(options),
            Err(error) => {
                self.mistakes.push(Mistake::at(entry.key.span, format!("`run` does not fit together: {error}")));
                None
            }
        }
    }

    fn node(&mut self, entry: &Entry) -> Option<NodeDecl> {
        let Entry { key: name, value: tree } = entry;
        self.check_name(name, "_", name.span, "a node");
        if tree.as_map().is_none() {
            if !matches!(tree.value, Value::Wrong) {
                let mistake = Mistake::at(tree.span, format!("node `{}` is no map", name.value));
                self.mistakes.push(mistake.label(format!("write `{{kind: {}}}`", tree.as_text().unwrap_or("…"))));
            }
            return None;
        }
        let before = self.mistakes.len();
        let whose = format!(" in node `{}`", name.value);
        self.mistakes.extend(check(&NODE, tree, Owner { noun: "key", whose: &whose, span: name.span }));
        let kind = tree.get("kind").and_then(|kind| Some(Spanned::new(kind.as_text()?.to_owned(), kind.span)));
        let from = self.from(tree.get("from"));
        let is_placed = self.mistakes.len() == before;
        let with = tree.entry("with");
        if let Some(kind) = &kind {
            self.with(kind, with, name.span);
        }
        // Mistaken options do not keep others from reading it.
        if !is_placed || self.kinds.schema(kind.as_deref()?).is_none() {
            return None;
        }
        Some(NodeDecl {
            name: name.clone(),
            kind: kind?,
            from: from?,
            with: with
                .filter(|with| !with.value.is_null())
                .map_or_else(|| serde_yaml::Value::Mapping(serde_yaml::Mapping::new()), |with| with.value.to_yaml()),
            on_error: match tree.get("on_error").and_then(Tree::as_text) {
                Some("fail") => OnError::Fail,
                _ => OnError::Reject,
            },
            ordered: !matches!(tree.get("ordered").map(|tree| &tree.value), Some(Value::Scalar(Scalar::Bool(false)))),
            queue: match tree.get("queue").map(|tree| &tree.value) {
                Some(Value::Scalar(Scalar::Integer(n))) => usize::try_from(*n).ok().and_then(NonZeroUsize::new),
                _ => None,
            },
            tree: tree.clone(),
        })
    }

    /// The options of a node by the schema of its kind.
    fn with(&mut self, kind: &Spanned<String>, with: Option<&Entry>, name: Span) {
        let Some(schema) = self.kinds.schema(kind) else {
            let mistake = unknown_kind(kind, &self.kinds.names());
            return self.mistakes.push(mistake);
        };
        let whose = format!(" for `{}`", kind.value);
        let span = with.map_or(name, |with| with.key.span);
        let nothing = Tree::new(Value::Map(Vec::new()), span);
        let tree = match with.map(|with| &with.value) {
            Some(tree) if !tree.is_null() => tree,
            _ => &nothing,
        };
        // That `with` must be a map has been told.
        if matches!(tree.value, Value::Map(_)) {
            self.mistakes.extend(check(schema, tree, Owner { noun: "option", whose: &whose, span }));
        }
    }

    fn from(&mut self, from: Option<&Tree>) -> Option<Option<Vec<Input>>> {
        let Some(from) = from else { return Some(None) };
        let items = from.as_list().unwrap_or(std::slice::from_ref(from));
        let mut inputs: Vec<Input> = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        for item in items {
            match Input::parse(item.as_text()?, item.span) {
                Ok(input) => {
                    if let Some(first) = seen.insert(input.to_string(), input.span) {
                        let mistake = Mistake::at(input.span, format!("`{input}` is in this `from` twice"));
                        self.mistakes.push(mistake.label("the second").also(first, "the first"));
                    }
                    inputs.push(input);
                }
                Err(mistake) => self.mistakes.push(mistake),
            }
        }
        Some(Some(inputs))
    }
}

fn unknown_kind(kind: &Spanned<String>, names: &[&str]) -> Mistake {
    let mistake = Mistake::at(kind.span, format!("unknown kind `{}`", kind.value));
    let role = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let own = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let near = nearest(kind, names.iter().copied()).or_else(|| {
        // `files` for `source.files`, `model.image` for `decode.image`.
        let mut same = names.iter().copied().filter(|name| own(name) == own(kind));
        same.next().filter(|_| same.next().is_none())
    });
    let mistake = match near {
        Some(near) => mistake.label(format!("did you mean `{near}`?")),
        None => mistake,
    };
    let same_role: Vec<&str> = names.iter().copied().filter(|name| role(name) == role(kind)).collect();
    match same_role.is_empty() {
        true => mistake.note(format!("kinds: {}", list(names.iter().copied()))),
        false => mistake.note(format!("{} kinds: {}", role(kind), list(same_role))),
    }
}
