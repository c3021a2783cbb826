//! Why something could not be done at a place.

use std::io;

use engine::data::{Reject, code};
use engine::node::{Fault, reason};

use super::location::Location;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// It is not there.
    NotFound,
    /// It may not be read or written, or the store does not know who asks.
    PermissionDenied,
    /// It has more bytes than were allowed.
    TooLarge,
    /// It was replaced while it was read.
    Changed,
    /// It is a folder, or the name of a bucket alone.
    IsDirectory,
    /// The place cannot do this at all: a web server has no listing.
    Unsupported,
    /// The location or the options are wrong, or credentials are missing.
    Config,
    /// The store asked to slow down until no tries were left.
    Throttled,
    /// The store said until no tries were left that it failed.
    Unavailable,
    /// No answer came in time, in all tries.
    Timeout,
    /// There was no connection, or it broke, in all tries.
    Network,
    /// The run is being stopped, and did not wait any longer.
    Stopped,
    /// The local disk failed.
    Io,
    /// The store answered with something else.
    Other,
}

impl ErrorKind {
    /// Whether the same may succeed later without anything being changed.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            ErrorKind::Changed
                | ErrorKind::Throttled
                | ErrorKind::Unavailable
                | ErrorKind::Timeout
                | ErrorKind::Network
                | ErrorKind::Stopped
                | ErrorKind::Io
        )
    }

    /// The word among the codes of rejects.
    pub fn code(self) -> &'static str {
        match self {
            ErrorKind::NotFound => code::NOT_FOUND,
            ErrorKind::PermissionDenied => code::PERMISSION,
            ErrorKind::TooLarge => code::TOO_LARGE,
            ErrorKind::IsDirectory => code::IS_DIRECTORY,
            ErrorKind::Unsupported => code::UNSUPPORTED,
            _ => code::IO,
        }
    }
}

/// Why something could not be done at a place. The text names the place, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: ErrorKind,
    message: String,
    help: Option<String>,
}

impl StoreError {
    /// An error whose `message` has no secrets in it.
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        StoreError { kind, message: message.into(), help: None }
    }

    /// Says what to do.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// A place that has more bytes than allowed.
    pub(super) fn too_large(location: &Location, n_bytes: u64, max_bytes: u64) -> Self {
        let message = format!("`{location}` has {n_bytes} bytes, more than the limit {max_bytes}");
        StoreError::new(ErrorKind::TooLarge, message)
    }

    /// What the system said about a local path while doing `what` (`read`, `write`).
    pub(super) fn local(what: &str, location: &Location, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound if location.local_path().is_some_and(std::path::Path::is_symlink) => {
                let message = format!("`{location}` is a link to something that does not exist");
                StoreError::new(ErrorKind::NotFound, message)
            }
            io::ErrorKind::NotFound => StoreError::new(ErrorKind::NotFound, format!("`{location}` does not exist")),
            io::ErrorKind::PermissionDenied => {
                StoreError::new(ErrorKind::PermissionDenied, format!("no permission to {what} `{location}`"))
            }
            io::ErrorKind::IsADirectory => StoreError::new(ErrorKind::IsDirectory, format!("`{location}` is a folder")),
            _ => StoreError::new(ErrorKind::Io, format!("cannot {what} `{location}`: {}", reason(error))),
        }
    }

    /// What reading through an [`io::Read`] of this module met: the store's own error where there is one in `error`,
    /// whatever decoder it came through.
    pub fn of_io(location: &Location, error: &io::Error) -> Self {
        let mut source: Option<&(dyn std::error::Error + 'static)> = error.get_ref().map(|error| error as _);
        while let Some(error) = source {
            if let Some(error) = error.downcast_ref::<StoreError>() {
                return error.clone();
            }
            // What an `io::Error` holds is not its source, but that one's source.
            source = match error.downcast_ref::<io::Error>() {
                Some(inner) => inner.get_ref().map(|error| error as _),
                None => error.source(),
            };
        }
        StoreError::local("read", location, error)
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What to do, where that is known.
    pub fn what_to_do(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        let kind = match error.kind {
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
            ErrorKind::Timeout => io::ErrorKind::TimedOut,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::IsDirectory => io::ErrorKind::IsADirectory,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// It costs one row.
impl From<StoreError> for Reject {
    fn from(error: StoreError) -> Self {
        Reject::new(error.kind.code(), error.message)
    }
}

/// It ends the run.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let fault = match error.kind.is_transient() {
            true => Fault::transient(error.message),
            false => Fault::permanent(error.message),
        };
        match error.help {
            Some(help) => fault.help(help),
            None => fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::node::FaultKind;

    use super::*;

    #[test]
    fn the_stores_error_is_found_behind_other_readers() {
        let location = Location::parse("/a/b", std::path::Path::new("/")).unwrap();
        let inner = StoreError::new(ErrorKind::Changed, "`s3://b/k` has changed");
        let wrapped = io::Error::other(io::Error::other(io::Error::from(inner.clone())));
        assert_eq!(StoreError::of_io(&location, &wrapped), inner);
        let other = io::Error::new(io::ErrorKind::InvalidData, "bad block");
        let error = StoreError::of_io(&location, &other);
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Io, "cannot read `/a/b`: bad block".to_owned()));
    }

    #[test]
    fn only_what_may_succeed_later_is_a_transient_fault() {
        for (kind, expected) in [
            (ErrorKind::NotFound, FaultKind::Permanent),
            (ErrorKind::PermissionDenied, FaultKind::Permanent),
            (ErrorKind::Config, FaultKind::Permanent),
            (ErrorKind::Throttled, FaultKind::Transient),
            (ErrorKind::Network, FaultKind::Transient),
        ] {
            assert_eq!(Fault::from(StoreError::new(kind, "x")).kind, expected, "{kind:?}");
        }
    }
}
