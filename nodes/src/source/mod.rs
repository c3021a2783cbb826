//! Where rows come from.

pub(crate) mod columns;
pub mod csv;
pub mod files;
mod files_fetch;
mod files_glob;
mod files_list;
mod files_walk;
mod gzip;
pub mod jsonl;
mod listing;
mod manifest;
mod no_match;
pub mod parquet;
mod paths;
mod picking;
mod references;
pub mod rejects;
mod stream;
pub mod synthetic;
mod synthetic_image;
mod table;
pub mod webdataset;
