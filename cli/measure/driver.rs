//! Runs a graph until enough is known.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use engine::graph::Graph;
use engine::node::Cancel;
use engine::runtime::{RunStats, Running, Setup};
use engine::schedule::{Inventory, Plan};

use crate::failure::Failure;

/// How often it is asked whether enough is known.
const POLL: Duration = Duration::from_millis(2);

/// Whether enough is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Stop,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All rows of its sources went through.
    Done,
    /// Enough was known.
    Stopped,
}

/// Runs `graph` until `watch`, which is told how long it runs, says that it is enough, or all rows went through.
///
/// # Errors
/// A fault of the run, or what `watch` says.
pub(super) fn drive(
    graph: Graph,
    inventory: &Inventory,
    mut watch: impl FnMut(&RunStats, Duration) -> Result<Next, Failure>,
) -> Result<(Arc<RunStats>, End), Failure> {
    let plan = Plan::make(Arc::new(graph), inventory)?;
    let cancel = Cancel::new();
    let setup = Setup { build: crate::BUILD.to_owned(), ..Setup::default() };
    let start = Instant::now();
    let running = Running::start(plan, cancel.clone(), &setup, None)?;
    let stats = running.stats();
    let stopped = loop {
        if running.is_finished() {
            break None;
        }
        match watch(&stats, start.elapsed()) {
            Ok(Next::GoOn) => thread::sleep(POLL),
            Ok(Next::Stop) => break Some(Ok(())),
            Err(failure) => break Some(Err(failure)),
        }
    };
    if stopped.is_some() {
        cancel.abort();
    }
    let report = running.join();
    match (stopped, report.fault) {
        (Some(Err(failure)), _) => Err(failure),
        // What goes wrong while a run is stopped is of no account.
        (Some(Ok(())), _) => Ok((stats, End::Stopped)),
        (None, Some(fault)) => Err(fault.into()),
        (None, None) => Ok((stats, End::Done)),
    }
}
