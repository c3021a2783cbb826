//! Making one output of those of the shards: the bytes that one run would have written.
//!
//! Only shards that are done are merged, all of them, of one pipeline and of one division into slices; nothing is
//! believed of an output that its journal does not say. What comes out is written under temporary names and published
//! together, so a merge that dies leaves what was there, and the next one begins anew. Rows are copied as they are: this
//! module knows lines and quotes, no format.

mod bytes;
mod join;
mod manifest;
mod note;
mod shards;

use std::fs;
use std::path::Path;

use super::{End, History, Moment, StateFolder};
use crate::durable::{Lines, Lock, disk, publish};
use crate::graph::Graph;
use crate::journal::publish::publish_of;
use crate::node::{Fault, Parts, Place, Sealed, Shard, normalised};

use join::{Part, join};
use note::Note;
use shards::Finished;

/// What came of trying to merge.
#[derive(Clone, Debug, PartialEq)]
pub enum Merge {
    /// Shards are missing.
    Missing(Vec<Missing>),
    /// All are there, and merged.
    Done(Merged),
}

/// A shard that cannot be merged as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which one.
    pub shard: Shard,
    /// Why: a part of a sentence.
    pub why: String,
}

/// The outputs of all shards together.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// When they were put together.
    pub at: Moment,
    /// Whether that was by an earlier merge, and nothing has changed since.
    pub was_done: bool,
    /// The outputs.
    pub outputs: Vec<Joined>,
    /// The reject file, if there are rejects.
    pub rejects: Option<Sealed>,
}

/// An output of all shards together.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Joined {
    /// The sink.
    pub node: String,
    /// The output: where the parts stay apart, the list of them.
    #[serde(flatten)]
    pub sealed: Sealed,
    /// Whether it is a list of parts, and how many these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<usize>,
}

/// Into how many shards the pipeline was divided, by what there is of them.
///
/// # Errors
/// If there are none, or of several divisions.
pub fn n_shards(graph: &Graph) -> Result<u32, Fault> {
    let folder = StateFolder::of(graph, None);
    let found = shards::divisions(folder.path())?;
    match &found[..] {
        [one] => Ok(*one),
        [] => Err(Fault::permanent(format!("no shard of `{}` has been run", graph.name))
            .detail(format!("looked in `{}`", folder.path().display()))
            .help("run them: `flowgpu run PIPELINE.yaml --shards N --shard I`")),
        several => {
            let several: Vec<_> = several.iter().map(u32::to_string).collect();
            Err(Fault::permanent(format!("`{}` was divided into {} shards", graph.name, several.join(" and ")))
                .help("say which are meant: `--shards N`"))
        }
    }
}

/// Merges the outputs of the pipeline's `of` shards.
///
/// # Errors
/// Another merge or run that is under way; a pipeline that has changed since; outputs that are not as their shards have
/// left them; a full disk and the like.
pub fn merge(graph: &Graph, of: u32) -> Result<Merge, Fault> {
    let folder = StateFolder::of(graph, None);
    folder.create()?;
    let _lock = lock(graph, &folder)?;
    let shards = match shards::finished(graph, of)? {
        Ok(shards) => shards,
        Err(missing) => return Ok(Merge::Missing(missing)),
    };
    let note_path = folder.merged(of);
    let key = Note::key(&shards);
    if let Some(note) = Note::read(&note_path)
        && note.holds(key, graph)?
    {
        return Ok(Merge::Done(note.into_merged()));
    }
    let missing = shards::without_files(graph, &shards)?;
    if !missing.is_empty() {
        return Ok(Merge::Missing(missing));
    }
    refuse_begun(graph, &folder)?;
    let joined = join_all(graph, &shards);
    let (outputs, rejects) = joined.inspect_err(|_| discard(graph))?;
    let files: Vec<_> = outputs.iter().map(|output| output.sealed.clone()).chain(rejects.clone()).collect();
    publish(&graph.base, &files)?;
    for output in outputs.iter().filter(|output| output.sealed.place == Place::Object) {
        publish_of(graph, &output.node, std::slice::from_ref(&output.sealed))?;
    }
    let older = graph.reject_path();
    if rejects.is_none() && older.is_file() {
        disk::remove(&older)?;
    }
    let note = Note { key, at: Moment::now(), outputs, rejects };
    note.write(&note_path)?;
    Ok(Merge::Done(Merged { was_done: false, ..note.into_merged() }))
}

