//! Taking up a run: what its journal says, and what is to be done now.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::publish::{abandon, clear_spool, gone, publish_closed, publish_sealed};
use super::{Begun, Cut, End, Fingerprint, History, Journal, Moment, OutputRecord, Record, SealedRun, StateFolder};
use crate::config::Journaling;
use crate::durable::{Lock, Log, disk, is_there, partial_path};
use crate::graph::Graph;
use crate::node::{Fault, Place, Role, Sealed, Shard, is_url};

/// The version of the form of journals.
const VERSION: u32 = 1;

/// Whether an earlier run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It is gone on with.
    Resume,
    /// It is forgotten.
    Fresh,
}

/// What is found when a run is started.
pub enum Opened {
    /// All of it is done.
    Finished(Box<Finished>),
    /// There is something to do.
    Ready(Box<Journal>),
}

/// A run that was done before.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// What it has made.
    pub sealed: SealedRun,
    /// When it was done.
    pub at: Moment,
}

/// Whether a run of this pipeline can be gone on with: not if an output is standard output, a pipe or a device, or if
/// the file says that no journal is to be kept.
pub fn can_resume(graph: &Graph) -> bool {
    let is_file = |path: &Path| is_url(path) || fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    let all_files = graph.sinks().all(|sink| {
        let paths = graph.nodes[sink].node.writes(&graph.base);
        !paths.is_empty() && paths.iter().all(|path| is_file(path))
    });
    all_files && is_file(&graph.reject_path()) && graph.run.journal != Some(Journaling::Off)
}

impl Journal {
    /// Opens the journal of a pipeline, or of one of its shards, and locks it.
    ///
    /// # Errors
    /// Another process that works on the run; a pipeline other than the one that was begun; a folder that may not be
    /// written.
    pub fn open(graph: &Graph, shard: Option<Shard>, start: Start, build: &str) -> Result<Opened, Fault> {
        let folder = StateFolder::of(graph, shard);
        folder.create()?;
        let lock = take_lock(&folder, graph, shard)?;
        if start == Start::Fresh {
            abandon(graph, &folder)?;
            folder.clear()?;
        }
        let fingerprint = Fingerprint::of(graph)?;
        let (mut log, lines) = Log::open(&folder.journal())?;
        let mut history = History::of(&lines)?;
        let mut note = None;
        if let Some(found) = &history {
            let changes = found.begun.fingerprint.changes(&fingerprint);
            let anew = match &found.end {
                End::Done(..) if !changes.is_empty() => {
                    Some(format!("the pipeline is another than that of the finished run ({})", changes.join("; ")))
                }
                End::Done(sealed, _) => gone(graph, sealed)?,
                _ if !changes.is_empty() => return Err(changed(graph, &changes)),
                _ => None,
            };
            if let Some(why) = anew {
                note = Some(format!("{why}: beginning anew"));
                drop(log);
                folder.clear()?;
                (log, history) = (Log::open(&folder.journal())?.0, None);
            }
        }
        let mut journal = Journal {
            lock,
            log,
            folder,
            build: build.to_owned(),
            shard,
            n_lines: lines.lines.len(),
            history: None,
            from: None,
            note,
        };
        let Some(mut found) = history else {
            journal.n_lines = 0;
            journal.begin(graph, fingerprint)?;
            return Ok(Opened::Ready(Box::new(journal)));
        };
        if let End::Sealed(sealed) = &found.end {
            // The process died between the names of two outputs, or before the line that says that all have theirs.
            let sealed = sealed.clone();
            publish_sealed(graph, &sealed)?;
            let rejects = graph.base.join(reject_name(graph, shard));
            tidy_rejects(&rejects, sealed.cut.sources.len(), sealed.rejects.is_some())?;
            let done = super::Done { at: Moment::now() };
            journal.append(&Record::Done(done.clone()))?;
            found.end = End::Done(sealed, done);
        }
        if let End::Done(sealed, done) = &found.end {
            let wanted = graph.run.limit.unwrap_or(u64::MAX);
            let limit = found.sessions.last().and_then(|session| session.limit).unwrap_or(u64::MAX);
            if !sealed.limited {
                // The process may have died between the line that says so and this.
                clear_spool(&journal.folder)?;
            }
            if !sealed.limited || wanted <= limit {
                return Ok(Opened::Finished(Box::new(Finished { sealed: sealed.clone(), at: done.at })));
            }
            reopen(graph, sealed, &found)?;
        }
        // The process may have died between a cut and the names of the parts that were complete with it.
        if let Some(cut) = found.last_cut() {
            publish_closed(graph, cut)?;
        }
        let limit = found.sessions.last().and_then(|session| session.limit);
        journal.from = choose(graph, &found, limit == graph.run.limit, &[]);
        journal.history = Some(found);
        journal.take_back_parts(graph)?;
        Ok(Opened::Ready(Box::new(journal)))
    }

    fn begin(&mut self, graph: &Graph, fingerprint: Fingerprint) -> Result<(), Fault> {
        let mut sources: Vec<_> = graph.with_role(Role::Source).map(|node_idx| &graph.nodes[node_idx]).collect();
        sources.sort_by_key(|node| node.source);
        self.append(&Record::Begun(Begun {
            version: VERSION,
            at: Moment::now(),
            name: graph.name.clone(),
            shard: self.shard,
            sources: sources.into_iter().map(|node| node.name.clone()).collect(),
            fingerprint,
        }))
    }

