//! What a kind is told when it is asked for its spec, and when it is built.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Advice, Cancel, NodeSpec, Shard};
use crate::data::{Alloc, Schema};

/// What a kind knows when it says what it will do. No data are read and no device is opened at this stage.
pub struct SpecCx<'a> {
    /// The node's name.
    pub name: &'a str,
    /// The columns of each input: one, except for sources (none) and joins (several).
    pub inputs: &'a [Schema],
    /// The names of the nodes that the inputs come from.
    pub input_names: &'a [&'a str],
    /// What a node downstream wants, for kinds that take advice and asked for it.
    pub advice: Option<&'a Advice>,
    /// The folder that relative paths start from.
    pub base: &'a Path,
}

impl SpecCx<'_> {
    /// The only input.
    ///
    /// # Panics
    /// If there is none: the graph gives every node but sources an input.
    pub fn input(&self) -> &Schema {
        &self.inputs[0]
    }

    /// `path` from the pipeline file's folder.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }
}

/// What a kind gets when it is built for a run.
pub struct BuildCx<'a> {
    /// The node's name.
    pub name: &'a str,
    /// The columns of each input.
    pub inputs: &'a [Schema],
    /// What [`super::Node::spec`] said.
    pub spec: &'a NodeSpec,
    /// What a node downstream wants.
    pub advice: Option<&'a Advice>,
    /// The folder that relative paths start from.
    pub base: &'a Path,
    /// Where tensors for the next node should lie.
    pub alloc: Arc<dyn Alloc>,
    /// The run's wish to end, for work that can take long.
    pub cancel: Cancel,
    /// The part of the run that this is, if it is one.
    pub shard: Option<Shard>,
    /// A folder of its own for what a sink keeps until it is an output, with the run's state. It need not be there.
    pub spool: PathBuf,
    /// Whether an earlier run is gone on with: then a source may have lost its items, which were read before.
    pub is_resumed: bool,
}

impl<'a> BuildCx<'a> {
    /// For a node that is built by itself, outside of a run.
    pub fn alone(
        name: &'a str,
        inputs: &'a [Schema],
        spec: &'a NodeSpec,
        base: &'a Path,
        alloc: Arc<dyn Alloc>,
    ) -> Self {
        let (cancel, spool) = (Cancel::new(), base.join(".flowgpu/alone"));
        BuildCx { name, inputs, spec, advice: None, base, alloc, cancel, shard: None, spool, is_resumed: false }
    }
}

impl BuildCx<'_> {
    /// The only input.
    ///
    /// # Panics
    /// If there is none: the graph gives every node but sources an input.
    pub fn input(&self) -> &Schema {
        &self.inputs[0]
    }

    /// What the output that is written as `path` is called in this run: each shard has outputs of its own.
    pub fn output(&self, path: &str) -> String {
        self.shard.map_or_else(|| path.to_owned(), |shard| shard.name(path))
    }

    /// `path` from the pipeline file's folder.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }
}
