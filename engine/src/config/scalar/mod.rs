//! The scalars that pipeline files have beyond YAML's: durations, sizes, fractions, limits, devices, workers, shards.
//!
//! Each type reads itself from a YAML value and from a word on the command line by the same rule. Its JSON Schema
//! carries `x-format` with the rule's name ([`Format`]), by which a text that is none is found with its position.

mod devices;
mod duration;
mod format;
mod fraction;
mod limit;
mod raw;
mod shards;
mod size;
mod workers;

pub use duration::Duration;
pub(super) use format::Format;
pub use fraction::Fraction;
pub use limit::Limit;
pub(super) use raw::RawScalar;
pub use raw::ScalarError;
pub use shards::ShardChoice;
pub use size::Size;
pub use workers::WorkersPerDevice;
