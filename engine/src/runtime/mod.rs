//! `Plan` to [`Running`] to [`Report`]: threads, queues, order, rejects, cancellation.
//!
//! One thread drives each node; the work itself runs on three pools (reading, rows, models). Two rules carry the rest:
//!
//! - **Every edge is in order.** A message has rows in the order of their positions and a watermark: every row before it
//!   has been seen. A row that was rejected is a hole that the watermark passes over. So merging needs only positions.
//! - **Rejects travel with the rows**, beside them in the same messages, to every sink on their path. So each sink knows
//!   by itself that what came in is what it wrote and what was rejected.
//!
//! This module knows no kind of node, no model and no file format.

mod accounting;
mod alone;
mod attempt;
mod board;
mod committer;
mod crew;
mod ending;
mod evidence;
mod exit;
mod fold;
#[cfg(feature = "testing")]
mod hop;
mod infer;
mod killer;
mod ledger;
mod merge;
mod message;
mod outlets;
mod pace;
mod parallel;
mod pools;
mod progress;
mod project;
mod queue;
mod rejects;
mod report;
mod resume;
mod row_task;
mod running;
mod sample;
mod shared;
mod sink;
mod slicing;
mod source;
mod stall;
mod stats;
mod trace;
mod trial;
mod unpack;
mod verdict;
mod watchdog;
mod window;
mod writing;

pub use attempt::{Attempted, attempt};
pub use exit::Exit;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use hop::{HopReceiver, HopSender, hop};
pub use report::{CapReport, NodeReport, Outcome, OutputReport, RejectReport, Report, SinkAccount, WorkerReport};
pub use running::{Running, Setup};
pub use sample::{LoneModel, Sampled, Sampler};
pub use stall::{OnStall, Stall};
pub use stats::{NodeStats, RunStats, Shares};
pub use trace::Trace;
pub use trial::{Trial, TrialOutcome, TryRow};
pub use verdict::Verdict;
