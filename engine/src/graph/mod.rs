//! `Document` to `Graph`: names resolved, edges typed, every mistake found.

pub mod render;
