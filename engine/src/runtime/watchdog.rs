//! Names the node that holds everything up.
//!
//! A thread looks at the [board](super::board) now and then. Work that is under way and has not moved for `run.stall` is
//! told, and again after each further such time: which node, what it holds, and what speaks for a cause. A node that
//! waits for input or for room has nothing under way, so it is never named for what another does.
//!
//! It ends nothing: a hard-mounted share comes back, and then the run goes on as if nothing had been.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::board::{Board, Lane, Seen};
use super::evidence::hint;
use super::stall::{OnStall, Stall, Stalls};
use crate::graph::Graph;

/// How long a node may be without progress when the file does not say.
pub(super) const STALL: Duration = Duration::from_secs(5 * 60);

/// What it looks at, and where it notes what it sees.
pub(super) struct Watched {
    pub(super) graph: Arc<Graph>,
    pub(super) board: Arc<Board>,
    pub(super) stalls: Arc<Stalls>,
}

/// Looks until it is dropped.
pub(super) struct Watchdog {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Begins to look. A run is worth more than its watchdog: without a thread for it the run goes on unwatched.
    pub(super) fn start(watched: Watched, stall: Duration, tell: Option<OnStall>) -> Self {
        let (end, ended) = bounded(0);
        let look = move || {
            let every = interval(stall);
            let mut watches = Vec::new();
            let mut last = Instant::now();
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // A process that was stopped, or a machine that slept, has not stalled meanwhile.
                let elapsed = last.elapsed().min(every * 2);
                last = Instant::now();
                round(&watched, &mut watches, elapsed, stall, tell.as_ref());
            }
        };
        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(look);
        let thread = thread.map_err(|error| tracing::warn!(%error, "no thread for the watchdog")).ok();
        Watchdog { end: Some(end), thread }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A panic of it was told by the hook, and nothing depends on it.
            let _ = thread.join();
        }
    }
}

/// Often enough that a stall is told about when it is one.
fn interval(stall: Duration) -> Duration {
    (stall / 8).clamp(Duration::from_millis(5), Duration::from_secs(1))
}

/// Looks at every lane once.
fn round(watched: &Watched, watches: &mut Vec<Watch>, elapsed: Duration, stall: Duration, tell: Option<&OnStall>) {
    let lanes = watched.board.lanes();
    watches.resize_with(lanes.len(), Watch::default);
    let mut quiet_by_node = vec![Duration::ZERO; watched.graph.nodes.len()];
    for (lane, watch) in lanes.iter().zip(watches.iter_mut()) {
        let is_due = watch.look(lane.look(), elapsed, stall);
        if watch.n_told > 0 {
            quiet_by_node[lane.node_idx] = quiet_by_node[lane.node_idx].max(watch.quiet);
        }
        if is_due && let Some(told) = describe(&watched.graph, lane, watch.quiet) {
            let Stall { node, seconds, holds, hint } = &told;
            tracing::info!(node, seconds, holds, hint, "no progress");
            if let Some(tell) = tell {
                tell.call(&told);
            }
            watch.stall_idx = Some(watched.stalls.note(watch.stall_idx, told));
        } else if let Some(stall_idx) = watch.stall_idx {
            watched.stalls.prolong(stall_idx, watch.quiet);
        }
    }
    for (node_idx, quiet) in quiet_by_node.into_iter().enumerate() {
        watched.stalls.set_quiet(node_idx, quiet);
    }
}

fn describe(graph: &Graph, lane: &Lane, quiet: Duration) -> Option<Stall> {
    let holder = lane.holder()?;
    let mut holds = graph.redact(&holder.described.text);
    if lane.n_threads > 1 {
        holds.push_str(&format!(" ({} of {} threads)", holder.n_held, lane.n_threads));
    }
    let node = graph.nodes[lane.node_idx].name.clone();
    let hint = hint(holder.described.path.as_deref(), holder.thread);
    Some(Stall { node, seconds: quiet.as_secs_f64(), holds, hint })
}

/// What was seen of one lane.
#[derive(Default)]
struct Watch {
    seen: Seen,
    /// For how long it has held what it holds without moving.
    quiet: Duration,
    /// How often that was told.
    n_told: u32,
    /// The stall's place among all of the run.
    stall_idx: Option<usize>,
}

impl Watch {
    /// The lane is like that now, so long after the last look: whether that is to be told.
    fn look(&mut self, now: Seen, elapsed: Duration, stall: Duration) -> bool {
        if now.is_idle() || now != self.seen {
            *self = Watch { seen: now, ..Watch::default() };
            return false;
        }
        self.quiet += elapsed;
        let is_due = self.quiet >= stall.saturating_mul(self.n_told + 1);
        if is_due {
            // Where looks are far apart, one word for several periods is enough.
            self.n_told = u32::try_from(self.quiet.as_nanos() / stall.as_nanos().max(1)).unwrap_or(u32::MAX);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::super::board::Described;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_stall_is_told_once_a_period_and_ends_with_the_first_movement() {
        let lane = Board::default().lane(0, 1);
        let mut watch = Watch::default();
        let told_at = |watch: &mut Watch, n_looks: u32| -> Vec<u32> {
            (1..=n_looks).filter(|_| watch.look(lane.look(), SECOND, SECOND * 5)).collect()
        };
        assert!(told_at(&mut watch, 20).is_empty(), "nothing is under way");
        let hold = lane.hold(Arc::new(Described::new("x")));
        assert_eq!(told_at(&mut watch, 17), [6, 11, 16], "the first look sees it begin");
        drop(hold);
        let hold = lane.hold(Arc::new(Described::new("y")));
        assert_eq!(told_at(&mut watch, 6), [6], "what came after has its own time");
        drop(hold);
        assert!(told_at(&mut watch, 20).is_empty());
    }

    #[test]
    fn looks_that_are_far_apart_tell_once() {
        let lane = Board::default().lane(0, 1);
        let _hold = lane.hold(Arc::new(Described::new("x")));
        let mut watch = Watch::default();
        watch.look(lane.look(), SECOND, SECOND);
        assert!(watch.look(lane.look(), SECOND * 7, SECOND));
        assert!(!watch.look(lane.look(), SECOND / 2, SECOND));
        assert!(watch.look(lane.look(), SECOND / 2, SECOND));
    }
}
