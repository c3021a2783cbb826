//! Models in ONNX's format, run by ONNX Runtime.
//!
//! [`Signature`] reads what a file says of itself, [`Prefix`] puts operators before its graph so that it takes pixels, [`Library`]
//! finds and loads ONNX Runtime, and [`Session`] runs a model. Only the last two need the library.
//!
//! Nothing here knows of nodes, rows or pipelines.

mod call;
mod element;
mod error;
mod library;
mod prefix;
mod proto;
mod session;
mod signature;

pub use element::Element;
pub use error::OnnxError;
pub use library::{Found, FoundBy, HELP, Library, Places, SETTING};
pub use prefix::{Channels, Layout, PIXELS, Prefix};
pub use session::{Feed, Output, Provider, Session};
pub use signature::{Axis, Signature, Value};
