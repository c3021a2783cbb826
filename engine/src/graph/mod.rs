//! `Document` to [`Graph`]: names resolved, edges typed, every mistake found.
//!
//! Reads no data and starts no thread. What it promises the later stages: no cycles; every path goes from a source to a
//! sink; every node's inputs have the columns that it wants; no two nodes write one file; rows are ordered by their
//! positions on every edge. It must not know what any kind does: it asks them through [`crate::node::Node`].

mod advice;
mod compile;
mod dag;
mod drawing;
#[expect(clippy::module_inception, reason = "one main type per file, the file named after it")]
mod graph;
mod origins;
mod part;
mod paths;
pub mod render;
mod resolve;
mod typing;

pub use graph::{Edge, Graph, GraphNode, Merge, RowOrigin, Written};
pub(crate) use typing::reject_schema;
