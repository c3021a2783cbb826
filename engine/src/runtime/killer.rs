//! Rows that kill the whole process: who is in flight is noted, and who was in flight at two deaths is tried alone.
//!
//! A decoder that aborts takes the run with it, and the run that goes on comes to the same row. What was being decoded at
//! each death is in the [journal](crate::journal); rows that were there twice are suspects. A suspect is tried in a process
//! of its own before it is decoded here. If that process dies too, the row is rejected; if it does not, the row was only
//! near, and is decoded like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::trial::{Trial, TrialOutcome, TryRow};
use crate::data::{Reject, RowPos, code};
use crate::graph::Graph;
use crate::journal::{End, Flight, InFlight, Journal, Slot, suspects};
use crate::node::{Fault, Item, Role};

/// How long a trial may take when the file does not say: as long as a batch may.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a run knows of rows that kill. The default knows of none and notes nothing.
#[derive(Default)]
pub(super) struct Killer {
    flight: Option<Flight>,
    /// The nodes whose rows are noted, by their number in the file.
    nodes: Vec<usize>,
    /// By node and position.
    suspects: BTreeSet<(usize, RowPos)>,
    try_row: Option<TryRow>,
    patience: Duration,
    /// The items of suspects as they were listed, each with its index for the fetch.
    items: Mutex<BTreeMap<RowPos, (u64, Item)>>,
    /// What came of trials. The lock is held during one: they are rare, and should not compete.
    verdicts: Mutex<BTreeMap<(usize, RowPos), Option<Reject>>>,
}

impl Killer {
    /// Notes in the journal what was in flight when the process before this one died, if it died, and begins to note rows
    /// of `n_threads` threads.
    pub(super) fn start(
        graph: &Graph,
        n_threads: usize,
        journal: &mut Journal,
        try_row: Option<TryRow>,
    ) -> Result<Killer, Fault> {
        let path = journal.folder().flight();
        let history = journal.history();
        let has_died = history.is_some_and(|history| history.end == End::Open && !history.sessions.is_empty());
        let in_flight = if has_died { Flight::read(&path) } else { Vec::new() };
        let suspected = history.map(|history| suspects(history, &in_flight)).unwrap_or_default();
        journal.session(graph.run.limit, in_flight)?;
        let nodes: Vec<_> = graph.with_role(Role::Decode).collect();
        let names: Vec<_> = nodes.iter().map(|&node_idx| graph.nodes[node_idx].name.as_str()).collect();
        let known = |InFlight { node, source, index, sub }: InFlight| {
            let node_idx = graph.nodes.iter().position(|other| other.name == node)?;
            Some((node_idx, RowPos { source, index, sub }))
        };
        Ok(Killer {
            flight: Some(Flight::create(&path, &names, n_threads)?),
            suspects: suspected.into_iter().filter_map(known).collect(),
            nodes,
            try_row,
            patience: graph.run.job_timeout.map_or(PATIENCE, |timeout| timeout.get()),
            ..Killer::default()
        })
    }

    /// Where to note rows of node `node_idx`, if they are noted.
    pub(super) fn enter(&self, node_idx: usize) -> Option<Slot<'_>> {
        let number = self.nodes.iter().position(|&noted| noted == node_idx)?;
        self.flight.as_ref()?.enter(number)
    }

    /// Keeps a listed item, with its index for the fetch, if its row will be tried.
    pub(super) fn listed(&self, pos: RowPos, number: u64, item: &Item) {
        if self.suspects.iter().any(|(_, suspect)| *suspect == pos) {
            let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
            items.insert(pos, (number, item.clone()));
        }
    }

    /// Whether a row of node `node_idx` kills: if it is suspected of that, it is tried, and this waits for it.
    pub(super) fn kills(&self, graph: &Graph, node_idx: usize, pos: RowPos) -> Option<Reject> {
        let row = (node_idx, pos);
        if !self.suspects.contains(&row) {
            return None;
        }
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        // In a union one row may come several times.
        verdicts.entry(row).or_insert_with(|| self.tried(graph, row)).clone()
    }

    fn tried(&self, graph: &Graph, (node_idx, pos): (usize, RowPos)) -> Option<Reject> {
        let node = &graph.nodes[node_idx].name;
        let (number, item) = self.items.lock().unwrap_or_else(PoisonError::into_inner).get(&pos).cloned()?;
        let outcome = match &self.try_row {
            Some(try_row) => try_row.call(&Trial::new(node, RowPos { index: number, ..pos }, &item, self.patience)),
            None => TrialOutcome::Untried("rows cannot be tried here".to_owned()),
        };
        match outcome {
            TrialOutcome::Survived => {
                tracing::info!(node, uri = item.uri, "a row that was in flight at two deaths does no harm alone");
                None
            }
            TrialOutcome::Untried(why) => {
                tracing::warn!(
                    node,
                    uri = item.uri,
                    why,
                    "a row that was in flight at two deaths could not be tried alone"
                );
                None
            }
            TrialOutcome::Died(how, last_words) => {
                let last_words = last_words.map_or_else(String::new, |words| format!("; its last words: {words}"));
                let message = format!(
                    "the process died twice with this row in `{node}`, and once more with it alone: it {how}{last_words}"
                );
                Some(Reject::new(code::CRASH, message))
            }
        }
    }
}
