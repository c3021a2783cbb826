//! How a stage ends.

use crate::node::Fault;

/// How a stage ended. The first fault wins; the other stages' ends are echoes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All rows went through.
    Finished,
    /// What it reads ended without an end: the stage before it died.
    Cancelled,
    /// Nobody reads it any more.
    DownstreamClosed,
    /// It failed.
    Faulted(Fault),
    /// It panicked outside a row: a bug.
    Panicked(String),
}

/// The result of a step that may end the stage.
pub(super) type Step<T = ()> = Result<T, Exit>;

impl From<Fault> for Exit {
    fn from(fault: Fault) -> Self {
        Exit::Faulted(fault)
    }
}
