//! The reject file: each rejected row once, in order.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use super::ledger::end_of;
use super::stats::RunStats;
use crate::config::Limit;
use crate::data::{RejectRow, RowPos};
use crate::durable::Partial;
use crate::journal::{RejectCut, reject_part, tidy_rejects};
use crate::node::{Durable, Fault, Sealed};

/// Rejects that wait for the next commit are many from here on.
const MANY: usize = 16 << 10;

/// Collects the rejects that reach the sinks. A row that was rejected on several branches arrives several times and is
/// written once, for the first node in the order of the file.
///
/// They are held in memory until a cut has passed them, so that what is in the file is what the cut says. Each source has
/// a file of its own until the end, so that those of independent sources need not wait for each other.
pub(super) struct RejectLog {
    /// As the user wrote it.
    shown: String,
    path: PathBuf,
    /// Whether the path is a pipe or a device: then there is one file, and the sources' rejects follow each other.
    is_direct: bool,
    limit: Option<Limit>,
    /// The nodes' names, by index.
    nodes: Vec<String>,
    state: Mutex<State>,
}

struct State {
    /// Those that no cut has passed yet.
    pending: BTreeMap<RowPos, Arc<RejectRow>>,
    /// By source.
    files: Vec<Option<Partial>>,
    counts: RejectCut,
}

impl State {
    /// Where rejects lie that have no final name yet.
    fn unfinished(&self) -> Option<PathBuf> {
        self.files.iter().flatten().find_map(Partial::unfinished)
    }
}

/// What a commit has written.
pub(super) struct Rejected {
    pub(super) cut: RejectCut,
    pub(super) durables: Vec<Durable>,
}

impl RejectLog {
    /// A log that will have the name `path` in the end, called `shown`; it goes on from `counts`.
    pub(super) fn open(
        shown: String,
        path: PathBuf,
        limit: Option<Limit>,
        nodes: Vec<String>,
        counts: RejectCut,
    ) -> Result<Self, Fault> {
        let is_direct = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        let files = (0..counts.bytes.len()).map(|_| None).collect();
        let state = State { pending: BTreeMap::new(), files, counts };
        let log = RejectLog { shown, path, is_direct, limit, nodes, state: Mutex::new(state) };
        if !is_direct {
            log.resume()?;
        }
        Ok(log)
    }

    /// Cuts back what an earlier run has written, or removes it.
    fn resume(&self) -> Result<(), Fault> {
        let mut state = self.lock();
        for source in 0..state.files.len() {
            let n_bytes = state.counts.bytes[source];
            if n_bytes == 0 && !crate::durable::partial_path(&self.path_of(source)).exists() {
                continue;
            }
            let mut file = self.file_of(source)?;
            if n_bytes == 0 {
                file.discard()?;
            } else {
                file.resume(n_bytes)?;
                state.files[source] = Some(file);
            }
        }
        Ok(())
    }

    /// These rejects have reached a sink. Says whether so many wait now that they should be written soon.
    pub(super) fn advance(&self, rejects: Vec<Arc<RejectRow>>) -> bool {
        if rejects.is_empty() {
            return false;
        }
        let mut state = self.lock();
        for reject in rejects {
            let first = state.pending.entry(reject.pos).or_insert_with(|| reject.clone());
            if reject.node_index < first.node_index {
                *first = reject;
            }
        }
        state.pending.len() > MANY
    }

    /// Writes the rejects before a cut; the caller makes them durable.
    pub(super) fn commit(&self, frontier: &[RowPos], stats: &RunStats) -> Result<Rejected, Fault> {
        let mut state = self.lock();
        let mut durables = Vec::new();
        for (source, &done) in frontier.iter().enumerate() {
            let n_before = state.counts.total;
            for reject in take(&mut state.pending, done) {
                self.write(&mut state, source, &reject)?;
            }
            let file = if self.is_direct { 0 } else { source };
            let has_written = state.counts.total > n_before;
            if let Some(file) = state.files[file].as_mut().filter(|_| has_written) {
                let (n_bytes, durable) = file.cut()?;
                durables.push(durable);
                state.counts.bytes[source] = n_bytes;
            }
            // In one file the sources' rejects follow each other.
            if self.is_direct && done != end_of(source as u32) {
                break;
            }
        }
        stats.rejects.store(state.counts.total, Ordering::Relaxed);
        self.check_limit(&state, stats.total())?;
        Ok(Rejected { cut: state.counts.clone(), durables })
    }

