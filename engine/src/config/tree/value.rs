//! The tree itself.

use std::sync::Arc;

use super::super::{Span, Spanned};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(in super::super) struct Tree {
    pub value: Value,
    pub span: Span,
    /// The variables that the value was made from.
    pub origins: Vec<Origin>,
    /// The texts from the environment that are in it.
    pub from_env: Vec<Arc<str>>,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(in super::super) enum Value {
    Scalar(Scalar),
    List(Vec<Tree>),
    Map(Vec<Entry>),
    /// Something that was wrong and has been told: whatever is asked of it, it is no further mistake.
    Wrong,
}

/// One line of a map.
#[derive(Clone, Debug)]
pub(in super::super) struct Entry {
    pub key: Spanned<String>,
    pub value: Tree,
}

/// A value without parts, typed as YAML 1.2's core schema does.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Scalar {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    Text(String),
}

/// Where a value came from that does not stand in its own place.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Origin {
    /// From `vars`, written there.
    Var { name: String, span: Span },
    /// From the command line, where it was taken for a number or another typed value, or for text.
    Set { name: String, typed: bool },
    /// From the environment.
    Env { name: String },
}

impl Tree {
    pub fn new(value: Value, span: Span) -> Self {
        Self { value, span, origins: Vec::new(), from_env: Vec::new() }
    }

    pub fn scalar(scalar: Scalar, span: Span) -> Self {
        Self::new(Value::Scalar(scalar), span)
    }

    pub fn as_map(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Tree]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(Scalar::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Scalar(Scalar::Null))
    }

    /// The line of a map with that key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.as_map()?.iter().find(|entry| entry.key.value == key)
    }

    /// The value in a map under that key.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// About how much memory it takes.
    pub fn n_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.value {
                Value::Scalar(Scalar::Text(text)) => text.len(),
                Value::List(items) => items.iter().map(Tree::n_bytes).sum(),
                Value::Map(entries) => entries.iter().map(|entry| entry.key.value.len() + entry.value.n_bytes()).sum(),
                Value::Scalar(_) | Value::Wrong => 0,
            }
    }

    /// Takes over where a part of this value came from.
    pub fn take_history(&mut self, part: Tree) {
        // A few origins are all that a message can use; the environment's texts are each needed once.
        for origin in part.origins {
            if self.origins.len() < 3 && !self.origins.contains(&origin) {
                self.origins.push(origin);
            }
        }
        for value in part.from_env {
            if !self.from_env.contains(&value) {
                self.from_env.push(value);
            }
        }
    }

    /// The same for deserialising.
    pub fn to_yaml(&self) -> serde_yaml::Value {
        use serde_yaml::Value as Yaml;
        match &self.value {
            Value::Scalar(Scalar::Bool(value)) => Yaml::Bool(*value),
            Value::Scalar(Scalar::Integer(value)) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => Yaml::Number(value.into()),
                (_, Ok(value)) => Yaml::Number(value.into()),
                _ => Yaml::Number((*value as f64).into()),
            },
            Value::Scalar(Scalar::Number(value)) => Yaml::Number((*value).into()),
            Value::Scalar(Scalar::Text(text)) => Yaml::String(text.clone()),
            Value::List(items) => Yaml::Sequence(items.iter().map(Tree::to_yaml).collect()),
            Value::Map(entries) => {
                let entry = |entry: &Entry| (Yaml::String(entry.key.value.clone()), entry.value.to_yaml());
                Yaml::Mapping(entries.iter().map(entry).collect())
            }
            Value::Scalar(Scalar::Null) | Value::Wrong => Yaml::Null,
        }
    }
}
