//! A pipeline with all names resolved and all edges typed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::paths;
use crate::config::{OnError, Port, RunOptions};
use crate::data::Schema;
use crate::node::{Advice, KindRef, Node, NodeSpec, Role};

/// A checked pipeline: every node knows its inputs and the types of its columns. Nothing is placed or opened yet.
///
/// Nodes stand in the order of the file, implicit ones just before the node that they were made for; the index in
/// [`Graph::nodes`] names a node everywhere in the engine.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The pipeline's name.
    pub name: String,
    /// The folder that relative paths start from.
    pub base: PathBuf,
    /// How it is to be run.
    pub run: RunOptions,
    /// The nodes.
    pub nodes: Vec<GraphNode>,
    /// The indices of the nodes, each after those that it reads.
    pub order: Vec<usize>,
    /// Texts that must not be shown: see [`Graph::redact`].
    pub secrets: Vec<String>,
}

/// A node of a [`Graph`].
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: KindRef,
    /// Its options.
    pub node: Arc<dyn Node>,
    /// The same as they were written, variables put in: what another process makes the node from.
    pub with: serde_yaml::Value,
    /// What it reads, in the order of `from`; empty for sources.
    pub inputs: Vec<Edge>,
    /// How several inputs become one.
    pub merge: Merge,
    /// The columns of its inputs: one schema, except for joins, which have one for each input.
    pub schemas: Vec<Schema>,
    /// What it does to the columns.
    pub spec: NodeSpec,
    /// The columns that it gives.
    pub output: Schema,
    /// What a node behind it wants of it.
    pub advice: Option<Advice>,
    /// What a row that cannot be handled does.
    pub on_error: OnError,
    /// Whether rows leave in the order in which they came.
    pub ordered: bool,
    /// How many batches may wait before it, if the file says so.
    pub queue: Option<usize>,
    /// Who wrote it.
    pub written: Written,
    /// Where the rows on its output come from, and how many times each comes.
    pub origins: BTreeMap<RowOrigin, u32>,
    /// The number of a source, in the order of concatenation.
    pub source: Option<u32>,
}

/// What a node reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The index of the node it comes from.
    pub from: usize,
    /// Its rows or its rejects.
    pub port: Port,
}

/// How several inputs become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// There is one, or none.
    Single,
    /// Rows of all inputs follow each other in the order of their positions.
    Union,
    /// Rows of one position become one row.
    Join,
}

/// Who put a node into the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The file's author.
    Explicit,
    /// The compiler: a batch node before a model.
    Implicit,
}

/// Where rows come into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowOrigin {
    /// A source, by its number.
    Source(u32),
    /// The rejects of a node, by its index.
    Rejects(usize),
}

impl Graph {
    /// The consumers of a node's port: their indices, and which of their inputs it is.
    pub fn readers(&self, from: usize, port: Port) -> Vec<(usize, usize)> {
        let edge = Edge { from, port };
        let readers = self.nodes.iter().enumerate().flat_map(|(node_idx, node)| {
            let inputs = node.inputs.iter().enumerate().filter(move |(_, input)| **input == edge);
            inputs.map(move |(input_idx, _)| (node_idx, input_idx))
        });
        readers.collect()
    }

    /// The sources whose rows, or whose rejects, reach the output of node `node_idx`: their numbers.
    pub fn sources_of(&self, node_idx: usize) -> Vec<u32> {
        let mut sources: Vec<_> = self.nodes[node_idx]
            .origins
            .keys()
            .flat_map(|origin| match *origin {
                RowOrigin::Source(source) => vec![source],
                RowOrigin::Rejects(node_idx) => self.sources_of(node_idx),
            })
            .collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// The indices of the sinks.
    pub fn sinks(&self) -> impl Iterator<Item = usize> + '_ {
        self.with_role(Role::Sink)
    }

    /// The sources that each sink reads, by their numbers, in the order of the sinks.
    pub fn read_by_sinks(&self) -> Vec<Vec<u32>> {
        self.sinks().map(|sink| self.sources_of(sink)).collect()
    }

    /// The file of rejected rows: the one that `run.rejects` names, or one beside the first output that is a file.
    pub fn reject_path(&self) -> PathBuf {
        let written = self.sinks().flat_map(|sink| self.nodes[sink].node.writes(&self.base));
        let first = paths::first_file(written);
        paths::rejects(self.run.rejects.as_deref(), &self.name, &self.base, first.as_deref())
    }

    /// The indices of the nodes of a role.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.kind.role() == role).map(|(node_idx, _)| node_idx)
    }

    /// `text` with secrets made unreadable, and what is secret in URLs.
    pub fn redact(&self, text: &str) -> String {
        self.secrets
            .iter()
            .filter(|secret| !secret.is_empty())
            .fold(crate::config::without_secret_parts(text), |text, secret| text.replace(secret.as_str(), "***"))
    }
}
