//! What a run shows of itself while it goes on, and what it says at its end.
//!
//! A [`Snapshot`] is one moment of a run, a [`Summary`] its end; both are plain values, so that nothing here knows how
//! a run is run. Pure functions make the text ([`overview`], [`node_lines`], [`summary`]). [`Progress`] asks for a
//! snapshot about eight times a second on a thread of its own and gives it to a [`Display`]: [`Bars`] on a terminal,
//! [`Plain`] in a pipe. Everything goes to the standard error stream; standard output is for data.

mod bars;
mod driver;
mod echo;
pub mod human;
pub mod line;
pub mod node_lines;
pub mod overview;
pub mod pace;
mod plain;
pub mod snapshot;
pub mod summary;
pub(crate) mod table;
pub mod terminal;
pub mod worker_lines;

pub use bars::{AboveBars, Bars};
pub use driver::{Display, Progress};
pub use plain::Plain;
pub use snapshot::{Incidents, NodeLine, Snapshot, Subject};
pub use summary::{Outcome, Output, RejectGroup, Summary, Verdict};
pub use terminal::{Charset, Colour, Cursor, Terminal};
pub use worker_lines::WorkerLine;

/// The display that suits the standard error stream.
#[must_use]
pub fn for_stderr(above: &AboveBars) -> Box<dyn Display> {
    let terminal = Terminal::stderr();
    match terminal.cursor {
        Cursor::Moves => Box::new(Bars::new(terminal, above)),
        Cursor::Stays => Box::new(Plain::new(terminal, std::io::stderr())),
    }
}
