//! Files that the rows of a table name.

use std::path::Path;

use bytes::Bytes;
use engine::data::{Reject, code};

use crate::store::{Location, StoreError, Stores};

/// Reads files by the path or URL in a row.
pub(super) struct References {
    pub(super) stores: Stores,
    /// The folder that relative paths start from.
    pub(super) base: Location,
    pub(super) max_bytes: u64,
}

impl References {
    /// The file that the row `row` names `text`.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn read(&self, row: &str, text: &str) -> Result<Bytes, Reject> {
        if text.is_empty() {
            return Err(Reject::new(code::NOT_FOUND, format!("`{row}` names no file")));
        }
        let read = self.location(text).and_then(|location| self.stores.read(&location, self.max_bytes));
        let (bytes, _) = read.map_err(|error| {
            let reject = Reject::from(error);
            Reject::new(reject.code, format!("`{row}`: {}", reject.message))
        })?;
        Ok(bytes)
    }

    fn location(&self, text: &str) -> Result<Location, StoreError> {
        match self.base.local_path() {
            Some(path) => Location::parse(text, path),
            None if Location::is_url(text) => Location::parse(text, Path::new("/")),
            None => self.base.join(text),
        }
    }
}

/// What a row names, as it may be written to an output: without user info and query string.
pub(super) fn without_secrets(text: &str) -> String {
    if !Location::is_url(text) {
        return text.to_owned();
    }
    Location::parse(text, Path::new("/")).map_or_else(|_| crate::store::redacted(text), |location| location.to_string())
}
