//! The ids of rows, beside an output that has no room for them.

use engine::data::{Role, Schema};
use engine::node::SpecError;

/// Where the ids of the output `path` are.
pub(super) fn ids_path(path: &str) -> String {
    let stem = path.strip_suffix(".npy").or_else(|| path.strip_suffix(".safetensors")).unwrap_or(path);
    format!("{stem}.ids.jsonl")
}

/// The column of ids: the uri where there is no other.
pub(super) fn id_column(input: &Schema) -> Result<usize, SpecError> {
    let id = input.index_of_role(Role::Id).or_else(|| input.index_of_role(Role::Uri));
    let id = id.or_else(|| input.index_of("id")).or_else(|| input.index_of("uri"));
    id.ok_or_else(|| SpecError::new(format!("the rows have no id: the input gives {}", input.names())))
}
