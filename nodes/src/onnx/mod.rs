//! Models in ONNX's format, run by ONNX Runtime.
//!
//! [`Signature`] reads what a file says of itself, [`Prefix`] says what stands before its graph so that it takes pixels,
//! [`Rewrite`] puts it there, [`Library`] finds and loads ONNX Runtime, and [`Session`] runs a model. Only the last two need the library.
//!
//! Nothing here knows of nodes, rows or pipelines.

mod call;
mod element;
mod error;
mod fields;
mod library;
mod prefix;
mod proto;
mod rewrite;
mod session;
mod signature;

pub use element::Element;
pub use error::OnnxError;
pub use library::{Found, FoundBy, HELP, Library, Places, SETTING};
pub use prefix::{Channels, Layout, PIXELS, Prefix};
pub use rewrite::Rewrite;
pub use session::{Feed, Output, Provider, Session};
pub use signature::{Axis, Signature, Value};
