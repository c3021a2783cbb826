//! What a run notes on disk, so that the same command goes on where it was stopped.
//!
//! The journal is a log of lines that people can read. Each `cut` in it is a consistent state of the whole run: so many
//! rows of each source, and for every output and the reject file where they stood then. Everything before the last cut is
//! durable; what was written after it is given up and done again.
//!
//! Beside it lie, for each source, what was listed ([`Listing`]) and what the items were when they were read
//! ([`Stamps`]), and which rows are being decoded ([`Flight`]). This module knows files, not threads: the runtime decides when a cut is made.

mod fingerprint;
mod flight;
mod history;
#[expect(clippy::module_inception, reason = "the type is what the module is about")]
mod journal;
mod listing;
mod merge;
mod moment;
mod open;
mod publish;
mod record;
mod relisting;
mod slices;
mod stamps;
mod state;

pub use fingerprint::Fingerprint;
pub use flight::{Flight, Slot, suspects};
pub use history::{End, History};
use journal::host;
pub use journal::{Journal, reject_part};
pub use listing::{Listing, Recorded};
pub use merge::{Joined, Merge, Merged, Missing, merge, n_shards};
pub use moment::Moment;
pub use open::{Finished, Opened, Start, can_resume, reject_name, tidy_rejects};
pub use publish::{clear_spool, publish_closed, publish_sealed};
pub use record::{
    Begun, Cut, Done, InFlight, Left, NextRow, OutputRecord, Record, RejectCut, SealedRun, Session, SinkCut, SourceCut,
    Why,
};
pub use relisting::Relisting;
pub use slices::{Slice, Slices};
pub use stamps::Stamps;
pub use state::StateFolder;
