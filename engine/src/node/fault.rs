//! What ends a run: as opposed to a reject, which costs one row.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether it helps to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The environment failed: a full disk, a lost mount. The same command may succeed later.
    Transient,
    /// The pipeline asks for something that cannot be: the same command fails again.
    Permanent,
    /// A bug in flowgpu.
    Bug,
    /// The reader of an output has gone, as in `flowgpu run … | head`: the run ends without a word.
    Closed,
}

/// What ended a run. The runtime adds the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Fault {
    /// Whether it helps to try again.
    pub kind: FaultKind,
    /// What happened, in one sentence that names the file.
    pub message: String,
    /// What to do, where that is known.
    pub help: Option<String>,
    /// The node it happened in; filled in by the runtime.
    pub node: Option<String>,
    /// What is known beyond that, such as a dead worker's last words: the first line of each says what it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Fault {
    /// The environment failed.
    pub fn transient(message: impl Into<String>) -> Self {
        Fault { kind: FaultKind::Transient, message: message.into(), help: None, node: None, details: Vec::new() }
    }

    /// The pipeline asks for something that cannot be.
    pub fn permanent(message: impl Into<String>) -> Self {
        Fault { kind: FaultKind::Permanent, ..Fault::transient(message) }
    }

    /// A bug in flowgpu.
    pub fn bug(message: impl Into<String>) -> Self {
        Fault { kind: FaultKind::Bug, ..Fault::transient(message) }
    }

    /// The reader of the output `path` has gone.
    pub fn closed(path: &str) -> Self {
        Fault { kind: FaultKind::Closed, ..Fault::transient(format!("the reader of `{path}` has gone")) }
    }

    /// An I/O error while doing `what` (`write`, `create`) to `path`, with what to do about the common ones.
    pub fn io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let reason = match error.kind() {
            ErrorKind::StorageFull => "no space left on the device".to_owned(),
            ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
            ErrorKind::PermissionDenied => "permission denied".to_owned(),
            ErrorKind::NotFound => "no such file or folder".to_owned(),
            ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
            _ if is_io_error(error) => "the disk reports an error".to_owned(),
            _ => reason(error),
        };
        let fault = Fault::transient(format!("cannot {what} `{}`: {reason}", path.display()));
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                fault.help("free some space and run the same command again")
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                fault.help("choose a path that may be written")
            }
            _ if is_io_error(error) => fault.help("see the kernel's log for the disk, and run the same command again"),
            _ => fault,
        }
    }

    /// Says what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds what is known beyond the message. Its first line says what it is: `its last words:`.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// Says in which node, unless that is known already.
    pub fn in_node(mut self, node: &str) -> Self {
        self.node.get_or_insert_with(|| node.to_owned());
        self
    }
}

/// What the system says, as a part of a sentence and without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn is_io_error(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "`{node}`: ")?;
        }
        f.write_str(&self.message)
    }
}
