//! Where rows end up.

mod appending;
mod arrow_columns;
mod columns;
mod compression;
pub mod csv;
mod destination;
mod ids;
mod json;
pub mod jsonl;
mod lines;
pub mod npy;
mod npy_header;
mod objects;
mod packed;
pub mod parquet;
pub(crate) mod rotate;
mod row_log;
pub mod safetensors;
mod sample_key;
mod spooling;
mod stale;
mod tar_member;
pub mod webdataset;

#[cfg(feature = "testing")]
pub(crate) use objects::SinkStore;
