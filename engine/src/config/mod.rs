//! YAML to [`Document`], with the position of everything in it, and the diagnostics that name those positions.
//!
//! Every mistake of a file is told at once, at its line and column, with what was likely meant: the text becomes one
//! tree of spanned values, and that tree is checked against the kinds' own JSON Schemas before anything is
//! deserialised. Later stages add mistakes of their own to the same [`Mistakes`].
//!
//! This module knows kinds only by name and schema ([`KindSchemas`]): what a node does, and whether nodes fit together,
//! is for the graph to say.

mod check;
mod compile;
mod document;
mod edit;
mod json_schema;
mod kinds;
mod layout;
mod mistake;
mod mistakes;
mod nearest;
mod node_decl;
mod reference;
mod render;
mod run_options;
mod scalar;
mod secrets;
mod source;
mod span;
mod tree;
mod urls;
mod variables;

pub use crate::node::Devices;
pub use document::Document;
pub use edit::{Edit, as_yaml, edited};
pub use json_schema::json_schema;
pub use kinds::KindSchemas;
pub use mistake::Mistake;
pub use mistakes::{Look, Mistakes};
pub use nearest::{list, nearest};
pub use node_decl::{Input, NodeDecl, OnError, Port};
pub use run_options::{Isolation, Journaling, OnChange, PlacementPolicy, RunOptions, Threads};
pub use scalar::{Duration, Fraction, Limit, ScalarError, ShardChoice, Size, WorkersPerDevice};
pub use source::{Location, Source};
pub use span::{Span, Spanned};
pub use urls::without_secret_parts;
