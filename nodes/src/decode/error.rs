//! Why bytes did not become a picture.

use super::codec::Format;

/// Why bytes did not become a picture. Each variant has a stable [code](DecodeError::code).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// The data end before the picture does.
    #[error("the {format} data end before the picture does: {what}")]
    Truncated {
        /// What the bytes began as.
        format: Format,
        /// What was missing.
        what: String,
    },
    /// No known format, or a kind of a known format that is not decoded.
    #[error("{what}")]
    Unsupported {
        /// What it is, as far as could be told.
        what: String,
    },
    /// More pixels than allowed. Found in the header, before memory is taken.
    #[error("{width}×{height} is {} pixels, and the limit is {max_pixels}", u64::from(*width) * u64::from(*height))]
    TooLarge {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// The limit in force.
        max_pixels: u64,
    },
    /// The data break the rules of their format.
    #[error("the {format} data are damaged: {reason}")]
    Corrupt {
        /// What the bytes began as.
        format: Format,
        /// What was wrong.
        reason: String,
    },
}

impl DecodeError {
    /// One word that never changes, for counting and filtering: `empty`, `truncated`, `unsupported`, `too_large`, `corrupt`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Truncated { .. } => "truncated",
            Self::Unsupported { .. } => "unsupported",
            Self::TooLarge { .. } => "too_large",
            Self::Corrupt { .. } => "corrupt",
        }
    }

    pub(super) fn truncated(format: Format, what: impl Into<String>) -> Self {
        Self::Truncated { format, what: what.into() }
    }

    pub(super) fn corrupt(format: Format, reason: impl Into<String>) -> Self {
        Self::Corrupt { format, reason: reason.into() }
    }

    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }
}
