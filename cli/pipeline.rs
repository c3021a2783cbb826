//! From a file's name to a checked graph.

use std::env;
use std::path::{Component, Path, PathBuf};

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
        let mut document = Document::read_mistaken(file, &vars.set, &variable, registry)?;
        document.run = document.run.overridden_by(run);
        let graph = Graph::compile(&document, registry)?;
        Ok(Pipeline { document, graph })
    }
}

/// A path as one would write it in the current folder: without `./`, and without a folder that is left again.
pub(crate) fn from_here(path: &Path) -> PathBuf {
    shortened(path, env::current_dir().ok().as_deref())
}

fn shortened(path: &Path, here: Option<&Path>) -> PathBuf {
    let mut short = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // A folder's parent may be elsewhere if the folder is a link; then the path stays as it is.
            Component::ParentDir if short.file_name().is_some() && !short.is_symlink() => {
                short.pop();
            }
            part => short.push(part),
        }
    }
    let below = here.and_then(|here| short.strip_prefix(here).ok()).filter(|below| !below.as_os_str().is_empty());
    below.map(Path::to_owned).unwrap_or(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_no_detours() {
        let check = |path: &str, expected: &str| {
            assert_eq!(shortened(Path::new(path), Some(Path::new("/here"))), Path::new(expected))
        };
        check("./out/a.jsonl", "out/a.jsonl");
        check("pipelines/../out/a.jsonl", "out/a.jsonl");
        check("../out/a.jsonl", "../out/a.jsonl");
        check("../../a", "../../a");
        check("/a/./b", "/a/b");
        check("/here/out/a.jsonl", "out/a.jsonl");
        check("/here", "/here");
    }
}
