//! Files that survive: outputs with a temporary name, logs whose torn ends are seen, locks that say who holds them.
//!
//! Everything that a run may lose by a crash goes through [`disk`], so that tests can stop the process, or make the disk
//! fail, before and after each step. This module knows no graph and no run.

mod holder;
mod lock;
mod log;
mod partial;

pub mod disk;
#[cfg(feature = "testing")]
mod point;

pub use holder::holder;
pub use lock::{Held, Lock};
pub use log::{Lines, Log};
pub use partial::{Partial, STDOUT, is_there, partial_path, publish};