    fn write(&self, state: &mut State, source: usize, reject: &RejectRow) -> Result<(), Fault> {
        let file = if self.is_direct { 0 } else { source };
        if state.files[file].is_none() {
            state.files[file] = Some(self.file_of(file)?);
        }
        let file = state.files[file].as_mut().expect("it was just opened");
        serde_json::to_writer(&mut *file.buffer(), reject).expect("text and words are JSON");
        file.buffer().push(b'\n');
        file.spill()?;
        let counts = &mut state.counts;
        *counts.by_code.entry(reject.code.to_owned()).or_insert(0) += 1;
        *counts.by_node.entry(self.nodes[reject.node_index].clone()).or_insert(0) += 1;
        counts.total += 1;
        Ok(())
    }

    /// Whether there are too many. A fraction can be told early only when the total is known.
    fn check_limit(&self, state: &State, total: Option<u64>) -> Result<(), Fault> {
        let n_rejects = state.counts.total;
        let exceeded = match (self.limit, total) {
            (Some(limit @ Limit::Count(_)), _) => limit.exceeded(n_rejects, 0),
            (Some(limit), Some(total)) => limit.exceeded(n_rejects, total),
            _ => false,
        };
        if !exceeded {
            return Ok(());
        }
        let limit = self.limit.expect("it was exceeded");
        let seen = state.unfinished().unwrap_or_else(|| self.path.clone());
        Err(Fault::permanent(format!("{n_rejects} rows were rejected, and `max_rejects` allows {limit}"))
            .help(format!("see `{}` for the reasons", seen.display())))
    }

    /// How many there are so far.
    pub(super) fn counts(&self) -> RejectCut {
        self.lock().counts.clone()
    }

    /// Makes one file of all sources' rejects and seals it; `None` without rejects.
    pub(super) fn seal(&self, total: u64) -> Result<Option<Sealed>, Fault> {
        let mut state = self.lock();
        self.check_limit(&state, Some(total))?;
        if state.counts.total == 0 {
            return Ok(None);
        }
        let mut whole = match state.files[0].take() {
            Some(first) => first,
            None => self.file_of(0)?,
        };
        for part in state.files.iter_mut().skip(1).filter_map(Option::take) {
            append(&mut whole, &part)?;
        }
        whole.seal(state.counts.total).map(Some)
    }

    /// After the file has its name: parts go, and without rejects an older file goes too.
    pub(super) fn tidy(&self) -> Result<(), Fault> {
        if self.is_direct {
            return Ok(());
        }
        let state = self.lock();
        tidy_rejects(&self.path, state.files.len(), state.counts.total > 0)
    }

    /// Where it is in the end.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The temporary name, if something lies under it.
    pub(super) fn unfinished(&self) -> Option<PathBuf> {
        self.lock().unfinished()
    }

    fn file_of(&self, source: usize) -> Result<Partial, Fault> {
        Partial::open(&self.shown, &self.path_of(source))
    }

    fn path_of(&self, source: usize) -> PathBuf {
        reject_part(&self.path, source)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Takes the rejects of a source before `done` out.
fn take(pending: &mut BTreeMap<RowPos, Arc<RejectRow>>, done: RowPos) -> Vec<Arc<RejectRow>> {
    let positions: Vec<_> = pending.range(RowPos::start_of(done.source)..done).map(|(pos, _)| *pos).collect();
    positions.iter().filter_map(|pos| pending.remove(pos)).collect()
}

/// Adds what is in a part to the whole.
fn append(whole: &mut Partial, part: &Partial) -> Result<(), Fault> {
    let Some(path) = part.unfinished() else { return Ok(()) };
    let failed = |error: std::io::Error| Fault::io("read", &path, &error);
    let mut file = File::open(&path).map_err(failed)?;
    loop {
        let buffer = whole.buffer();
        let n_bytes = file.by_ref().take(1 << 16).read_to_end(buffer).map_err(failed)?;
        whole.spill()?;
        if n_bytes == 0 {
            return Ok(());
        }
    }
}
