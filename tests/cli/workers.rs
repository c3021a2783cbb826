//! Where models run, and the trace that shows it.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value as Json;

use crate::program::{Done, Folder, ROOT, SHIPPED, done};

const MODEL: &str = "  rows: {kind: source.synthetic, with: {rows: {count: 100}}}\n  tensor: {kind: transform.test_tensor}\n  model: {kind: infer.test, with: {batch: 8}}\n  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}\n";

/// The quick start, with its photographs and its model.
fn quickstart() -> Folder {
    let folder = Folder::new();
    let pipelines = Path::new(ROOT).join("pipelines");
    for name in ["photos", "models", "quickstart.yaml"] {
        symlink(pipelines.join(name), folder.path(name)).expect("a link");
    }
    folder
}

fn run_shipped(folder: &Folder, args: &[&str]) -> Done {
    // The link is followed by name, so that outputs stay in the folder.
    done(folder.command(SHIPPED, args).output().expect("the program starts"))
}

#[test]
fn a_wrong_word_is_refused_with_those_that_there_are() {
    let folder = Folder::with_nodes(MODEL);
    let check = |option: &str, word: &str, parts: &[&str]| {
        let done = folder.run(&["run", "p.yaml", option, word]);
        assert_eq!((done.code, &*done.stdout), (2, ""), "{done:?}");
        for part in parts {
            assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
        }
    };
    check("--isolation", "proces", &["[possible values: thread, process]", "a similar value exists: 'process'"]);
    check("--placement", "both", &["[possible values: replicate, spread]"]);
    check("--workers-per-device", "0", &["wanted `auto` or a number of workers from 1 on, and this is `0`"]);
    check("--workers-per-device", "two", &["wanted `auto` or a number of workers from 1 on"]);
    check("--job-timeout", "30", &["wanted a duration such as `50ms`, `2s`, `5m` or `1h`, and this is `30`"]);
    check("--trace", ".", &["the trace `.` is a folder: add a file name"]);
    check("--trace", "/dev/null/t.json", &["cannot write the trace `/dev/null/t.json`: "]);
    assert_eq!(folder.names(""), ["p.yaml"], "nothing was run");
}

#[test]
fn the_options_have_their_place_in_the_file_and_the_command_line_wins() {
    let folder = Folder::with_nodes(MODEL);
    let options = "run: {isolation: thread, workers_per_device: auto, placement: spread, job_timeout: 5m, trace: t/in-file.json}\nnodes:";
    folder.write("deep/p.yaml", &folder.read("p.yaml").replace("nodes:", options));
    let done = folder.run(&["run", "deep/p.yaml"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.names("deep/t"), ["in-file.json"], "its paths start where it lies");
    let done = folder.run(&["run", "deep/p.yaml", "--trace", "given.json", "--placement", "replicate"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stderr.contains("\n  trace in given.json: open it in ui.perfetto.dev or chrome://tracing\n"),
        "{done:?}"
    );
}

#[test]
fn completions_know_the_words() {
    let done = run_shipped(&Folder::new(), &["completions", "bash"]);
    for part in [
        "--isolation",
        "--trace",
        "--workers-per-device",
        "--job-timeout",
        "\"thread process\"",
        "\"replicate spread\"",
    ] {
        assert!(done.stdout.contains(part), "{part}");
    }
}

/// A trace as a list of events that viewers take: each has a phase and, but for names, a time.
fn events(trace: &Json) -> &Vec<Json> {
    let events = trace.as_array().expect("a list");
    for event in events {
        let phase = event["ph"].as_str().expect("a phase");
        assert!(phase == "M" || event["ts"].as_f64().is_some_and(|ts| ts >= 0.0), "{event}");
        assert!(phase != "X" || event["dur"].as_f64().is_some_and(|dur| dur >= 0.0), "{event}");
    }
    events
}

fn named<'a>(events: &'a [Json], phase: &str, name: &str) -> Vec<&'a Json> {
    events.iter().filter(|event| event["ph"] == phase && event["name"] == name).collect()
}

