//! The end of a run: outputs get their final names, and what was done becomes a report.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::accounting::expected;
use super::report::{
    CapReport, NodeReport, Outcome, OutputReport, RejectReport, Report, SinkAccount, WorkerReport, exit_code,
};
use super::running::REPORT;
use super::shared::Shared;
use super::sink::Sunk;
use super::stats::RunStats;
use super::verdict::Verdict;
use super::writing::Writing;
use crate::graph::Graph;
use crate::journal::{
    Journal, Moment, OutputRecord, RejectCut, SealedRun, StateFolder, Why, clear_spool, publish_sealed,
};
use crate::node::{Fault, FaultKind, Role};
use crate::schedule::Plan;
use crate::worker::WorkerStats;

/// Publishes or leaves the outputs, and makes the report.
pub(super) fn finish(
    plan: &Plan,
    shared: &Shared,
    sunk: Vec<Sunk>,
    mut journal: Option<Journal>,
    redone: u64,
) -> Report {
    let (graph, stats) = (&plan.graph, &shared.stats);
    let elapsed = stats.start.elapsed();
    // What was listed beyond the place where a source was stopped has not come in.
    for (listed, end) in stats.listed.iter().zip(shared.progress.ends()) {
        if let Some(end) = end {
            listed.store(end.rows, Ordering::Relaxed);
        }
    }
    let rows_in = graph
        .with_role(Role::Source)
        .filter_map(|node_idx| graph.nodes[node_idx].source)
        .map(|source| stats.listed(source))
        .sum();
    let is_aborted = shared.cancel.is_aborted();
    let interrupted = stats.stopped_early.load(Ordering::Relaxed) || (is_aborted && shared.fault().is_none());
    let accounts: Vec<_> = sunk
        .iter()
        .map(|sunk| SinkAccount {
            node: graph.nodes[sunk.node_idx].name.clone(),
            entered: sunk.start.pos.rows + sunk.start.rejected + expected(graph, sunk.node_idx, stats),
            written: stats.nodes[sunk.node_idx].rows_out.load(Ordering::Relaxed),
            rejected: sunk.rejected,
        })
        .collect();
    if let (None, false, Some(account)) =
        (shared.fault(), is_aborted, accounts.iter().find(|account| !account.balances()))
    {
        shared.fail(
            Fault::bug(format!(
                "{} rows came in, {} were written and {} rejected",
                account.entered, account.written, account.rejected
            ))
            .in_node(&account.node)
            .help(REPORT),
        );
    }
    let committed = stats.committed.load(Ordering::Relaxed);
    if shared.fault().is_none() && !interrupted && committed != rows_in {
        let message = format!("{rows_in} rows came in, and the last cut has {committed}");
        shared.fail(Fault::bug(message).help(REPORT));
    }
    let counts = shared.rejects.counts();
    let mut reject_path = shared.rejects.unfinished();
    let mut outputs = Vec::new();
    if shared.fault().is_none() && !interrupted {
        match publish(graph, shared, sunk, rows_in, journal.as_mut()) {
            Ok((published, path)) => (outputs, reject_path) = (published, path),
            Err(fault) => shared.fail(fault),
        }
    } else {
        outputs = unfinished(graph, stats, &sunk);
    }
    if let Some(journal) = journal {
        leave(shared, interrupted, journal);
    }
    let fault = shared.fault();
    let outcome = match (&fault, interrupted) {
        (Some(fault), _) if fault.kind == FaultKind::Closed => Outcome::Done,
        (Some(_), _) => Outcome::Failed,
        (None, true) => Outcome::Interrupted,
        (None, false) => Outcome::Done,
    };
    Report {
        name: graph.name.clone(),
        outcome,
        exit_code: exit_code(outcome, fault.as_ref(), counts.total),
        resumed_at: stats.resumed_at(),
        committed: stats.committed.load(Ordering::Relaxed),
        redone,
        seconds: elapsed.as_secs_f64(),
        rows_in,
        fault,
        nodes: (0..graph.nodes.len()).map(|node_idx| node_report(plan, stats, node_idx, elapsed)).collect(),
        workers: stats.workers.iter().map(|worker| worker_report(graph, worker)).collect(),
        outputs,
        rejects: reject_report(counts, reject_path),
        accounts,
        bottleneck: Verdict::of(graph, stats, elapsed),
        stalls: stats.stalls(),
    }
}

