//! The reject file: each rejected row once, in order.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use super::stats::RunStats;
use crate::config::Limit;
use crate::data::{RejectRow, RowPos};
use crate::node::Fault;

/// Collects the rejects that reach the sinks. A row that was rejected on several branches arrives several times and is
/// written once, for the first node in the order of the file; rows are written when every sink has passed their
/// position, so that the file is in order.
pub(super) struct RejectLog {
    path: PathBuf,
    /// Whether the path is a pipe or a device: it has no temporary name, and is never replaced or removed.
    is_direct: bool,
    limit: Option<Limit>,
    state: Mutex<State>,
}

struct State {
    /// Those that some sink has not passed yet.
    pending: BTreeMap<RowPos, Arc<RejectRow>>,
    /// How far each sink has come.
    upto: Vec<RowPos>,
    file: Option<BufWriter<File>>,
    by_code: BTreeMap<&'static str, u64>,
    by_node: BTreeMap<usize, u64>,
    n_written: u64,
}

/// How many rows were rejected, and where they are.
#[derive(Clone, Debug, Default)]
pub(super) struct RejectCounts {
    pub(super) total: u64,
    pub(super) by_code: BTreeMap<&'static str, u64>,
    pub(super) by_node: BTreeMap<usize, u64>,
}

impl RejectLog {
    /// A log for `n_sinks` sinks that will have the name `path` in the end.
    pub(super) fn new(path: PathBuf, limit: Option<Limit>, n_sinks: usize) -> Self {
        let state = State {
            pending: BTreeMap::new(),
            upto: vec![RowPos::start_of(0); n_sinks],
            file: None,
            by_code: BTreeMap::new(),
            by_node: BTreeMap::new(),
            n_written: 0,
        };
        let is_direct = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        RejectLog { path, is_direct, limit, state: Mutex::new(state) }
    }

    /// Sink number `sink` has passed `upto`, and these rejects have reached it.
    pub(super) fn advance(
        &self,
        sink: usize,
        upto: RowPos,
        rejects: Vec<Arc<RejectRow>>,
        stats: &RunStats,
    ) -> Result<(), Fault> {
        let mut state = self.lock();
        state.upto[sink] = upto;
        for reject in rejects {
            let first = state.pending.entry(reject.pos).or_insert_with(|| reject.clone());
            if reject.node_index < first.node_index {
                *first = reject;
            }
        }
        let frontier = state.upto.iter().copied().min().unwrap_or(RowPos::END);
        if state.pending.first_key_value().is_none_or(|(pos, _)| *pos >= frontier) {
            return Ok(());
        }
        let later = state.pending.split_off(&frontier);
        let ready = std::mem::replace(&mut state.pending, later);
        for reject in ready.values() {
            self.write(&mut state, reject)?;
        }
        stats.rejects.store(state.n_written, Ordering::Relaxed);
        self.check_limit(state.n_written, stats.total())
    }

    fn write(&self, state: &mut State, reject: &RejectRow) -> Result<(), Fault> {
        let partial = self.partial();
        if state.file.is_none() {
            create_folder(&partial)?;
            let file = File::create(&partial).map_err(|error| Fault::io("create", &partial, &error))?;
            state.file = Some(BufWriter::new(file));
        }
        let file = state.file.as_mut().expect("it was just opened");
        let mut line = serde_json::to_vec(reject).expect("text and words are JSON");
        line.push(b'\n');
        file.write_all(&line).map_err(|error| Fault::io("write", &partial, &error))?;
        *state.by_code.entry(reject.code).or_insert(0) += 1;
        *state.by_node.entry(reject.node_index).or_insert(0) += 1;
        state.n_written += 1;
        Ok(())
    }

    /// Whether there are too many. A fraction can be told early only when the total is known.
    fn check_limit(&self, n_rejects: u64, total: Option<u64>) -> Result<(), Fault> {
        let exceeded = match (self.limit, total) {
            (Some(limit @ Limit::Count(_)), _) => limit.exceeded(n_rejects, 0),
            (Some(limit), Some(total)) => limit.exceeded(n_rejects, total),
            _ => false,
        };
        if !exceeded {
            return Ok(());
        }
        let limit = self.limit.expect("it was exceeded");
        Err(Fault::permanent(format!("{n_rejects} rows were rejected, and `max_rejects` allows {limit}"))
            .help(format!("see `{}` for the reasons", self.partial().display())))
    }

    /// Makes durable what was written; says how much that is.
    pub(super) fn sync(&self, total: u64) -> Result<RejectCounts, Fault> {
        let mut state = self.lock();
        let partial = self.partial();
        if let Some(file) = &mut state.file {
            file.flush()
                .and_then(|()| if self.is_direct { Ok(()) } else { file.get_ref().sync_all() })
                .map_err(|error| Fault::io("write", &partial, &error))?;
        }
        self.check_limit(state.n_written, Some(total))?;
        Ok(RejectCounts { total: state.n_written, by_code: state.by_code.clone(), by_node: state.by_node.clone() })
    }

    /// How much was written so far, for a run that has failed.
    pub(super) fn counts(&self) -> RejectCounts {
        let state = self.lock();
        RejectCounts { total: state.n_written, by_code: state.by_code.clone(), by_node: state.by_node.clone() }
    }

    /// Gives the file its final name; without rejects there is none, and an older one goes.
    pub(super) fn publish(&self) -> Result<Option<PathBuf>, Fault> {
        let state = self.lock();
        if self.is_direct {
            return Ok(state.file.as_ref().map(|_| self.path.clone()));
        }
        if state.file.is_none() {
            if self.path.exists() {
                fs::remove_file(&self.path).map_err(|error| Fault::io("remove the old", &self.path, &error))?;
            }
            return Ok(None);
        }
        fs::rename(self.partial(), &self.path).map_err(|error| Fault::io("rename to", &self.path, &error))?;
        let folder = folder_of(&self.path);
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| Fault::io("sync", folder, &error))?;
        Ok(Some(self.path.clone()))
    }

    /// The temporary name.
    pub(super) fn partial(&self) -> PathBuf {
        if self.is_direct {
            return self.path.clone();
        }
        let name = self.path.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
        self.path.with_file_name(format!(".{name}.partial"))
    }

    /// The temporary name, if something lies under it.
    pub(super) fn unfinished(&self) -> Option<PathBuf> {
        (!self.is_direct && self.lock().file.is_some()).then(|| self.partial())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn create_folder(path: &Path) -> Result<(), Fault> {
    let folder = folder_of(path);
    fs::create_dir_all(folder).map_err(|error| Fault::io("create the folder", folder, &error))
}

/// The current folder has no name, and cannot be opened by none.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
