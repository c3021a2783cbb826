//! What a summary says of a run's workers.

use std::collections::BTreeMap;

use engine::runtime::{Report, WorkerReport};
use engine::worker::WorkerState;

use super::memory_killer::likely;
use crate::progress::WorkerLine;
use crate::progress::human::{count, grouped};

/// A line for each worker, if one of them was another process than `own`.
pub(super) fn lines(report: &Report, own: u32) -> Vec<WorkerLine> {
    if report.workers.iter().all(|worker| worker.pid == own) {
        return Vec::new();
    }
    let line = |(number, worker): (usize, &WorkerReport)| WorkerLine {
        number,
        device: worker.device.clone(),
        // That a CPU is one needs no word.
        device_name: worker.device_name.clone().filter(|_| worker.device != "cpu").unwrap_or_default(),
        pid: worker.pid,
        rows: worker.rows,
        restarts: u64::from(worker.restarts),
        lost: worker.state == WorkerState::Lost,
    };
    report.workers.iter().enumerate().map(line).collect()
}

/// What happened that should be known, a sentence each. `n_kills` is how often the kernel's memory killer has killed.
pub(super) fn warnings(report: &Report, n_kills: Option<u64>) -> Vec<String> {
    let troubles = report.workers.iter().enumerate().filter_map(|(number, worker)| trouble(number, worker, n_kills));
    troubles.chain(cuts(report)).collect()
}

fn trouble(number: usize, worker: &WorkerReport, n_kills: Option<u64>) -> Option<String> {
    let who = format!("worker {number} ({})", worker.device);
    let what = match (worker.state, worker.restarts) {
        (WorkerState::Lost, 0) => format!("{who} was given up, and others did its work"),
        (WorkerState::Lost, n) => {
            format!("{who} was given up after {}, and others did its work", count(u64::from(n), "restart"))
        }
        (_, 0) => return worker.trouble.as_ref().map(|trouble| format!("{who} {trouble}")),
        (_, 1) => format!("{who} was replaced"),
        (_, n) => format!("{who} was replaced {n} times"),
    };
    let Some(trouble) = &worker.trouble else { return Some(what) };
    let last = if worker.restarts > 1 { "last, " } else { "" };
    let likely = likely(trouble, n_kills).map(|likely| format!(" (likely {likely})")).unwrap_or_default();
    Some(format!("{what}: {last}it {trouble}{likely}"))
}

/// Batches that were computed in parts, by node and size: several devices share a sentence.
fn cuts(report: &Report) -> Vec<String> {
    let mut devices: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
    for worker in &report.workers {
        let mut least: BTreeMap<&str, usize> = BTreeMap::new();
        for cap in &worker.caps {
            let rows = least.entry(&cap.node).or_insert(cap.rows);
            *rows = cap.rows.min(*rows);
        }
        for cut in least {
            let on = devices.entry(cut).or_default();
            if !on.contains(&&*worker.device) {
                on.push(&worker.device);
            }
        }
    }
    let sentence = |((node, rows), on): ((&str, usize), Vec<&str>)| {
        let rows_shown = count(rows as u64, "row");
        let on = on.join(", ");
        format!(
            "batches of `{node}` were cut to {rows_shown} on {on}: out of memory (`batch: {}` avoids that)",
            grouped(rows as u64)
        )
    };
    devices.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use engine::runtime::{CapReport, Outcome, RejectReport};

    use super::*;

    fn worker(pid: u32, device: &str) -> WorkerReport {
        WorkerReport {
            pid,
            device: device.to_owned(),
            device_name: Some("NVIDIA A10".to_owned()),
            uuid: None,
            nodes: vec!["scores".to_owned()],
            rows: 5,
            restarts: 0,
            trouble: None,
            state: WorkerState::Stopped,
            caps: Vec::new(),
        }
    }

    fn report(workers: Vec<WorkerReport>) -> Report {
        Report {
            name: "p".to_owned(),
            outcome: Outcome::Done,
            exit_code: 0,
            resumed_at: 0,
            committed: 10,
            redone: 0,
            seconds: 1.0,
            rows_in: 10,
            fault: None,
            nodes: Vec::new(),
            workers,
            outputs: Vec::new(),
            rejects: RejectReport::default(),
            accounts: Vec::new(),
            bottleneck: None,
            stalls: Vec::new(),
        }
    }

    #[test]
    fn threads_get_no_line_and_processes_do() {
        assert_eq!(lines(&report(vec![worker(7, "cpu")]), 7), []);
        let lines = lines(&report(vec![worker(8, "cpu"), worker(9, "cuda:0")]), 7);
        assert_eq!((&*lines[0].device_name, &*lines[1].device_name), ("", "NVIDIA A10"));
        assert_eq!((lines[1].number, lines[1].pid, lines[1].rows, lines[1].lost), (1, 9, 5, false));
    }

    #[test]
    fn a_worker_that_was_replaced_is_told_with_the_cause() {
        let told = |restarts, state, trouble: &str| {
            let trouble = Some(trouble.to_owned());
            warnings(&report(vec![WorkerReport { restarts, state, trouble, ..worker(8, "cuda:1") }]), Some(3))
        };
        assert_eq!(warnings(&report(vec![worker(8, "cuda:1")]), Some(3)), [""; 0]);
        assert_eq!(
            told(2, WorkerState::Stopped, "died of signal 11 (segmentation fault)"),
            ["worker 0 (cuda:1) was replaced 2 times: last, it died of signal 11 \
              (segmentation fault)"]
        );
        assert_eq!(
            told(1, WorkerState::Stopped, "died of signal 9 (kill)"),
            ["worker 0 (cuda:1) was replaced: it died of signal 9 (kill) (likely the \
              kernel's memory killer: it has killed 3 processes meanwhile)"]
        );
        assert_eq!(
            told(4, WorkerState::Lost, "exited with code 1"),
            ["worker 0 (cuda:1) was given up after 4 restarts, and others did its work: last, it exited with code 1"]
        );
        assert_eq!(
            told(0, WorkerState::Lost, "could not be used: it sees 2 devices"),
            ["worker 0 (cuda:1) was given up, and others did its work: it could not be used: it sees 2 devices"]
        );
        assert_eq!(
            told(0, WorkerState::Stopped, "could not load `scores`: out of memory"),
            ["worker 0 (cuda:1) could not load `scores`: out of memory"]
        );
    }

    #[test]
    fn devices_that_ran_out_of_memory_alike_share_a_sentence() {
        let cap = |node: &str, rows| CapReport { node: node.to_owned(), shape: vec![vec![3, 224, 224]], rows };
        let with = |device: &str, caps| WorkerReport { caps, ..worker(8, device) };
        let report = report(vec![
            with("cuda:0", vec![cap("scores", 32), cap("scores", 16)]),
            with("cuda:1", vec![cap("scores", 16), cap("other", 1)]),
            with("cuda:1", vec![cap("scores", 16)]),
        ]);
        assert_eq!(
            warnings(&report, None),
            [
                "batches of `other` were cut to 1 row on cuda:1: out of memory (`batch: 1` avoids that)",
                "batches of `scores` were cut to 16 rows on cuda:0, cuda:1: out of memory (`batch: 16` avoids that)",
            ]
        );
    }
}
