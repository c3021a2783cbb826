//! The figures of a run as the display shows them: rates over the last seconds, and how much is done.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::config::Isolation;
use engine::graph::{Graph, RowOrigin};
use engine::node::Role;
use engine::runtime::{RunStats, Running, Verdict};
use engine::schedule::{Plan, Room, WorkerPlace};
use engine::worker::{WorkerState, WorkerStats};

use super::gauges::Gauges;
use crate::progress::{Incidents, NodeLine, Snapshot, Subject};

/// Rates are over so much time: long enough for batches not to make them jump, short enough to show a change.
const WINDOW: Duration = Duration::from_secs(5);
/// Before this, no node can be said to limit the run.
const SETTLED: Duration = Duration::from_secs(2);

/// Reads a run's figures.
#[derive(Clone)]
pub(super) struct Meter {
    graph: Arc<Graph>,
    stats: Arc<RunStats>,
    rooms: Vec<Room>,
    plan: Arc<Plan>,
    /// Which worker computes which node's model, for workers that are not threads of this process.
    shares: Vec<Share>,
}

/// A worker's share of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    node_idx: usize,
    worker: usize,
}

impl Meter {
    /// A meter of a run.
    pub(super) fn of(running: &Running) -> Self {
        let plan = running.plan();
        Meter {
            graph: plan.graph.clone(),
            stats: running.stats(),
            rooms: plan.rooms.clone(),
            plan: plan.clone(),
            shares: shares(plan),
        }
    }

    /// A function that takes a snapshot each time it is called.
    pub(super) fn snapshots(self) -> impl FnMut() -> Snapshot + Send + 'static {
        let mut rates = Rates::default();
        let mut gauges = Gauges::of(&self.plan);
        move || {
            let elapsed = self.stats.start.elapsed();
            let by_node = self.stats.nodes.iter().map(|node| node.rows_out.load(Relaxed));
            let by_worker = self.shares.iter().map(|share| self.stats.workers[share.worker].rows_of(share.node_idx));
            let rates = rates.note(elapsed, &by_node.chain(by_worker).collect::<Vec<_>>());
            gauges.refresh(&self.plan, elapsed);
            self.snapshot(elapsed, &rates, &gauges)
        }
    }

    fn snapshot(&self, elapsed: Duration, rates: &[f64], gauges: &Gauges) -> Snapshot {
        let limiting = (elapsed >= SETTLED).then(|| Verdict::of(&self.graph, &self.stats, elapsed)).flatten();
        let n_nodes = self.graph.nodes.len();
        let mut nodes = Vec::with_capacity(n_nodes + self.shares.len());
        for node_idx in 0..n_nodes {
            let limits = limiting.as_ref().is_some_and(|verdict| verdict.node_idx == node_idx);
            let line = NodeLine { rate: rates[node_idx], limits, ..self.line(node_idx, elapsed) };
            let shares = self.shares.iter().enumerate().filter(|(_, share)| share.node_idx == node_idx);
            let workers: Vec<_> = shares
                .map(|(at, share)| NodeLine { rate: rates[n_nodes + at], ..self.worker_line(share, gauges) })
                .collect();
            match &workers[..] {
                [] => nodes.push(line),
                // What the one worker has to say stands in the node's line.
                [NodeLine { state, restarts, note, .. }] => {
                    nodes.push(NodeLine { state: *state, restarts: *restarts, note: note.clone(), ..line });
                }
                _ => {
                    nodes.push(NodeLine { device: None, ..line });
                    nodes.extend(workers);
                }
            }
        }
        Snapshot {
            name: self.graph.name.clone(),
            elapsed,
            total: self.stats.total(),
            done: done(&self.graph, &self.stats),
            rejects: self.stats.rejects.load(Relaxed),
            nodes,
            incidents: self.incidents(),
        }
    }

    fn incidents(&self) -> Incidents {
        let workers = &self.stats.workers;
        Incidents {
            restarts: workers.iter().map(|worker| u64::from(worker.restarts.load(Relaxed))).sum(),
            lost: workers.iter().filter(|worker| worker.state() == WorkerState::Lost).count() as u64,
        }
    }

    fn worker_line(&self, share: &Share, gauges: &Gauges) -> NodeLine {
        let (place, figures) = (&self.plan.placement.workers[share.worker], &self.stats.workers[share.worker]);
        NodeLine {
            subject: Subject::Worker,
            name: format!("worker {}", share.worker),
            kind: figures.device.clone(),
            rows: figures.rows_of(share.node_idx),
            state: state(figures),
            restarts: u64::from(figures.restarts.load(Relaxed)),
            note: gauges.note(place.device),
            ..NodeLine::default()
        }
    }

    /// Where the node's model runs.
    fn device(&self, node_idx: usize) -> Option<String> {
        let worker = self.plan.placement.workers_of(node_idx).next()?;
        Some(self.plan.inventory.device_name(worker.device))
    }

    fn line(&self, node_idx: usize, elapsed: Duration) -> NodeLine {
        let (node, figures) = (&self.graph.nodes[node_idx], &self.stats.nodes[node_idx]);
        let shares = figures.shares(elapsed);
        let is_source = node.kind.role() == Role::Source;
        NodeLine {
            name: node.name.clone(),
            kind: node.kind.name().to_owned(),
            device: self.device(node_idx),
            rows: figures.rows_out.load(Relaxed),
            queue_len: figures.queue.load(Relaxed) as u64,
            queue_cap: if is_source { 0 } else { self.rooms[node_idx].queue_batches as u64 },
            busy: shares.busy,
            starved: shares.starved,
            blocked: shares.blocked,
            ..NodeLine::default()
        }
    }
}

