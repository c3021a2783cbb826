//! One node as it was declared.

use std::fmt;
use std::num::NonZeroUsize;

use super::tree::{Tree, Value};
use super::{Mistake, Span, Spanned};

/// A node of the file: its kind and options, and where each of them stands.
#[derive(Clone)]
pub struct NodeDecl {
    /// The node's name.
    pub name: Spanned<String>,
    /// Its kind, one that exists.
    pub kind: Spanned<String>,
    /// What it reads, never an empty list; `None` is the node written just above.
    pub from: Option<Vec<Input>>,
    /// Its options, checked against the kind's schema; an empty mapping where there is no `with`.
    pub with: serde_yaml::Value,
    /// What a row that cannot be handled does.
    pub on_error: OnError,
    /// Whether rows leave in the order in which they came.
    pub ordered: bool,
    /// How many batches may wait before it.
    pub queue: Option<NonZeroUsize>,
    /// The declaration as it was written, with the places in it.
    pub(super) tree: Tree,
}

/// A node, or its rejects, named in a `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The node's name; whether it exists is for the graph to say.
    pub node: String,
    /// Which of its outputs.
    pub port: Port,
    /// Where it stands.
    pub span: Span,
}

/// The outputs of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// `pixels`: the rows that it makes.
    Rows,
    /// `pixels.rejects`: the rows that it could not handle.
    Rejects,
}

/// What a row that cannot be handled does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnError {
    /// It leaves as a reject.
    #[default]
    Reject,
    /// It ends the run.
    Fail,
}

impl NodeDecl {
    /// Where the value of an option inside `with` stands, by its keys from the outside in, an item of a list by its
    /// number. What is not there gives the nearest place around it: the value that it would be in, `with`, the name.
    pub fn span_of(&self, path: &[&str]) -> Span {
        self.walk(path).1
    }

    /// The same for the option's key.
    pub fn key_span_of(&self, path: &[&str]) -> Span {
        self.walk(path).0
    }

    /// The options passed the schema, and the kind refused them all the same.
    pub fn misfit(&self, error: &str) -> Mistake {
        let message = format!("the options of `{}` do not fit together: {error}", self.name.value);
        Mistake::at(self.key_span_of(&[]), message)
    }

    fn walk(&self, path: &[&str]) -> (Span, Span) {
        let Some(with) = self.tree.entry("with") else {
            return (self.name.span, self.name.span);
        };
        let mut found = (with.key.span, with.key.span);
        let mut tree = &with.value;
        for step in path {
            let next = match &tree.value {
                Value::List(items) => {
                    step.parse().ok().and_then(|index: usize| items.get(index)).map(|item| (item.span, item))
                }
                _ => tree.entry(step).map(|entry| (entry.key.span, &entry.value)),
            };
            let Some((key, value)) = next else { break };
            found = (key, value.span);
            tree = value;
        }
        found
    }
}

/// Without the options, which may hold secrets.
impl fmt::Debug for NodeDecl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("NodeDecl");
        debug.field("name", &self.name.value).field("kind", &self.kind.value).field("from", &self.from);
        debug.finish_non_exhaustive()
    }
}

impl Input {
    /// `pixels` or `pixels.rejects`.
    pub(super) fn parse(text: &str, span: Span) -> Result<Self, Mistake> {
        let Some((node, port)) = text.rsplit_once('.') else {
            return Ok(Self { node: text.to_owned(), port: Port::Rows, span });
        };
        if port == "rejects" {
            return Ok(Self { node: node.to_owned(), port: Port::Rejects, span });
        }
        let mistake = Mistake::at(span, format!("`{node}` has no output `{port}`"));
        Err(mistake.label(format!("write `{node}` for its rows, or `{node}.rejects`")))
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Port::Rows => f.write_str(&self.node),
            Port::Rejects => write!(f, "{}.rejects", self.node),
        }
    }
}
