//! Rows that could not be processed: why, and in which node.

use serde::Serialize;

use super::RowPos;

/// The stable words that a reject's `code` can be.
pub mod code {
    /// The data end early.
    pub const TRUNCATED: &str = "truncated";
    /// The data are in a form that is not read.
    pub const UNSUPPORTED: &str = "unsupported";
    /// The data contradict themselves.
    pub const CORRUPT: &str = "corrupt";
    /// There are no data at all.
    pub const EMPTY: &str = "empty";
    /// A size limit was exceeded.
    pub const TOO_LARGE: &str = "too_large";
    /// The item was listed and is not there.
    pub const NOT_FOUND: &str = "not_found";
    /// The item may not be read.
    pub const PERMISSION: &str = "permission_denied";
    /// The item is a directory.
    pub const IS_DIRECTORY: &str = "is_directory";
    /// Reading the item failed otherwise.
    pub const IO: &str = "io";
    /// The model's output has a NaN or an infinity in it.
    pub const NON_FINITE: &str = "non_finite";
    /// The model failed on the row.
    pub const MODEL: &str = "model";
    /// The code that handled the row panicked.
    pub const PANIC: &str = "panic";
    /// Not even this row alone fits into the device's memory.
    pub const OUT_OF_MEMORY: &str = "out_of_memory";
    /// The worker process died of the row, or did not come back from it.
    pub const WORKER_CRASH: &str = "worker_crash";
    /// The whole process died of the row: twice, and once more when it was tried alone.
    pub const CRASH: &str = "crash";

    /// All of them.
    pub const ALL: [&str; 15] = [
        TRUNCATED,
        UNSUPPORTED,
        CORRUPT,
        EMPTY,
        TOO_LARGE,
        NOT_FOUND,
        PERMISSION,
        IS_DIRECTORY,
        IO,
        NON_FINITE,
        MODEL,
        PANIC,
        OUT_OF_MEMORY,
        WORKER_CRASH,
        CRASH,
    ];
}

/// Why a node could not process a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// A stable word: one of those in [`code`].
    pub code: &'static str,
    /// What happened, for a person; names the file where there is one.
    pub message: String,
}

impl Reject {
    /// A reject with one of the words of [`code`].
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Reject { code, message: message.into() }
    }
}

/// A row that was rejected: what the reject file and the readers of `node.rejects` get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectRow {
    /// The row's position.
    #[serde(skip)]
    pub pos: RowPos,
    /// The index of the node in the order of the file.
    #[serde(skip)]
    pub node_index: usize,
    /// The row's id.
    pub id: String,
    /// Where the row came from.
    pub uri: String,
    /// The node that rejected it.
    pub node: String,
    /// The stable word.
    pub code: &'static str,
    /// What happened.
    pub message: String,
}
