//! x
pub mod progress;
