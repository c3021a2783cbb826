//! Where models run, and the trace that shows it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value as Json, json};

use crate::program::{Done, Folder, ROOT, SHIPPED, TESTING, done, wait_for};

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
    let done = folder.run(&["run", "deep/p.yaml", "--trace", "given.json", "--placement", "replicate", "--fresh"]);
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

/// Of two nodes that work at the same rank, none waits for the other's end, whichever of them the file names first.
#[test]
fn branches_with_sources_of_their_own_take_turns_on_the_threads_for_rows() {
    let branch = |name: &str, before: &str, from: &str| {
        format!(
            "  {name}: {{kind: source.synthetic, with: {{rows: {{count: 400}}}}}}\n{before}  \
             {name}_busy: {{kind: transform.test_spin, from: {from}, with: {{micros: 1000}}}}\n  \
             {name}_out: {{kind: sink.jsonl, with: {{path: {name}.jsonl}}}}\n"
        )
    };
    let deeper = "  b_batch: {kind: batch, from: b, with: {size: 8}}\n";
    for second in [branch("b", "", "b"), branch("b", deeper, "b_batch")] {
        let folder = Folder::with_nodes(&format!("{}{second}", branch("a", "", "a")));
        let pipeline = folder.read("p.yaml").replace("nodes:", "run: {threads: {rows: 1}}\nnodes:");
        folder.write("p.yaml", &pipeline);
        let done = folder.run(&["run", "p.yaml", "--trace", "t.json"]);
        assert_eq!(done.code, 0, "{done:?}");
        let trace = folder.json("t.json");
        let times = |node: &str| -> Vec<f64> {
            let mut times: Vec<_> =
                named(events(&trace), "X", node).iter().map(|span| span["ts"].as_f64().expect("a time")).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let [a, b] = ["a_busy", "b_busy"].map(times);
        let half = a[a.len() / 2];
        assert!(b[0] < half && half < b[b.len() - 1], "{half} in {b:?}");
    }
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
    let done = folder.run(&["run", "p.yaml", "--trace", "one.json", "--report", "./one.json", "--fresh"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("the report and the trace are to be one file"), "{done:?}");
}

#[test]
fn a_run_that_is_killed_leaves_a_trace_that_viewers_read() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.test_slow, with: {count: 1000000000, micros: 50}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n",
    );
    let run = folder.start(&["run", "p.yaml", "--trace", "t.json"]);
    let partial = ".t.json.partial";
    wait_for("events", || std::fs::metadata(folder.path(partial)).ok().filter(|file| file.len() > 0));
    run.signal(Signal::KILL);
    run.killed();
    // What viewers do about a list without an end.
    let text = folder.read(partial);
    let list = format!("{}]", text.trim_end().trim_end_matches(','));
    let trace: Json = serde_json::from_str(&list).unwrap_or_else(|error| panic!("{error}: {list}"));
    assert!(!named(events(&trace), "X", "rows").is_empty());
    assert!(!folder.path("t.json").exists());
}

#[test]
fn worker_processes_are_told_with_their_rows_and_traced_by_stream() {
    let folder = Folder::with_nodes(MODEL);
    let args = ["run", "p.yaml", "--isolation", "process", "--report", "r.json", "--trace", "t.json"];
    let done = folder.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    let worker = folder.json("r.json")["workers"][0].clone();
    assert_eq!((&worker["device"], &worker["rows"], &worker["state"]), (&"cpu".into(), &100.into(), &"stopped".into()));
    let line = format!("\n  worker 0  cpu  pid {}  100 rows\n", worker["pid"]);
    assert!(done.stderr.contains(&line), "{line} in {}", done.stderr);
    let trace = folder.json("t.json");
    let computes = named(events(&trace), "X", "compute");
    let rows: u64 = computes.iter().map(|event| event["args"]["rows"].as_u64().expect("a number")).sum();
    assert_eq!(rows, 100);
    assert!(computes.iter().all(|event| event["pid"] == 2), "the worker is a process of its own: {computes:?}");
    // By threads there is nothing to tell.
    assert!(!folder.run(&["run", "p.yaml"]).stderr.contains("worker"));
}

#[test]
fn a_worker_that_was_replaced_is_told_with_what_it_died_of() {
    let nodes = MODEL
        .replace("{kind: transform.test_tensor}", "{kind: transform.test_tensor, with: {numbered: true}}")
        .replace("{batch: 8}", "{batch: 8, crash: {rows: [42], how: segfault, once: died}}");
    let folder = Folder::with_nodes(&nodes);
    let done = folder.run(&["run", "p.yaml", "--isolation", "process", "--report", "r.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let worker = folder.json("r.json")["workers"][0].clone();
    assert_eq!((&worker["rows"], &worker["restarts"]), (&100.into(), &1.into()));
    assert_eq!(worker["trouble"], "died of signal 11 (segmentation fault)");
    for part in [
        format!("\n  worker 0  cpu  pid {}  100 rows  1 restart\n", worker["pid"]),
        "\n  worker 0 (cpu) was replaced: it died of signal 11 (segmentation fault)\n".to_owned(),
    ] {
        assert!(done.stderr.contains(&part), "{part} in {}", done.stderr);
    }
}

#[test]
fn a_worker_that_cannot_live_ends_the_run_with_its_last_words() {
    let folder = Folder::with_nodes(MODEL);
    folder.write("worker", "#!/bin/sh\necho 'libcudart.so.13: cannot open shared object file' >&2\nexit 127\n");
    let program = folder.path("worker");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a file of one's own");
    let gpu = json!({"uuid": "GPU-00000000-0000-0000-0000-000000000000", "name": "Stand-in", "memory": 8u64 << 30});
    folder.write("gpus.json", &json!({"driver": "580.159", "gpus": [gpu]}).to_string());
    let mut command = folder.command(TESTING, &["run", "p.yaml", "--device", "cuda", "--report", "r.json"]);
    command.env("FLOWGPU_NVML", flowgpu_standin_nvml::library()).env("FLOWGPU_STANDIN", folder.path("gpus.json"));
    command.env("FLOWGPU_WORKER_CUDA", program).env_remove("CUDA_VISIBLE_DEVICES");
    let done = done(command.output().expect("the program starts"));
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("fault: `model`: worker 0 (cuda:0, pid "), "{done:?}");
    assert!(done.stderr.contains(") exited with code 127, 5 times in a row without a batch in between\n"), "{done:?}");
    let words = "  its last words:\n    libcudart.so.13: cannot open shared object file\n";
    assert!(done.stderr.contains(words), "{done:?}");
    assert!(done.stderr.lines().last().expect("a line").contains("; to run again: "), "{done:?}");
    let fault = &folder.json("r.json")["fault"];
    assert_eq!(fault["details"][0], "its last words:\nlibcudart.so.13: cannot open shared object file");
}