/// An undivided run that is to be gone on with has its unfinished outputs under the names that are needed here.
fn refuse_begun(graph: &Graph, folder: &StateFolder) -> Result<(), Fault> {
    let journal = folder.journal();
    let Some(history) = History::of(&Lines::read(&journal)?)? else { return Ok(()) };
    if matches!(history.end, End::Done(..)) || history.last_cut().is_none() {
        return Ok(());
    }
    let message = format!("an undivided run of `{}` is not done, and would lose what it has", graph.name);
    Err(Fault::permanent(message)
        .help(format!("run it to its end without `--shards`, or remove `{}` to give it up", journal.display())))
}

/// Joins all outputs and the rejects, under temporary names.
fn join_all(graph: &Graph, shards: &[Finished]) -> Result<(Vec<Joined>, Option<Sealed>), Fault> {
    let mut outputs = Vec::new();
    for node_idx in graph.sinks() {
        outputs.push(output(graph, node_idx, shards).map_err(|fault| fault.in_node(&graph.nodes[node_idx].name))?);
    }
    Ok((outputs, rejects(graph, shards)?))
}

/// Takes away what was joined, where not all could be.
fn discard(graph: &Graph) {
    let written = graph.sinks().flat_map(|node_idx| graph.nodes[node_idx].node.writes(&graph.base));
    for path in written.chain([graph.reject_path()]) {
        // What stays is overwritten by the next.
        let _ = fs::remove_file(crate::durable::partial_path(&path));
    }
}

/// The lock of the undivided run, which writes the same outputs.
fn lock(graph: &Graph, folder: &StateFolder) -> Result<Lock, Fault> {
    folder.take_lock()?.map_err(|held| {
        Fault::transient(format!("`{}` is being merged or run already, by {held}", graph.name))
            .help("wait until that has ended")
    })
}

/// Makes one output of those that the shards have of one sink.
fn output(graph: &Graph, node_idx: usize, shards: &[Finished]) -> Result<Joined, Fault> {
    let node = &graph.nodes[node_idx];
    let final_path = node.node.writes(&graph.base).into_iter().next();
    let final_path = final_path.ok_or_else(|| Fault::permanent("what goes to standard output cannot be merged"))?;
    let name = node.name.clone();
    let header = match node.node.parts() {
        Parts::Apart => {
            let sealed = manifest::write(graph, &name, &final_path, shards)?;
            return Ok(Joined { node: name, sealed, lists: Some(shards.len()) });
        }
        Parts::Lines => join::Header::None,
        Parts::Pieces => join::Header::Compressed,
        Parts::LinesAfterHeader => join::Header::First,
    };
    let mut parts = Vec::with_capacity(shards.len());
    for shard in shards {
        let of_sink: Vec<_> = shard.sealed.outputs.iter().filter(|output| output.node == name).collect();
        let [record] = of_sink[..] else {
            return Err(Fault::permanent(format!("shard {} has {} outputs of it", shard.shard.index, of_sink.len())));
        };
        parts.push(Part {
            path: graph.base.join(&record.sealed.path),
            bytes: record.sealed.bytes,
            rows: record.sealed.rows,
            ends: record.ends.iter().map(|(_, end)| *end).collect(),
        });
    }
    let sealed = join(&shown(graph, &final_path), &final_path, &parts, header)?;
    Ok(Joined { node: name, sealed, lists: None })
}

/// Makes one reject file of the shards'; none if none has rejects.
fn rejects(graph: &Graph, shards: &[Finished]) -> Result<Option<Sealed>, Fault> {
    let path = graph.reject_path();
    let part = |shard: &Finished| {
        let sealed = shard.sealed.rejects.as_ref()?;
        let mut end = 0;
        let ends = shard.sealed.cut.rejects.bytes.iter().map(|n_bytes| {
            end += n_bytes;
            end
        });
        let ends = ends.collect();
        Some(Part { path: graph.base.join(&sealed.path), bytes: sealed.bytes, rows: sealed.rows, ends })
    };
    let parts: Vec<_> = shards.iter().filter_map(part).collect();
    if parts.is_empty() {
        return Ok(None);
    }
    join(&shown(graph, &path), &path, &parts, join::Header::None).map(Some)
}

/// A path as one writes it in the pipeline file.
fn shown(graph: &Graph, path: &Path) -> String {
    let base = normalised(&graph.base);
    path.strip_prefix(&base).or_else(|_| path.strip_prefix(&graph.base)).unwrap_or(path).display().to_string()
}
