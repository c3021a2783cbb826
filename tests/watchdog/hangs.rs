//! A node that does not come on is named with what it holds; the run goes on as soon as it does.

use serde_json::Value as Json;

use crate::program::{Done, Folder};

const ARGS: [&str; 6] = ["run", "p.yaml", "--report", "r.json", "--metrics-addr", "127.0.0.1:0"];

/// A pipeline in which a stall is one soon.
fn pipeline(nodes: &str) -> Folder {
    let folder = Folder::new();
    folder.write("p.yaml", &format!("name: p\nrun: {{stall: 150ms, threads: {{io: 3, rows: 2}}}}\nnodes:\n{nodes}"));
    folder
}

/// The gauge of stalls of each node that is above 0.
fn gauges(address: &str) -> Vec<String> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let lines = text.lines().filter_map(|line| line.strip_prefix("flowgpu_stalled{node=\"")?.split_once('"'));
    lines.filter(|(_, rest)| !rest.ends_with(" 0")).map(|(node, _)| node.to_owned()).collect()
}

/// Runs until the stall was told twice, lets the file `go` appear, and runs to the end. Nobody else may be named.
fn check(nodes: &str, node: &str, holds: &str) -> Done {
    let folder = pipeline(nodes);
    let mut run = folder.start(&ARGS);
    let address = run.metrics_address();
    let told = format!("p: `{node}` has made no progress for 0 s: {holds}\n");
    for _ in 0..2 {
        assert_eq!(run.line_with("no progress"), told);
    }
    assert_eq!(gauges(&address), [node]);
    folder.write("go", "");
    let done = run.end();
    assert_eq!(done.code, 0, "{done:?}");
    let named = done.stderr.lines().filter(|line| line.contains("no progress"));
    assert!(named.clone().all(|line| line.contains(&format!("`{node}`")) && line.contains(holds)), "{done:?}");
    let report = folder.json("r.json");
    let stalls: &Vec<Json> = report["stalls"].as_array().expect("a list");
    assert_eq!(stalls.len(), 1, "one stall, however often it was told: {report}");
    assert_eq!((stalls[0]["node"].as_str(), stalls[0]["holds"].as_str()), (Some(node), Some(holds)));
    assert!(stalls[0]["seconds"].as_f64().expect("a number") >= 0.3, "{report}");
    let at_the_end = done.stderr.lines().filter(|line| line.contains("made no progress for") && line.starts_with("  "));
    assert_eq!(at_the_end.count(), 1, "{done:?}");
    assert_eq!(folder.rows("out.jsonl").len(), 40);
    done
}

const OUT: &str = "  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n";

#[test]
fn a_file_that_is_not_read() {
    let nodes = "  rows: {kind: source.test_slow, with: {count: 40, fetch_until: go}}\n";
    check(&format!("{nodes}{OUT}"), "rows", "reading `synthetic/39` (1 of 3 threads)");
}

#[test]
fn a_listing_that_does_not_end() {
    let nodes = "  rows: {kind: source.test_slow, with: {count: 40, list_until: go}}\n";
    check(&format!("{nodes}{OUT}"), "rows", "listing what comes after `synthetic/39`");
}

#[test]
fn a_row_that_is_not_decoded() {
    let nodes = "  rows: {kind: source.synthetic, with: {rows: {count: 40}}}
  pixels: {kind: decode.test_fault, with: {rows: [7], until: go}}\n";
    check(&format!("{nodes}{OUT}"), "pixels", "decoding `synthetic/7` (1 of 2 threads)");
}

#[test]
fn an_output_that_is_not_written() {
    let nodes = "  rows: {kind: source.synthetic, with: {rows: {count: 40}}}
  out: {kind: sink.test_slow, with: {path: out.jsonl, until: go}}\n";
    check(nodes, "out", "writing `out.jsonl`");
}

/// A model that hangs on one row, in a process whose death is the remedy.
#[test]
fn a_worker_that_does_not_come_back() {
    let folder = pipeline(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 40}}}}}}
  tensor: {{kind: transform.test_tensor, with: {{shape: [8], numbered: true}}}}
  sums: {{kind: infer.test, with: {{n: 2, batch: 8, hang: {{rows: [21], once: hung}}}}}}\n{OUT}"
    ));
    let mut run = folder.start(&["run", "p.yaml", "--isolation", "process", "--job-timeout", "3s"]);
    let line = run.line_with("no progress");
    let pid: u32 = line.split("pid ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok()).expect("a number");
    let told = format!("p: `sums` has made no progress for 0 s: worker 0 (cpu, pid {pid}) computes rows 16–23\n");
    assert_eq!(line, told);
    let done = run.end();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.rows("out.jsonl").len(), 40);
}

/// Each batch takes longer than a part of the limit, none as long as all of it: and reads wait for the model meanwhile.
#[test]
fn who_waits_is_not_named_and_who_is_slow_is_not_either() {
    let folder = Folder::new();
    folder.write(
        "p.yaml",
        &format!(
            "name: p\nrun: {{stall: 2s, queue_memory: 1MiB}}\nnodes:
  rows: {{kind: source.synthetic, with: {{rows: {{count: 96, bytes: 65536}}}}}}
  tensor: {{kind: transform.test_tensor, with: {{shape: [8]}}}}
  sums: {{kind: infer.test, with: {{n: 2, batch: 8, micros: 250000}}}}\n{OUT}"
        ),
    );
    let done = folder.run(&["run", "p.yaml"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!done.stderr.contains("no progress"), "{done:?}");
}
