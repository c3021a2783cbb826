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
    /// The nodes, in the order in which they are shown, each with its workers behind it.
    pub nodes: Vec<NodeLine>,
    /// What has happened to workers.
    pub incidents: Incidents,
}

/// What has happened to the workers of a run, all together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Incidents {
    /// How many times one was replaced.
    pub restarts: u64,
    /// How many will not come back.
    pub lost: u64,
}

/// Of what a line tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subject {
    /// A node.
    #[default]
    Node,
    /// One of several workers of the node above it: its name is the worker's, its kind the device, and there are no
    /// queue and no shares of time.
    Worker,
}

/// One node, or one worker of a node: a line of its own for each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeLine {
    /// Of what it tells.
    pub subject: Subject,
    /// The node's name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The device that the node runs on, if that is one, and worth a word.
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
    /// What its worker does instead of computing: `starting`, `lost`.
    pub state: Option<&'static str>,
    /// How many times its worker was replaced.
    pub restarts: u64,
    /// More to say, such as the memory of its device.
    pub note: Option<String>,
    /// Whether it sets the pace of the run.
    pub limits: bool,
}
