//! Where rows end up.

mod columns;
pub mod csv;
mod json;
pub mod jsonl;
pub mod npy;
mod npy_header;
mod partial;
