//! The columns that every source gives.

use engine::data::{ColumnType, Field, Role};
use engine::node::{From, NodeSpec, Output};

/// The number of the output `bytes` among a source's columns, behind `id` and `uri`.
pub(crate) const BYTES: usize = 2;

/// The spec of a source whose ids are its uris: `id`, `uri`, `bytes`.
pub(crate) fn bytes_source(detail: impl Into<String>) -> NodeSpec {
    let fields = [
        Field::new("id", ColumnType::Text, Role::Auxiliary),
        Field::new("uri", ColumnType::Text, Role::Uri),
        Field::new("bytes", ColumnType::Bytes, Role::Auxiliary),
    ];
    let outputs = fields.into_iter().map(|field| Output { field, from: From::New }).collect();
    NodeSpec { outputs, ..NodeSpec::default() }.with_detail(detail)
}
