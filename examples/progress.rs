//! A made-up run shown as `flowgpu run` shows one, to look at the display: `cargo run --example progress`.
//!
//! In a terminal it draws bars, in a pipe (`cargo run --example progress 2>&1 | cat`) a line every ten seconds.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use flowgpu::progress::{
    AboveBars, Incidents, NodeLine, Outcome, Output, Progress, RejectGroup, Snapshot, Subject, Summary, Terminal,
    Verdict, WorkerLine, for_stderr, summary,
};

const SECONDS: u64 = 25;
const PER_SECOND: u64 = 2_310;

fn main() -> io::Result<()> {
    let began = Instant::now();
    let mut above = AboveBars::default();
    let progress = Progress::start(for_stderr(&above), move || snapshot_at(began.elapsed()))?;
    thread::sleep(Duration::from_secs(SECONDS / 2));
    writeln!(above, "a line of a log, which stays above the bars")?;
    thread::sleep(Duration::from_secs(SECONDS).saturating_sub(began.elapsed()));
    progress.finish();
    io::stderr().write_all(summary::text(&summary_after(began.elapsed()), &Terminal::stderr()).as_bytes())
}

fn snapshot_at(elapsed: Duration) -> Snapshot {
    let total = SECONDS * PER_SECOND;
    let done = (elapsed.as_millis() as u64 * PER_SECOND / 1_000).min(total);
    Snapshot {
        name: "classify".to_owned(),
        elapsed,
        total: Some(total),
        done,
        rejects: done / 3_500,
        nodes: nodes(done, done * 2 > total),
        incidents: Incidents { restarts: u64::from(done * 2 > total), lost: 0 },
    }
}

/// The nodes; `was_replaced` says whether worker 1 has died once.
fn nodes(rows: u64, was_replaced: bool) -> Vec<NodeLine> {
    let node = |name: &str, kind: &str, busy: f64, starved: f64, blocked: f64| NodeLine {
        name: name.to_owned(),
        kind: kind.to_owned(),
        rows,
        rate: PER_SECOND as f64,
        queue_cap: 8,
        busy,
        starved,
        blocked,
        ..NodeLine::default()
    };
    let mut nodes = vec![
        NodeLine { queue_cap: 0, ..node("photos", "source.files", 0.09, 0.0, 0.88) },
        NodeLine { queue_len: 8, limits: true, ..node("pixels", "decode.image", 0.97, 0.02, 0.01) },
        node("batches", "batch", 0.01, 0.98, 0.0),
    ];
    nodes.push(NodeLine { queue_len: 1, ..node("scores", "infer", 0.52, 0.46, 0.02) });
    for (number, device) in ["cuda:0", "cuda:1"].into_iter().enumerate() {
        let died = was_replaced && number == 1;
        nodes.push(NodeLine {
            subject: Subject::Worker,
            name: format!("worker {number}"),
            kind: device.to_owned(),
            rows: rows / 2,
            rate: PER_SECOND as f64 / 2.0,
            state: (died && rows % 5 < 2).then_some("restarting"),
            restarts: u64::from(died),
            note: Some("GPU  61 %  3.1 / 24 GiB".to_owned()),
            ..NodeLine::default()
        });
    }
    nodes.push(node("labels", "transform.topk", 0.06, 0.94, 0.0));
    nodes.push(node("out", "sink.jsonl", 0.02, 0.98, 0.0));
    nodes
}

fn workers() -> Vec<WorkerLine> {
    let worker = |number: usize, rows, restarts| WorkerLine {
        number,
        device: format!("cuda:{number}"),
        device_name: "NVIDIA A10".to_owned(),
        pid: 8_123 + number as u32,
        rows,
        restarts,
        lost: false,
    };
    vec![worker(0, 29_001, 0), worker(1, 28_733, 1)]
}

fn summary_after(elapsed: Duration) -> Summary {
    let total = SECONDS * PER_SECOND;
    let group = |code: &str, rows| RejectGroup { code: code.to_owned(), rows };
    let output = Output {
        path: "out/labels.jsonl".to_owned(),
        files: None,
        rows: total - 16,
        bytes: Some(12_300_000),
        entered: total,
        rejected: 16,
    };
    Summary {
        name: "classify".to_owned(),
        outcome: Outcome::Done,
        elapsed,
        rows: total - 16,
        rejects: vec![group("not_found", 5), group("truncated", 11)],
        rejects_path: Some("out/classify.rejects.jsonl".to_owned()),
        outputs: vec![output],
        nodes: nodes(total, true).into_iter().filter(|line| line.subject == Subject::Node).collect(),
        workers: workers(),
        warnings: vec![
            "worker 1 (cuda:1) was replaced: it died of signal 9 (kill) (likely the \
             kernel's memory killer: it has killed 1 process meanwhile)"
                .to_owned(),
        ],
        trace: Some("trace.json".to_owned()),
        verdict: Some(Verdict {
            node: "pixels".to_owned(),
            kind: "decode.image".to_owned(),
            why: "14 of 14 threads busy 97 %; the GPUs waited 46 % of the time".to_owned(),
            hints: vec!["more cores".to_owned(), "`jpeg_scale: auto`".to_owned()],
        }),
    }
}
