//! A sink at work, as the watchdog names it.

use std::sync::Arc;

use super::board::{Described, Hold, Lane};
use super::shared::Me;

/// What a sink does, for whoever asks.
#[derive(Clone)]
pub(super) struct Writing {
    lane: Arc<Lane>,
    what: Arc<Described>,
}

impl Writing {
    /// Of the sink that `me` is: writing what `verb` says, such as `writing`, on a thread of its own.
    pub(super) fn new(me: &Me, verb: &str) -> Self {
        let graph = &me.shared.graph;
        let what = match me.node().node.writes(&graph.base).into_iter().next() {
            None => Described::new(format!("{verb} standard output")),
            Some(path) => {
                let name = path.strip_prefix(&graph.base).unwrap_or(&path).display().to_string();
                Described::new(format!("{verb} `{name}`")).at(path)
            }
        };
        Writing { lane: me.lane(1), what: Arc::new(what) }
    }

    /// Begins to; dropping what comes back ends it.
    pub(super) fn begin(&self) -> Hold {
        self.lane.hold(self.what.clone())
    }
}
