//! A journal that is being written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Cut, Done, History, InFlight, Left, Moment, Record, SealedRun, Session, StateFolder, Why};
use crate::durable::{Lock, Log};
use crate::node::{Fault, Sealed, Shard};

/// The journal of a run, held by the process that works on it.
#[derive(Debug)]
pub struct Journal {
    /// Held until the journal goes.
    pub(super) lock: Lock,
    pub(super) log: Log,
    pub(super) folder: StateFolder,
    pub(super) build: String,
    pub(super) shard: Option<Shard>,
    pub(super) n_lines: usize,
    pub(super) history: Option<History>,
    /// The cut to go on from, with its line.
    pub(super) from: Option<(usize, Cut)>,
    pub(super) note: Option<String>,
}

impl Journal {
    /// Where the run's state lies.
    pub fn folder(&self) -> &StateFolder {
        &self.folder
    }

    /// Which part of the run this is, if it is a part.
    pub fn shard(&self) -> Option<Shard> {
        self.shard
    }

    /// The cut to go on from; `None` for a run that begins.
    pub fn from(&self) -> Option<&Cut> {
        self.from.as_ref().map(|(_, cut)| cut)
    }

    /// What it said when it was opened; `None` for a run that begins.
    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// The parts of a sink that were complete with the cut to go on from, and with those before it.
    pub fn closed(&self, sink: &str) -> Vec<Sealed> {
        let Some((from, _)) = &self.from else { return Vec::new() };
        let cuts = self.history.iter().flat_map(|history| &history.cuts).filter(|(_, line_idx, _)| line_idx <= from);
        cuts.filter_map(|(_, _, cut)| cut.sinks.get(sink)).flat_map(|cut| cut.closed.iter().cloned()).collect()
    }

    /// What is to be told about how the run was taken up.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Notes that this process takes the run up.
    ///
    /// # Errors
    /// A full disk and the like; so for all that is noted.
    pub fn session(&mut self, limit: Option<u64>, in_flight: Vec<InFlight>) -> Result<(), Fault> {
        let session = Session {
            at: Moment::now(),
            pid: std::process::id(),
            host: host(),
            build: self.build.clone(),
            from: self.from.as_ref().map(|(line_idx, _)| *line_idx),
            resumed: self.from().map_or(0, Cut::rows),
            limit,
            in_flight,
        };
        self.append(&Record::Session(session))
    }

    /// Notes a cut.
    pub fn cut(&mut self, cut: Cut) -> Result<(), Fault> {
        self.append(&Record::Cut(cut.clone()))?;
        self.from = Some((self.n_lines - 1, cut));
        Ok(())
    }

    /// The last cut, or the one that the run went on from.
    pub fn last_cut(&self) -> Option<&Cut> {
        self.from()
    }

    /// Notes that the process ends before the run is done, as far as the disk takes it: what is durable is noted already,
    /// this only tells people.
    pub fn left(&mut self, why: Why, message: Option<String>) {
        if let Err(fault) = self.append(&Record::Left(Left { at: Moment::now(), why, message })) {
            tracing::debug!(%fault, "the journal does not say how the run ended");
        }
    }

    /// Notes that all rows are in the outputs.
    pub fn sealed(&mut self, sealed: SealedRun) -> Result<(), Fault> {
        self.append(&Record::Sealed(sealed))
    }

    /// Notes that the outputs have their names.
    pub fn done(&mut self) -> Result<(), Fault> {
        self.append(&Record::Done(Done { at: Moment::now() }))
    }

    pub(super) fn append(&mut self, record: &Record) -> Result<(), Fault> {
        let line =
            serde_json::to_string(record).map_err(|error| Fault::bug(format!("a record is no JSON: {error}")))?;
        self.log.append(&line)?;
        self.n_lines += 1;
        Ok(())
    }
}

/// A run that ends before it has begun to work leaves no state behind.
impl Drop for Journal {
    fn drop(&mut self) {
        if self.history.is_some() || self.n_lines > 1 {
            return;
        }
        // What cannot be removed says no more than that a run was begun.
        let _ = self.folder.clear().and_then(|()| self.folder.remove(&self.lock));
    }
}

impl SealedRun {
    /// The outputs and the reject file.
    pub fn files(&self) -> Vec<Sealed> {
        self.outputs.iter().map(|output| output.sealed.clone()).chain(self.rejects.clone()).collect()
    }
}

/// The machine's name.
pub(super) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_owned()
}

/// Where the rejects of a source are until the end.
pub fn reject_part(path: &Path, source: usize) -> PathBuf {
    if source == 0 {
        return path.to_owned();
    }
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{source}"));
    path.with_file_name(name)
}
