//! What the journals of shards say: which are done, and whether they fit together.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::Missing;
use crate::durable::{Lines, Lock};
use crate::graph::Graph;
use crate::journal::publish::stays;
use crate::journal::{Cut, End, Fingerprint, History, SealedRun, Slice, StateFolder};
use crate::node::{Fault, Place, Role, Sealed, Shard};

/// A shard that is done.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) shard: Shard,
    pub(super) sealed: SealedRun,
    fingerprint: Fingerprint,
    slices: Vec<Slice>,
}

/// The numbers of shards of which there is something in the folder `whole`, ascending.
pub(super) fn divisions(whole: &Path) -> Result<Vec<u32>, Fault> {
    let failed = |error: std::io::Error| Fault::io("read the folder", whole, &error);
    let entries = match fs::read_dir(whole) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = BTreeSet::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let shard = name.to_str().and_then(|name| {
            let (index, of) = name.split_once("-of-")?;
            let shard = Shard { index: index.parse().ok()?, of: of.parse().ok()? };
            (shard.to_string() == name).then_some(shard)
        });
        found.extend(shard.map(|shard| shard.of));
    }
    Ok(found.into_iter().collect())
}

/// All shards, if all are done and fit together; otherwise those that do not.
///
/// # Errors
/// A journal that cannot be read, or a pipeline that is not the one that the shards were run with.
pub(super) fn finished(graph: &Graph, of: u32) -> Result<Result<Vec<Finished>, Vec<Missing>>, Fault> {
    let (mut shards, mut missing) = (Vec::new(), Vec::new());
    for index in 0..of {
        let shard = Shard { index, of };
        match read(graph, shard)? {
            Ok(finished) => shards.push(finished),
            Err(why) => missing.push(Missing { shard, why }),
        }
    }
    let Some(usual) = most_common(shards.iter().map(|shard| &shard.fingerprint)).cloned() else {
        return Ok(Err(missing));
    };
    let changes = usual.without_files().changes(&Fingerprint::of_nodes(graph));
    if !changes.is_empty() {
        let message = format!("`{}` is another pipeline than the one that its shards were run with", graph.name);
        let fault = Fault::permanent(format!("{message}: {}", changes.join("; ")));
        return Err(fault.help("undo the change, or run all shards again"));
    }
    let usual_slices = most_common(shards.iter().map(|shard| sets(&shard.slices))).unwrap_or_default();
    let mut fitting = Vec::with_capacity(shards.len());
    for shard in shards {
        let changes = usual.changes(&shard.fingerprint);
        let why = if !changes.is_empty() {
            format!("was run with another pipeline than the others: {}", changes.join("; "))
        } else if sets(&shard.slices) != usual_slices {
            "was run when its sources were divided otherwise than for the others".to_owned()
        } else {
            fitting.push(shard);
            continue;
        };
        missing.push(Missing { shard: shard.shard, why });
    }
    missing.sort_by_key(|missing| missing.shard);
    Ok(if missing.is_empty() { Ok(fitting) } else { Err(missing) })
}

/// Those whose outputs are not as long as they were when they were done.
///
/// # Errors
/// A store that does not answer.
pub(super) fn without_files(graph: &Graph, shards: &[Finished]) -> Result<Vec<Missing>, Fault> {
    let mut missing = Vec::new();
    for shard in shards {
        let outputs = shard.sealed.outputs.iter().map(|output| (Some(&*output.node), &output.sealed));
        for (sink, output) in outputs.chain(shard.sealed.rejects.iter().map(|rejects| (None, rejects))) {
            let why = match output.place {
                Place::Object if stays(graph, sink, output)? => None,
                Place::Object => Some(format!("`{}` is gone, or not as it was written", output.path)),
                Place::File | Place::Stream => why_not_there(graph, output),
            };
            if let Some(why) = why {
                missing.push(Missing { shard: shard.shard, why });
                break;
            }
        }
    }
    Ok(missing)
}

fn why_not_there(graph: &Graph, output: &Sealed) -> Option<String> {
    match fs::metadata(graph.base.join(&output.path)) {
        Ok(found) if found.len() == output.bytes => None,
        Ok(found) => Some(format!("`{}` has {} bytes, and {} were written", output.path, found.len(), output.bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Some(format!("`{}` is gone", output.path)),
        Err(error) => Some(format!("`{}` cannot be read: {error}", output.path)),
    }
}

/// What the journal of a shard says: that it is done, or why it cannot be merged.
fn read(graph: &Graph, shard: Shard) -> Result<Result<Finished, String>, Fault> {
    let folder = StateFolder::of(graph, Some(shard));
    let history = History::of(&Lines::read(&folder.journal())?)?;
    let Some(history) = history else { return Ok(Err("was not begun".to_owned())) };
    if history.begun.shard != Some(shard) {
        return Ok(Err("has the journal of another shard".to_owned()));
    }
    let sealed = match &history.end {
        End::Done(sealed, _) if sealed.limited => {
            return Ok(Err("was ended by a limit on its rows".to_owned()));
        }
        End::Done(sealed, _) => sealed.clone(),
        _ => return Ok(Err(unfinished(&folder, &history))),
    };
    let mut slices = Vec::new();
    for source in 0..graph.with_role(Role::Source).count() {
        match Slice::read(&folder.slice(source))? {
            Some(slice) => slices.push(slice),
            None => return Ok(Err("does not say which slice it has read".to_owned())),
        }
    }
    Ok(Ok(Finished { shard, sealed, fingerprint: history.begun.fingerprint, slices }))
}

/// How far a shard is that is not done.
fn unfinished(folder: &StateFolder, history: &History) -> String {
    let progress = match history.last_cut().map(|cut| (cut.rows(), Cut::total(cut))) {
        Some((done, Some(total))) => format!(" at {done} of {total} rows"),
        Some((done, None)) => format!(" at {done} rows"),
        None => String::new(),
    };
    if let Some(held) = Lock::holder(&folder.lock()) {
        let who = held.pid.map_or(held.note, |pid| format!("pid {pid}"));
        return format!("is being run by {who}{progress}");
    }
    match &history.end {
        End::Left(left) => match &left.message {
            Some(message) => format!("has failed{progress}: {message}"),
            None => format!("was interrupted{progress}"),
        },
        End::Open => format!("was killed{progress}"),
        End::Sealed(_) | End::Done(..) => "was killed before its outputs had their names".to_owned(),
    }
}

fn sets(slices: &[Slice]) -> Vec<(u32, u64)> {
    slices.iter().map(|slice| (slice.set, slice.total)).collect()
}

/// The value that comes most often; of several the first.
fn most_common<T: PartialEq>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: Vec<(T, usize)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, n_times)) => *n_times += 1,
            None => counts.push((value, 1)),
        }
    }
    // Of equal ones `max_by_key` would take the last.
    counts.into_iter().rev().max_by_key(|(_, n_times)| *n_times).map(|(value, _)| value)
}
