//! A run at one moment, as the display needs it.

use std::time::Duration;

/// The run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The pipeline's name.
    pub name: String,
    /// Since the run began.
    pub elapsed: Duration,
    /// Rows that there are, where that is known.
    pub total: Option<u64>,
    /// Rows that are through: written or rejected.
    pub done: u64,
    /// How many of these were rejected.
    pub rejects: u64,
    /// The nodes, in the order in which they are shown.
    pub nodes: Vec<NodeLine>,
}

/// One node, or one device of a node: a line of its own for each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeLine {
    /// The node's name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The device that it runs on, if that is worth a word.
    pub device: Option<String>,
    /// Rows handled so far.
    pub rows: u64,
    /// Rows handled in a second, lately.
    pub rate: f64,
    /// Batches or rows waiting before it.
    pub queue_len: u64,
    /// Room for them; nothing where nothing waits.
    pub queue_cap: u64,
    /// Share of the time spent working, 0 to 1.
    pub busy: f64,
    /// Share of the time spent waiting for input.
    pub starved: f64,
    /// Share of the time spent waiting for room behind it.
    pub blocked: f64,
    /// More to say, such as the memory of its device.
    pub note: Option<String>,
    /// Whether it sets the pace of the run.
    pub limits: bool,
}
