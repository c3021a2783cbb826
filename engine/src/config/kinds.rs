//! What this module needs to know about kinds of nodes.

use serde_json::Value as Json;

/// The kinds that a file may name, each with the JSON Schema of its options.
pub trait KindSchemas {
    /// All names, such as `decode.image`.
    fn names(&self) -> Vec<&str>;

    /// The schema of a kind's `with`, as schemars makes it; `None` for a name that is no kind.
    fn schema(&self, kind: &str) -> Option<&Json>;
}