/// The workers on the CPU that are threads do what their node does, and have nothing to say beside it.
fn shares(plan: &Plan) -> Vec<Share> {
    let is_process = |place: &WorkerPlace| plan.placement.isolation_of(place) == Isolation::Process;
    let workers = || plan.placement.workers.iter().enumerate().filter(|(_, place)| is_process(place));
    let of = |node_idx: usize| {
        let holding = workers().filter(move |(_, place)| place.models.contains(&node_idx));
        holding.map(move |(worker, _)| Share { node_idx, worker })
    };
    (0..plan.graph.nodes.len()).flat_map(of).collect()
}

/// What a worker does instead of computing.
fn state(worker: &WorkerStats) -> Option<&'static str> {
    let is_new = worker.restarts.load(Relaxed) == 0 && worker.rows.load(Relaxed) == 0;
    match worker.state() {
        WorkerState::Starting if is_new => Some("starting"),
        WorkerState::Starting => Some("restarting"),
        WorkerState::Quarantine => Some("quarantine"),
        WorkerState::Lost => Some("lost"),
        WorkerState::Serving | WorkerState::Stopped => None,
    }
}

fn done(graph: &Graph, stats: &RunStats) -> u64 {
    let n_sources = u32::try_from(graph.with_role(Role::Source).count()).unwrap_or(u32::MAX);
    let listed: Vec<u64> = (0..n_sources).map(|source| stats.listed(source)).collect();
    let sinks = graph.sinks().map(|sink| {
        let from = graph.nodes[sink].origins.iter().filter_map(|(origin, &times)| match *origin {
            RowOrigin::Source(source) => Some((source as usize, u64::from(times))),
            RowOrigin::Rejects(_) => None,
        });
        SinkCount { written: stats.nodes[sink].rows_out.load(Relaxed), from: from.collect() }
    });
    rows_through(&listed, &sinks.collect::<Vec<_>>(), stats.rejects.load(Relaxed))
}

/// What has come to a sink.
struct SinkCount {
    written: u64,
    /// The sources whose rows reach it, and how many times each row does.
    from: Vec<(usize, u64)>,
}

