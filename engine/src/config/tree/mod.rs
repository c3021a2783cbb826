//! A YAML file as one tree of values, each with its place.

mod build;
mod core_schema;
mod hint;
mod place;
mod value;

pub(super) use build::build;
pub(super) use core_schema::plain_scalar;
pub(super) use value::{Entry, Origin, Scalar, Tree, Value};
