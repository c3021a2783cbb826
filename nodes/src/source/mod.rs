//! Where rows come from.

pub(crate) mod columns;
pub mod files;
mod files_fetch;
mod files_glob;
mod files_walk;
pub mod synthetic;
mod synthetic_image;