/// Rows that are through, of those that the sources have listed: of each source as many as the slowest of the sinks
/// behind it has written, and the rejects.
///
/// A sink behind several sources, or one that gets a row once for each branch of a union, counts by the share that it
/// has written of all that has set out for it. Sinks of rejects alone do not count: a reject is done when it is one.
fn rows_through(listed: &[u64], sinks: &[SinkCount], n_rejects: u64) -> u64 {
    let mut least_shares = vec![None::<f64>; listed.len()];
    for sink in sinks {
        let set_out: u64 = sink.from.iter().map(|&(source, times)| listed[source] * times).sum();
        let share = if set_out == 0 { 0.0 } else { sink.written as f64 / set_out as f64 };
        for &(source, _) in &sink.from {
            let least = least_shares[source].get_or_insert(share);
            *least = least.min(share);
        }
    }
    let written: f64 = least_shares.iter().zip(listed).map(|(share, &rows)| share.unwrap_or(0.0) * rows as f64).sum();
    (written.round() as u64 + n_rejects).min(listed.iter().sum())
}

/// Counts of the last seconds.
#[derive(Default)]
struct Rates {
    seen: VecDeque<(Duration, Vec<u64>)>,
}

impl Rates {
    /// Takes note of the counts at a time, and gives each one's increase in a second over the window.
    fn note(&mut self, now: Duration, counts: &[u64]) -> Vec<f64> {
        self.seen.push_back((now, counts.to_vec()));
        // The last one from before the window stays, so that the window is always spanned.
        while self.seen.get(1).is_some_and(|second| second.0 + WINDOW <= now) {
            self.seen.pop_front();
        }
        let Some((then, before)) = self.seen.front() else { return vec![0.0; counts.len()] };
        let seconds = if now == *then { now.as_secs_f64() } else { (now - *then).as_secs_f64() };
        let rate = |(&count, &before): (&u64, &u64)| {
            if seconds > 0.0 { count.saturating_sub(before) as f64 / seconds } else { 0.0 }
        };
        counts.iter().zip(before).map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_last_seconds_only() {
        let mut rates = Rates::default();
        for second in 0..=20 {
            rates.note(Duration::from_secs(second), &[second * 100]);
        }
        assert_eq!(rates.note(Duration::from_secs(21), &[2_100]), [100.0]);
        for second in 22..=40 {
            rates.note(Duration::from_secs(second), &[2_100]);
        }
        assert_eq!(rates.note(Duration::from_secs(41), &[2_100]), [0.0]);
    }

    fn sink(written: u64, from: &[(usize, u64)]) -> SinkCount {
        SinkCount { written, from: from.to_vec() }
    }

    #[test]
    fn a_row_is_through_when_every_sink_has_it() {
        assert_eq!(rows_through(&[641_233], &[sink(641_204, &[(0, 1)])], 17), 641_221);
        assert_eq!(rows_through(&[100], &[sink(60, &[(0, 1)]), sink(40, &[(0, 1)])], 0), 40);
        // Rejects that a sink of their own has written are not rows.
        assert_eq!(rows_through(&[100], &[sink(60, &[(0, 1)]), sink(5, &[])], 5), 65);
    }

    #[test]
    fn a_union_gets_a_row_once_for_each_branch() {
        assert_eq!(rows_through(&[100], &[sink(120, &[(0, 2)])], 0), 60);
        assert_eq!(rows_through(&[100, 300], &[sink(200, &[(0, 1), (1, 1)])], 0), 200);
    }

    #[test]
    fn no_more_is_through_than_was_listed() {
        assert_eq!(rows_through(&[10], &[sink(10, &[(0, 1)])], 3), 10);
        assert_eq!(rows_through(&[0], &[sink(0, &[(0, 1)])], 0), 0);
        assert_eq!(rows_through(&[], &[], 0), 0);
    }

    #[test]
    fn the_first_count_is_no_rate() {
        assert_eq!(Rates::default().note(Duration::ZERO, &[7]), [0.0]);
    }
}