/// Seals all outputs and gives them their names. The journal says that they are sealed before the first has its name, so
/// that a run that dies between two names completes them.
fn publish(
    graph: &Graph,
    shared: &Shared,
    sunk: Vec<Sunk>,
    rows_in: u64,
    mut journal: Option<&mut Journal>,
) -> Result<(Vec<OutputReport>, Option<PathBuf>), Fault> {
    let mut outputs = Vec::new();
    for Sunk { node_idx, sink, ends, .. } in sunk {
        let node = graph.nodes[node_idx].name.clone();
        let hold = Writing::new(shared, node_idx, "completing").begin();
        let sealed = sink.seal().map_err(|fault| fault.in_node(&node))?;
        drop(hold);
        let number = graph.sinks().position(|sink| sink == node_idx).expect("it is a sink");
        let published = std::mem::take(&mut *shared.progress.published(number));
        outputs.extend(published.into_iter().chain(sealed).map(|sealed| OutputRecord {
            node: node.clone(),
            sealed,
            ends: ends.clone(),
        }));
    }
    let rejects = shared.rejects.seal(rows_in)?;
    let cut = journal.as_ref().and_then(|journal| journal.last_cut()).cloned().unwrap_or_default();
    let n_rejects = shared.rejects.counts().total;
    let sealed = SealedRun {
        at: Moment::now(),
        limited: cut.sources.iter().any(|source| !source.ended),
        cut,
        outputs,
        rejects,
        code: exit_code(Outcome::Done, None, n_rejects),
    };
    if let Some(journal) = &mut journal {
        journal.sealed(sealed.clone())?;
    }
    publish_sealed(graph, &sealed)?;
    shared.rejects.tidy()?;
    if let Some(journal) = &mut journal {
        journal.done()?;
    }
    if !sealed.limited || journal.is_none() {
        let shard = journal.as_ref().and_then(|journal| journal.shard());
        clear_spool(&StateFolder::of(graph, shard))?;
    }
    let path = sealed.rejects.map(|_| shared.rejects.path().to_owned());
    let outputs = sealed.outputs.into_iter().map(|output| OutputReport {
        node: output.node,
        path: output.sealed.path,
        rows: output.sealed.rows,
        bytes: output.sealed.bytes,
    });
    Ok((outputs.collect(), path))
}

/// Notes why the run is not done.
fn leave(shared: &Shared, interrupted: bool, mut journal: Journal) {
    match shared.fault() {
        Some(fault) => journal.left(Why::Failed, Some(shared.graph.redact(&fault.to_string()))),
        None if interrupted => journal.left(Why::Interrupted, None),
        None => {}
    }
}

fn unfinished(graph: &Graph, stats: &RunStats, sunk: &[Sunk]) -> Vec<OutputReport> {
    let outputs = sunk.iter().filter_map(|sunk| {
        let path = sunk.sink.unfinished()?;
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let rows = stats.nodes[sunk.node_idx].rows_out.load(Ordering::Relaxed);
        Some(OutputReport {
            node: graph.nodes[sunk.node_idx].name.clone(),
            path: path.display().to_string(),
            rows,
            bytes,
        })
    });
    outputs.collect()
}

fn node_report(plan: &Plan, stats: &RunStats, node_idx: usize, elapsed: Duration) -> NodeReport {
    let (node, figures) = (&plan.graph.nodes[node_idx], &stats.nodes[node_idx]);
    let rows_out = figures.rows_out.load(Ordering::Relaxed);
    NodeReport {
        name: node.name.clone(),
        kind: node.kind.name().to_owned(),
        rows_in: figures.rows_in.load(Ordering::Relaxed),
        rows_out,
        rejects: figures.rejects.load(Ordering::Relaxed),
        bytes_out: figures.bytes_out.load(Ordering::Relaxed),
        rows_per_second: rows_out as f64 / elapsed.as_secs_f64().max(1e-9),
        work_seconds: figures.work.load(Ordering::Relaxed) as f64 / 1e9,
        threads: match node.kind.role() {
            Role::Source => plan.pools.io,
            Role::Decode | Role::Transform => plan.pools.rows,
            Role::Infer => plan.placement.workers_of(node_idx).map(|worker| worker.threads).sum(),
            Role::Batch | Role::Sink => 1,
        },
        shares: figures.shares(elapsed),
    }
}

fn worker_report(graph: &Graph, worker: &WorkerStats) -> WorkerReport {
    let name = |node_idx: &usize| graph.nodes[*node_idx].name.clone();
    let opened = worker.opened();
    let caps = worker.caps().into_iter();
    WorkerReport {
        pid: worker.pid.load(Ordering::Relaxed),
        device: worker.device.clone(),
        device_name: opened.as_ref().map(|device| device.name.clone()),
        uuid: opened.and_then(|device| device.uuid),
        nodes: worker.nodes.iter().map(name).collect(),
        rows: worker.rows.load(Ordering::Relaxed),
        restarts: worker.restarts.load(Ordering::Relaxed),
        trouble: worker.trouble(),
        state: worker.state(),
        caps: caps
            .map(|(node_idx, cap)| CapReport { node: name(&node_idx), shape: cap.shape, rows: cap.rows })
            .collect(),
    }
}

fn reject_report(counts: RejectCut, path: Option<PathBuf>) -> RejectReport {
    RejectReport { total: counts.total, by_code: counts.by_code, by_node: counts.by_node, path }
}
