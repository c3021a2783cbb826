//! Signals: once, twice.

use std::process::Command;

use rustix::process::Signal;

use crate::metrics::scrape;
use crate::program::{Folder, TESTING, Under, wait_for};

const ARGS: [&str; 4] = ["run", "p.yaml", "--metrics-addr", "127.0.0.1:0"];

/// A run that has made some rows and would go on for hours.
fn under_way(folder: &Folder) -> Under {
    let mut run = Under::start(with_signals(folder, &ARGS));
    let address = run.metrics_address();
    wait_for_rows(&address, 0.0);
    run
}

/// The command as it is where signals do what they do by default, wherever the tests run.
pub fn with_signals(folder: &Folder, args: &[&str]) -> Command {
    folder.command("env", &[&["--default-signal=HUP,INT,TERM", TESTING], args].concat())
}

/// Waits until more than `before` rows are tensors, and says how many.
pub fn wait_for_rows(address: &str, before: f64) -> f64 {
    wait_for("rows", || {
        let samples = scrape(address);
        let made = samples.iter().find(|(name, _)| name.starts_with("flowgpu_rows_total{node=\"tensor\""));
        made.map(|(_, rows)| *rows).filter(|rows| *rows > before)
    })
}

pub fn endless(sink: &str) -> Folder {
    Folder::with_nodes(&format!(
        "  rows: {{kind: source.test_slow, with: {{count: 1000000000, micros: 100}}}}\n  tensor: {{kind: transform.test_tensor}}\n  model: {{kind: infer.test}}\n  out: {sink}\n"
    ))
}

#[test]
fn once_finishes_what_is_in_flight_and_says_where_it_is() {
    for (signal, asker, again) in [
        (Signal::INT, "stopping", "Ctrl-C again to abort"),
        (Signal::TERM, "stopping after SIGTERM", "a second signal aborts"),
        (Signal::HUP, "stopping after SIGHUP", "a second signal aborts"),
    ] {
        let folder = endless("{kind: sink.jsonl, with: {path: out/rows.jsonl}}");
        folder.write("out/rows.jsonl", "earlier\n");
        let run = under_way(&folder);
        run.signal(signal);
        let done = run.end();
        assert_eq!(done.code, 130, "{done:?}");
        let told = done.stderr.lines().find(|line| line.starts_with(&format!("p: {asker}: "))).expect("a line");
        let rest = format!(" safe; finishing what is in flight, for 20 s at most ({again})");
        assert!(told.ends_with(&rest), "{told}");
        let last = done.stderr.lines().last().expect("a line");
        let again = "to run again: ";
        assert!(
            last.contains("`out/.rows.jsonl.partial`") && last.contains(again) && last.ends_with(&ARGS.join(" ")),
            "{last}"
        );
        let rows = folder.rows("out/.rows.jsonl.partial");
        assert!(!rows.is_empty());
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row["uri"], format!("synthetic/{index}"), "every row from the first on, in order");
        }
        let n_rows = rows.len().to_string();
        assert!(done.stderr.replace(',', "").contains(&format!("{n_rows} in = {n_rows} out + 0 rejected")), "{done:?}");
        assert_eq!(folder.read("out/rows.jsonl"), "earlier\n", "an interrupted run takes nobody's place");
    }
}

#[test]
fn an_interrupted_run_has_a_report() {
    let folder = endless("{kind: sink.jsonl, with: {path: out/rows.jsonl}}");
    folder.write("p.yaml", &folder.read("p.yaml").replace("nodes:", "run: {report: r.json}\nnodes:"));
    let run = under_way(&folder);
    run.signal(Signal::INT);
    assert_eq!(run.end().code, 130);
    let report = folder.json("r.json");
    assert_eq!((&report["outcome"], &report["exit_code"]), (&"interrupted".into(), &130.into()));
    assert_eq!(report["outputs"][0]["rows"], folder.rows("out/.rows.jsonl.partial").len());
}

#[test]
fn twice_aborts_at_once() {
    for (first, second) in [(Signal::INT, Signal::INT), (Signal::TERM, Signal::INT), (Signal::HUP, Signal::TERM)] {
        // Draining would take this sink hours.
        let folder = endless("{kind: sink.test_slow, with: {path: out/rows.jsonl, micros: 10000000}}");
        let mut run = under_way(&folder);
        run.signal(first);
        run.line_with("stopping");
        run.signal(second);
        let done = run.end();
        assert_eq!(done.code, 130, "{done:?}");
        assert!(done.stderr.lines().last().expect("a line").starts_with("p: aborted: "), "{done:?}");
        assert!(!folder.path("out/rows.jsonl").exists());
    }
}
