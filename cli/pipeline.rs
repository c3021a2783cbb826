//! From a file's name to a checked graph.

use std::env;
use std::path::{Path, PathBuf};

use engine::config::{Document, Mistakes, RunOptions};
use engine::graph::Graph;
use engine::node::Registry;

use crate::args::Vars;

/// A pipeline file, read and checked.
pub(crate) struct Pipeline {
    /// What was written.
    pub(crate) document: Document,
    /// What it means.
    pub(crate) graph: Graph,
}

impl Pipeline {
    /// Reads `file`, with values for its variables and options for its run from the command line over its own.
    pub(crate) fn load(file: &Path, vars: &Vars, run: RunOptions, registry: &Registry) -> Result<Self, Mistakes> {
        let variable = |name: &str| env::var(name).ok();
        let mut document = Document::read(file, &vars.set, &variable, registry)?;
        document.run = document.run.overridden_by(run);
        let graph = Graph::compile(&document, registry)?;
        Ok(Pipeline { document, graph })
    }
}

/// `path`, which starts from the pipeline file's folder, as one that starts from the current one: what a person can
/// open.
pub(crate) fn from_here(graph: &Graph, path: &Path) -> PathBuf {
    let path = graph.base.join(path);
    path.strip_prefix(".").map_or_else(|_| path.clone(), Path::to_owned)
}
