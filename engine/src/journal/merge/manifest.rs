//! The list of parts that stay apart.

use std::path::Path;

use serde::Serialize;

use super::shards::Finished;
use super::shown;
use crate::durable::{Partial, partial_path};
use crate::graph::Graph;
use crate::journal::StateFolder;
use crate::node::{Fault, Place, Sealed, is_url, numbered};

/// The list: for whoever reads the parts as one.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    version: u32,
    name: &'a str,
    node: &'a str,
    rows: u64,
    /// In the order of the shards, and of the parts of each.
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
        let files: Vec<_> = shard.sealed.outputs.iter().filter(|output| output.node == node).collect();
        let Some(last) = files.last() else {
            return Err(Fault::permanent(format!("shard {} has no output of it", shard.shard.index)));
        };
        let mut beside = Vec::new();
        for output in &files {
            // A part is the last of its files that gets its name: whoever sees it finds what belongs to it.
            match is_alike(&output.sealed.path, &last.sealed.path) {
                true => {
                    parts.push(PartLine { file: FileLine::of(&output.sealed), beside: std::mem::take(&mut beside) })
                }
                false => beside.push(FileLine::of(&output.sealed)),
            }
        }
    }
    let rows = parts.iter().map(|part| part.file.rows).sum();
    let manifest = Manifest { version: 1, name: &graph.name, node, rows, parts };
    let path = path.with_extension("manifest.json");
    let name = shown(graph, &path);
    let spool = StateFolder::of(graph, None).spool_of(node);
    let local = if is_url(&path) { spool.join("manifest.json") } else { path.clone() };
    let mut out = Partial::open(&name, &local)?;
    serde_json::to_writer_pretty(out.buffer(), &manifest)
        .map_err(|error| Fault::bug(format!("a list of parts is no JSON: {error}")))?;
    out.buffer().push(b'\n');
    let sealed = out.seal(rows)?;
    if !is_url(&path) {
        return Ok(sealed);
    }
    let local = partial_path(&local);
    let spooled = local.strip_prefix(&graph.base).unwrap_or(&local).display().to_string();
    Ok(Sealed { spooled: Some(spooled), place: Place::Object, ..sealed })
}

/// Whether two files are the same but for the number of the part.
fn is_alike(one: &str, other: &str) -> bool {
    let name = |path: &str| {
        path.rsplit('/').next().and_then(numbered).map(|(stem, _, ending)| (stem.to_owned(), ending.to_owned()))
    };
    one == other || name(one).is_some_and(|alike| name(other) == Some(alike))
}
