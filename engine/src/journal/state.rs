//! Where a run's state lies.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Moment, host};
use crate::config::Document;
use crate::durable::{Held, Lock};
use crate::graph::Graph;
use crate::node::{Fault, Shard};

/// The folder of a run's state: `.flowgpu/<name>` beside the pipeline file, or `run.state`. Each shard has one below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFolder {
    path: PathBuf,
}

impl StateFolder {
    /// Of a pipeline, or of one of its shards.
    pub fn of(graph: &Graph, shard: Option<Shard>) -> Self {
        let whole = whole(&graph.base, &graph.name, graph.run.state.as_deref());
        let path = shard.map_or(whole.clone(), |shard| whole.join(shard.to_string()));
        StateFolder { path }
    }

    /// Of a pipeline that need not be right in all.
    pub fn of_document(document: &Document) -> Self {
        StateFolder { path: whole(document.folder(), &document.name.value, document.run.state.as_deref()) }
    }

    /// The folder `path`.
    pub fn at(path: PathBuf) -> Self {
        StateFolder { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// The file that is locked as long as a process works on the run.
    pub fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// What source number `source` has listed.
    pub fn listing(&self, source: usize) -> PathBuf {
        self.path.join(format!("listing.{source}.gz"))
    }

    /// What the items of source number `source` were when they were read.
    pub fn stamps(&self, source: usize) -> PathBuf {
        self.path.join(format!("stamps.{source}"))
    }

    /// Which slice of source number `source` is read, if this is a shard's.
    pub fn slice(&self, source: usize) -> PathBuf {
        self.path.join(format!("slice.{source}"))
    }

    /// What was merged, if this is the folder of the whole run and that is divided into so many shards.
    pub fn merged(&self, shards: u32) -> PathBuf {
        self.boundaries(shards).join("merged")
    }

    /// Where the slices begin, if this is the folder of the whole run and that is divided into so many shards.
    pub fn boundaries(&self, shards: u32) -> PathBuf {
        self.path.join(format!("of-{shards:05}"))
    }

    /// What sinks keep until it is an output.
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    /// What the sink `node` keeps until it is an output.
    pub fn spool_of(&self, node: &str) -> PathBuf {
        self.spool().join(node)
    }

    /// The rows that are being decoded.
    pub fn flight(&self) -> PathBuf {
        self.path.join("in-flight")
    }

    /// Makes it.
    ///
    /// # Errors
    /// If it may not be made.
    pub fn create(&self) -> Result<(), Fault> {
        fs::create_dir_all(&self.path).map_err(|error| {
            let fault = Fault::io("create the folder", &self.path, &error);
            fault.help("the progress of a run is kept there; `run: {state: PATH}` puts it elsewhere, `run: {journal: off}` goes without")
        })
    }

    /// Takes the lock, or says who has it.
    ///
    /// # Errors
    /// What keeps the file from being opened.
    pub(super) fn take_lock(&self) -> Result<Result<Lock, Held>, Fault> {
        let note = format!("pid {} on {} since {}\n", std::process::id(), host(), Moment::now());
        Lock::take(&self.lock(), &note)
    }

    /// Removes the folder, with the lock in it as the last thing, and those above it that are there for nothing else.
    ///
    /// # Errors
    /// If something may not be removed.
    pub(super) fn remove(&self, lock: &Lock) -> Result<(), Fault> {
        fs::remove_file(lock.path()).map_err(|error| Fault::io("remove", lock.path(), &error))?;
        let ours =
            self.path.ancestors().take_while(|path| path.components().any(|part| part.as_os_str() == ".flowgpu"));
        // One that holds something else stays.
        ours.map(fs::remove_dir).take_while(Result::is_ok).for_each(drop);
        Ok(())
    }

    /// Removes all but the lock, the journal first: without it the rest means nothing.
    ///
    /// # Errors
    /// If something may not be removed.
    pub fn clear(&self) -> Result<(), Fault> {
        let failed = |path: &Path, error: std::io::Error| Fault::io("remove", path, &error);
        let journal = self.journal();
        if journal.exists() {
            fs::remove_file(&journal).map_err(|error| failed(&journal, error))?;
        }
        let spool = self.spool();
        if spool.exists() {
            fs::remove_dir_all(&spool).map_err(|error| failed(&spool, error))?;
        }
        let entries = fs::read_dir(&self.path).map_err(|error| failed(&self.path, error))?;
        for entry in entries {
            let path = entry.map_err(|error| failed(&self.path, error))?.path();
            if path != self.lock() && path.is_file() {
                fs::remove_file(&path).map_err(|error| failed(&path, error))?;
            }
        }
        Ok(())
    }
}

fn whole(base: &Path, name: &str, state: Option<&str>) -> PathBuf {
    match state {
        Some(state) => base.join(state),
        None => base.join(".flowgpu").join(name),
    }
}
