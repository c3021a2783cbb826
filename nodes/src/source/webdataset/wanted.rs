//! What is wanted of a sample.

use std::sync::Arc;

use engine::data::ColumnType;

/// What is wanted of a sample, and within which bounds.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Extensions of the member that becomes `bytes`: the first that is there.
    pub(super) image: Vec<String>,
    pub(super) carried: Vec<Carried>,
    pub(super) max_member_bytes: u64,
    pub(super) max_header_bytes: u64,
}

/// A member that becomes a column.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) column: Arc<str>,
    /// In lower case.
    pub(super) extension: String,
}

impl Carried {
    /// Numbers of classes are what `webdataset` decodes as numbers too.
    pub(super) fn ty(&self) -> ColumnType {
        if self.extension == "cls" { ColumnType::Int } else { ColumnType::Text }
    }
}
