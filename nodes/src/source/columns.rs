//! The columns that every source gives.

use std::num::NonZeroUsize;

use engine::data::{ColumnType, Field, Role};
use engine::node::{From, NodeSpec, Output};

/// The number of the output `bytes` among a source's columns, behind `id` and `uri`.
pub(crate) const BYTES: usize = 2;

/// What a source's ids are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// The same as its uris.
    Uris,
    /// Others, so that sinks write them too.
    Own,
}

/// How many files a source reads at the same time from stores and web servers: each waits for an answer, and a thread that
/// does costs a few kilobytes.
pub(crate) const REMOTE_READERS: NonZeroUsize = const { NonZeroUsize::new(128).expect("it is more than zero") };

/// The spec of a source whose ids are its uris: `id`, `uri`, `bytes`.
pub(crate) fn bytes_source(detail: impl Into<String>) -> NodeSpec {
    let mut spec = rows_source(detail, Ids::Uris);
    let field = Field::new("bytes", ColumnType::Bytes, Role::Auxiliary);
    spec.outputs.push(Output { field, from: From::New });
    spec
}

/// The spec of a source without `bytes`: `id`, `uri`.
pub(crate) fn rows_source(detail: impl Into<String>, ids: Ids) -> NodeSpec {
    let id = if ids == Ids::Own { Role::Id } else { Role::Auxiliary };
    let fields = [Field::new("id", ColumnType::Text, id), Field::new("uri", ColumnType::Text, Role::Uri)];
    let outputs = fields.into_iter().map(|field| Output { field, from: From::New }).collect();
    NodeSpec { outputs, ..NodeSpec::default() }.with_detail(detail)
}
