//! Where rows end up.

mod columns;
pub mod csv;
mod json;
pub mod jsonl;
mod lines;
pub mod npy;
mod npy_header;
