//! Rows that are suspected of killing the process, and how one is tried where it can do no harm.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::RowPos;
use crate::node::Item;

/// One row to be tried: its item is fetched, and taken through the nodes on its way to `node` and through that one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The node that the row was in.
    pub node: String,
    /// The number of the source that it comes from.
    pub source: u32,
    /// The index of its item there.
    pub index: u64,
    /// Its number in the item.
    pub sub: u32,
    /// Where it comes from.
    pub uri: String,
    /// Its id, where that is another.
    pub id: Option<String>,
    /// Where to fetch it; paths need not be text.
    pub locator: Vec<u8>,
    /// Bytes it is expected to have.
    pub size_hint: u64,
    /// How long it may take.
    pub limit: Duration,
}

impl Trial {
    pub(super) fn new(node: &str, pos: RowPos, item: &Item, limit: Duration) -> Self {
        Trial {
            node: node.to_owned(),
            source: pos.source,
            index: pos.index,
            sub: pos.sub,
            uri: item.uri.clone(),
            id: item.id.clone(),
            locator: item.locator.as_bytes().to_vec(),
            size_hint: item.size_hint,
            limit,
        }
    }

    pub(super) fn item(&self) -> Item {
        let locator = OsString::from_vec(self.locator.clone());
        Item { uri: self.uri.clone(), id: self.id.clone(), locator, size_hint: self.size_hint }
    }
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    /// The row did no harm.
    Survived,
    /// It killed the process that tried it: how, as the rest of a sentence, and what that process said last.
    Died(String, Option<String>),
    /// It could not be tried, and why.
    Untried(String),
}

/// Tries a row in a process of its own.
#[derive(Clone)]
pub struct TryRow(Arc<dyn Fn(&Trial) -> TrialOutcome + Send + Sync>);

impl TryRow {
    /// Trials are what `try_row` does. It is called by one thread at a time, and may take as long as the trial says.
    pub fn new(try_row: impl Fn(&Trial) -> TrialOutcome + Send + Sync + 'static) -> Self {
        TryRow(Arc::new(try_row))
    }

    pub(super) fn call(&self, trial: &Trial) -> TrialOutcome {
        (self.0)(trial)
    }
}

impl fmt::Debug for TryRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TryRow")
    }
}
