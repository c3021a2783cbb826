//! What a state folder says, read without being noticed.

use std::fs;

use engine::durable::{Held, Lines, Lock};
use engine::journal::{History, StateFolder};
use engine::node::Fault;

/// A journal and its lock at one moment.
#[derive(Debug)]
pub(super) struct Reading {
    /// Who works on the run.
    pub(super) held: Option<Held>,
    /// The journal; none if nothing is in it yet.
    pub(super) history: Result<Option<History>, Fault>,
    /// Bytes behind the journal's last whole line.
    pub(super) n_torn: u64,
    /// The name of this machine.
    pub(super) host: Option<String>,
}

impl Reading {
    /// Reads a state folder.
    pub(super) fn of(folder: &StateFolder) -> Self {
        // The lock comes first: of a run that ends in between, the end is seen.
        let held = Lock::holder(&folder.lock());
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim_end().to_owned());
        match Lines::read(&folder.journal()) {
            Ok(lines) => Reading { held, history: History::of(&lines), n_torn: lines.n_torn, host },
            Err(fault) => Reading { held, history: Err(fault), n_torn: 0, host },
        }
    }
}