#[test]
fn a_trace_has_the_work_of_each_node_and_the_jobs_with_their_rows() {
    let folder = quickstart();
    let done = run_shipped(&folder, &["run", "quickstart.yaml", "--trace", "new/t.json", "--report", "r.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.names("new"), ["t.json"], "no temporary file is left");
    let (trace, report) = (folder.json("new/t.json"), folder.json("r.json"));
    let events = events(&trace);
    let n_rows = report["rows_in"].as_u64().expect("a number");
    for node in ["photos", "pixels", "labels", "out"] {
        assert!(!named(events, "X", node).is_empty(), "{node}");
    }
    let jobs = named(events, "b", "scores");
    let rows: u64 = jobs.iter().map(|job| job["args"]["rows"].as_u64().expect("a number")).sum();
    assert_eq!((rows, jobs.len()), (n_rows, named(events, "e", "scores").len()));
    assert!(jobs.iter().all(|job| job["args"]["worker"] == 0), "{jobs:?}");
}

#[test]
fn a_run_that_fails_leaves_a_whole_trace_and_one_that_never_began_leaves_none() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 1000}}}\n  bad: {kind: transform.test_fault, with: {after: 500}}\n  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}\n",
    );
    let done = folder.run(&["run", "p.yaml", "--trace", "t.json"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(!named(events(&folder.json("t.json")), "X", "rows").is_empty());
    assert!(done.stderr.contains("\n  trace in t.json: "), "{done:?}");
    folder.write("none.yaml", "name: none\nnodes:\n  files: {kind: source.files, with: {path: 'none/*'}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n");
    folder.write("t/t.json", "earlier");
    let done = folder.run(&["run", "none.yaml", "--trace", "t/t.json"]);
    assert_eq!((done.code, &*folder.read("t/t.json")), (2, "earlier"), "{done:?}");
    assert_eq!(folder.names("t"), ["t.json"]);
}

#[test]
fn a_trace_that_cannot_be_written_does_not_cost_the_run() {
    let folder = Folder::with_nodes(MODEL);
    let done = folder.run(&["run", "p.yaml", "--trace", "/dev/full"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("fault: cannot write the trace `/dev/full`: no space left on device"), "{done:?}");
    assert_eq!(folder.rows("out/rows.jsonl").len(), 100);
    let done = folder.run(&["run", "p.yaml", "--trace", "one.json", "--report", "./one.json"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("the report and the trace are to be one file"), "{done:?}");
}

#[test]
fn worker_processes_give_the_bytes_that_threads_give() {
    let folder = quickstart();
    let run = |isolation: &str| {
        let report = format!("{isolation}.json");
        let args = ["run", "quickstart.yaml", "--isolation", isolation, "--report", &report, "--trace", "t.json"];
        let command = folder.command(SHIPPED, &args).spawn().expect("the program starts");
        let own = command.id();
        let done = done(command.wait_with_output().expect("it ends"));
        assert_eq!(done.code, 0, "{done:?}");
        (own, folder.json(&report)["workers"].clone(), folder.read("out/labels.jsonl"))
    };
    let (own, workers, by_thread) = run("thread");
    assert!(workers.as_array().expect("a list").iter().all(|worker| worker["pid"] == own), "{workers}");
    let (own, workers, by_process) = run("process");
    assert_eq!(by_process, by_thread);
    let workers = workers.as_array().expect("a list");
    let pids: BTreeSet<_> = workers.iter().map(|worker| worker["pid"].as_u64().expect("a number")).collect();
    assert!(pids.len() == workers.len() && !pids.contains(&u64::from(own)) && !pids.contains(&0), "{workers:?}");
    let rows: u64 = workers.iter().map(|worker| worker["rows"].as_u64().expect("a number")).sum();
    assert_eq!(rows, by_thread.lines().count() as u64);
    for worker in workers {
        assert_eq!(
            (&worker["device"], &worker["restarts"], &worker["nodes"][0]),
            (&"cpu".into(), &0.into(), &"scores".into())
        );
    }
    let trace = folder.json("t.json");
    let computes = named(events(&trace), "X", "compute");
    assert!(!computes.is_empty() && computes.iter().all(|event| event["pid"].as_u64() > Some(1)), "{computes:?}");
}
