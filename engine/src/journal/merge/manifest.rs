//! The list of parts that stay apart.

use std::path::Path;

use serde::Serialize;

use super::shards::Finished;
use super::shown;
use crate::durable::Partial;
use crate::graph::Graph;
use crate::node::{Fault, Sealed};

/// The list: for whoever reads the parts as one.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    version: u32,
    name: &'a str,
    node: &'a str,
    rows: u64,
    /// In the order of the shards.
    parts: Vec<PartLine<'a>>,
}

/// What one shard has written.
#[derive(Debug, Serialize)]
struct PartLine<'a> {
    #[serde(flatten)]
    file: FileLine<'a>,
    /// Files that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<FileLine<'a>>,
}

#[derive(Debug, Serialize)]
struct FileLine<'a> {
    /// From the pipeline file's folder.
    path: &'a str,
    rows: u64,
    bytes: u64,
}

impl<'a> FileLine<'a> {
    fn of(sealed: &'a Sealed) -> Self {
        FileLine { path: &sealed.path, rows: sealed.rows, bytes: sealed.bytes }
    }
}

/// Writes the list of what the shards have of the sink `node`, whose output would be `path`, beside that:
/// `embeddings.manifest.json` for `embeddings.npy`.
pub(super) fn write(graph: &Graph, node: &str, path: &Path, shards: &[Finished]) -> Result<Sealed, Fault> {
    let mut parts = Vec::with_capacity(shards.len());
    for shard in shards {
        // The output itself is the last that gets its name: whoever sees it finds what belongs to it.
        let mut files: Vec<_> = shard.sealed.outputs.iter().filter(|output| output.node == node).collect();
        let Some(last) = files.pop() else {
            return Err(Fault::permanent(format!("shard {} has no output of it", shard.shard.index)));
        };
        let beside = files.into_iter().map(|output| FileLine::of(&output.sealed)).collect();
        parts.push(PartLine { file: FileLine::of(&last.sealed), beside });
    }
    let rows = parts.iter().map(|part| part.file.rows).sum();
    let manifest = Manifest { version: 1, name: &graph.name, node, rows, parts };
    let path = path.with_extension("manifest.json");
    let mut out = Partial::open(&shown(graph, &path), &path)?;
    serde_json::to_writer_pretty(out.buffer(), &manifest)
        .map_err(|error| Fault::bug(format!("a list of parts is no JSON: {error}")))?;
    out.buffer().push(b'\n');
    out.seal(rows)
}
