//! The lines of a journal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Fingerprint, Moment};
use crate::data::RowPos;
use crate::node::{Sealed, Shard, SinkPos};

/// One line. A journal is `begun`, then for each process that worked on the run a `session`, its `cut`s, and `left` if it
/// could still say so; in the end `sealed` and `done`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The first line: what is run.
    Begun(Begun),
    /// A process takes the run up.
    Session(Session),
    /// A consistent state of the whole run, durable.
    Cut(Cut),
    /// A process ends before the run is done.
    Left(Left),
    /// All rows are in the outputs, which are about to get their final names.
    Sealed(SealedRun),
    /// Outputs have their final names.
    Done(Done),
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// The version of this form of a journal.
    pub version: u32,
    /// When.
    pub at: Moment,
    /// The pipeline's name.
    pub name: String,
    /// Which part of the run this is, if it is a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The nodes that are sources, by their numbers.
    pub sources: Vec<String>,
    /// What decides the results.
    pub fingerprint: Fingerprint,
}

/// A process that works on the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// When it began.
    pub at: Moment,
    /// Its number.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// The program's version.
    pub build: String,
    /// The line of the cut that it goes on from, from 0 on: later cuts are given up. The first session has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// Rows of all sources that were done before it.
    pub resumed: u64,
    /// Rows of each source after which it stops, if it was told to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What the session before it was decoding when it died, if it died.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<InFlight>,
}

/// A row that a process was working on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InFlight {
    /// The node.
    pub node: String,
    /// The number of the source that the row comes from.
    pub source: u32,
    /// The index of its item in that source.
    pub index: u64,
    /// Its number in the item.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sub: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A consistent state of the whole run: every output holds exactly what came of the rows before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// When.
    pub at: Moment,
    /// How far each source has come, by number.
    pub sources: Vec<SourceCut>,
    /// How far each sink has come, by node.
    pub sinks: BTreeMap<String, SinkCut>,
    /// Rejected rows.
    pub rejects: RejectCut,
}

impl Cut {
    /// Rows of all sources that are done.
    pub fn rows(&self) -> u64 {
        self.sources.iter().map(|source| source.done).sum()
    }

    /// Rows that all sources have, if that is known.
    pub fn total(&self) -> Option<u64> {
        self.sources.iter().map(|source| source.total).sum()
    }
}

/// How far a source has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCut {
    /// Rows that are done. Where each item is a row, the first that is not has this index.
    pub done: u64,
    /// Where the first row that is not done lies, where items hold many rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextRow>,
    /// Rows that there are, where that is known.
    pub total: Option<u64>,
    /// Whether the listing has ended there by itself, not by a limit.
    pub ended: bool,
}

/// A row within an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextRow {
    /// The item's index in its source's listing.
    pub item: u64,
    /// The row's number in it.
    pub row: u32,
}

impl SourceCut {
    /// The position of the first row that is not done.
    pub fn position(&self, source: u32) -> RowPos {
        match self.next {
            Some(next) => RowPos { source, index: next.item, sub: next.row },
            None => RowPos::new(source, self.done),
        }
    }

    /// Items of which rows are done.
    pub fn n_items(&self) -> u64 {
        self.next.map_or(self.done, |next| next.item + u64::from(next.row > 0))
    }
}

/// How far a sink has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkCut {
    /// Where its output stands.
    #[serde(flatten)]
    pub pos: SinkPos,
    /// Rows rejected on the way to it.
    pub rejected: u64,
    /// Bytes at which the rows of each source end that is complete in it, where it reads several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<(u32, u64)>,
    /// Parts of its output that get their names with this cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Sealed>,
}

/// The rejected rows so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectCut {
    /// How many, each row once.
    pub total: u64,
    /// By code.
    pub by_code: BTreeMap<String, u64>,
    /// By node.
    pub by_node: BTreeMap<String, u64>,
    /// Bytes of them in the reject files, by source.
    pub bytes: Vec<u64>,
}

/// A process has ended before the run was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// When.
    pub at: Moment,
    /// Why.
    pub why: Why,
    /// The fault's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Why a process has ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It was asked to.
    Interrupted,
    /// A fault.
    Failed,
}

/// All rows are in the outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SealedRun {
    /// When.
    pub at: Moment,
    /// What is in them.
    pub cut: Cut,
    /// The outputs, all durable.
    pub outputs: Vec<OutputRecord>,
    /// The reject file, if there is one.
    pub rejects: Option<Sealed>,
    /// The exit code of the run.
    pub code: u8,
    /// Whether a limit ended it: a larger one goes on.
    pub limited: bool,
}

/// An output of a finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// The sink.
    pub node: String,
    /// The output.
    #[serde(flatten)]
    pub sealed: Sealed,
    /// Where in the output the rows of each source end, in bytes, for the sources that the sink reads; empty where the
    /// sink reads only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<(u32, u64)>,
}

/// Outputs have their names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// When.
    pub at: Moment,
}
