//! A sink at work, as the watchdog names it.

use std::sync::Arc;

use super::board::{Described, Hold, Lane};
use super::shared::Shared;
use crate::node::Durable;

/// What a sink does, for whoever asks.
#[derive(Clone)]
pub(super) struct Writing {
    lane: Arc<Lane>,
    what: Arc<Described>,
}

impl Writing {
    /// Of the sink `node_idx`, which does on one thread what `verb` says, such as `writing`.
    pub(super) fn new(shared: &Shared, node_idx: usize, verb: &str) -> Self {
        let graph = &shared.graph;
        let what = match graph.nodes[node_idx].node.writes(&graph.base).into_iter().next() {
            None => Described::new(format!("{verb} standard output")),
            Some(path) => {
                let name = path.strip_prefix(&graph.base).unwrap_or(&path).display().to_string();
                Described::new(format!("{verb} `{name}`")).at(path)
            }
        };
        Writing { lane: shared.board.lane(node_idx, 1), what: Arc::new(what) }
    }

    /// Begins to; dropping what comes back ends it.
    pub(super) fn begin(&self) -> Hold {
        self.lane.hold(self.what.clone())
    }

    /// The same work, during which this is under way.
    pub(super) fn around(&self, durable: Durable) -> Durable {
        let writing = self.clone();
        Box::new(move || {
            let _hold = writing.begin();
            durable()
        })
    }
}