    /// Goes back to the last cut before the first of these items, by source, if that is before where it would go on.
    ///
    /// # Errors
    /// If a part that was complete cannot be taken back.
    pub fn go_back(&mut self, graph: &Graph, before: &[Option<u64>]) -> Result<(), Fault> {
        let Some(history) = &self.history else { return Ok(()) };
        self.from = choose(graph, history, false, before);
        self.take_back_parts(graph)
    }

    /// Makes unfinished outputs of those parts that are to be gone on with: each sink's first that was complete only with a cut
    /// behind the one to go on from.
    fn take_back_parts(&self, graph: &Graph) -> Result<(), Fault> {
        let (Some(history), Some((from, _))) = (&self.history, &self.from) else { return Ok(()) };
        for node in graph.sinks().map(|sink| &graph.nodes[sink]) {
            let mut later = history.cuts.iter().filter(|(_, line_idx, _)| line_idx > from);
            let part = later.find_map(|(_, _, cut)| cut.sinks.get(&node.name)?.closed.first());
            if let Some(part) = part.filter(|part| part.place == Place::File && is_there(&graph.base, part)) {
                copy_back(&graph.base.join(&part.path))?;
            }
        }
        Ok(())
    }
}

/// The last cut that can be gone on from. Where a sink reads several sources one after the other, rows of a later one must
/// not be in it before the earlier one is complete: a limit that is gone makes it incomplete.
fn choose(graph: &Graph, history: &History, same_limit: bool, before: &[Option<u64>]) -> Option<(usize, Cut)> {
    let reads = graph.read_by_sinks();
    let fits = |cut: &Cut| {
        let in_order = |sources: &Vec<u32>| {
            sources.windows(2).all(|pair| {
                let [earlier, later] = [pair[0], pair[1]].map(|source| cut.sources[source as usize]);
                later.done == 0 || earlier.ended
            })
        };
        let is_before =
            |(source, limit): (usize, &Option<u64>)| limit.is_none_or(|limit| cut.sources[source].n_items() <= limit);
        (same_limit || reads.iter().all(in_order)) && before.iter().enumerate().all(is_before)
    };
    let mut cuts = history.cuts.iter().rev();
    cuts.find(|(_, _, cut)| fits(cut)).map(|(_, line_idx, cut)| (*line_idx, cut.clone()))
}

fn take_lock(folder: &StateFolder, graph: &Graph, shard: Option<Shard>) -> Result<Lock, Fault> {
    folder.take_lock()?.map_err(|held| {
        let what = shard.map_or(format!("`{}`", graph.name), |shard| format!("shard {shard} of `{}`", graph.name));
        Fault::transient(format!("{what} is being run already, by {held}"))
            .help("`flowgpu status` shows how far it is; two runs at once would write the same outputs")
    })
}

fn changed(graph: &Graph, changes: &[String]) -> Fault {
    let message = format!("`{}` is another pipeline than the one that was begun: {}", graph.name, changes.join("; "));
    Fault::permanent(message).help("undo the change to go on, or begin anew with `--fresh`")
}

/// Takes away what is not needed once the outputs have their names: parts of the reject file `path`, of which there was
/// one for each source, and an older file where there are no rejects.
///
/// # Errors
/// If something may not be removed.
pub fn tidy_rejects(path: &Path, n_sources: usize, has_rejects: bool) -> Result<(), Fault> {
    (1..n_sources).try_for_each(|source| disk::remove(&partial_path(&super::reject_part(path, source))))?;
    if has_rejects { Ok(()) } else { disk::remove(path) }
}

/// The reject file of a run as a person writes it, from the pipeline file's folder.
pub fn reject_name(graph: &Graph, shard: Option<Shard>) -> String {
    let path = graph.reject_path();
    let name = path.strip_prefix(&graph.base).unwrap_or(&path).display().to_string();
    shard.map_or(name.clone(), |shard| shard.name(&name))
}

/// Whether a sink goes on from what it has kept, and not from its outputs.
fn spools(graph: &Graph, sink: &str) -> bool {
    graph.nodes.iter().any(|node| node.name == sink && node.node.spools())
}

/// Makes an unfinished output of the finished one `path`, which keeps its name until the new one is complete.
fn copy_back(path: &Path) -> Result<(), Fault> {
    fs::copy(path, partial_path(path)).map(drop).map_err(|error| Fault::io("copy", path, &error))
}

/// Makes unfinished outputs of finished ones, to go on with them. Parts that were complete before the end stay as they are.
fn reopen(graph: &Graph, sealed: &SealedRun, found: &History) -> Result<(), Fault> {
    let closed: BTreeSet<&str> = found
        .cuts
        .iter()
        .flat_map(|(_, _, cut)| cut.sinks.values())
        .flat_map(|cut| cut.closed.iter().map(|part: &Sealed| part.path.as_str()))
        .collect();
    let goes_on =
        |output: &&OutputRecord| !spools(graph, &output.node) && !closed.contains(output.sealed.path.as_str());
    for output in sealed.outputs.iter().filter(goes_on) {
        copy_back(&graph.base.join(&output.sealed.path))?;
    }
    let Some(rejects) = &sealed.rejects else { return Ok(()) };
    let path = graph.base.join(&rejects.path);
    let split = || -> io::Result<()> {
        fs::copy(&path, partial_path(&path))?;
        let whole = fs::read(&path)?;
        let mut start = 0;
        for (source, n_bytes) in sealed.cut.rejects.bytes.iter().enumerate() {
            let end = (start + *n_bytes as usize).min(whole.len());
            if source > 0 && end > start {
                fs::write(partial_path(&super::reject_part(&path, source)), &whole[start..end])?;
            }
            start = end;
        }
        Ok(())
    };
    split().map_err(|error| Fault::io("copy", &path, &error))
}
