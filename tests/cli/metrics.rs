//! `--metrics-addr`: what a Prometheus server would read while the run goes on.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::program::{Folder, wait_for};

const ENDLESS: &str = "  rows: {kind: source.test_slow, with: {count: 1000000000, micros: 50}}\n  some: {kind: transform.test_reject, with: {share: 0.05}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n";

/// One request: the status line, the headers, the body.
pub fn request(address: &str, head: &str) -> (String, String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(format!("{head}\r\nHost: {address}\r\n\r\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let (status, headers) = head.split_once("\r\n").expect("a status line");
    (status.to_owned(), headers.to_owned(), body.to_owned())
}

/// The samples of a scrape by their name with labels.
pub fn scrape(address: &str) -> BTreeMap<String, f64> {
    let (status, headers, body) = request(address, "GET /metrics HTTP/1.1");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(headers.contains("Content-Type: text/plain; version=0.0.4"), "{headers}");
    assert!(headers.contains(&format!("Content-Length: {}\r\n", body.len())), "{headers}");
    let mut samples = BTreeMap::new();
    let mut declared = String::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, ty) = rest.split_once(' ').expect("a name and a type");
            assert!(ty == "gauge" || (ty == "counter" && name.ends_with("_total")), "{line}");
            assert!(body.contains(&format!("# HELP {name} ")), "{name}");
            declared = name.to_owned();
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            assert_eq!(name.split('{').next(), Some(&*declared), "each sample follows its type");
            samples.insert(name.to_owned(), value.parse().expect("a number"));
        }
    }
    samples
}

fn sample(address: &str, name: &str) -> f64 {
    let samples = scrape(address);
    *samples.get(name).unwrap_or_else(|| panic!("no {name} in {samples:?}"))
}

#[test]
fn figures_rise_during_the_run_and_end_with_it() {
    let folder = Folder::with_nodes(ENDLESS);
    let mut run = folder.start(&["run", "p.yaml", "--metrics-addr", "127.0.0.1:0"]);
    let address = run.metrics_address();
    let written = "flowgpu_rows_total{node=\"out\",kind=\"sink.jsonl\"}";
    let first = wait_for("rows", || Some(sample(&address, written)).filter(|rows| *rows > 0.0));
    wait_for("more rows", || Some(sample(&address, written)).filter(|rows| *rows > first));
    let samples =
        wait_for("rejects", || Some(scrape(&address)).filter(|samples| samples["flowgpu_run_rejects_total"] > 0.0));
    for metric in [
        "rows_in_total",
        "rejects_total",
        "bytes_total",
        "busy_seconds_total",
        "starved_seconds_total",
        "blocked_seconds_total",
        "queue_batches",
    ] {
        for label in [
            "node=\"rows\",kind=\"source.test_slow\"",
            "node=\"some\",kind=\"transform.test_reject\"",
            "node=\"out\",kind=\"sink.jsonl\"",
        ] {
            assert!(
                samples.contains_key(&format!("flowgpu_{metric}{{{label}}}")),
                "{metric} of {label} in {samples:?}"
            );
        }
    }
    assert_eq!(samples["flowgpu_run_rows_expected"], 1e9);
    run.signal(Signal::INT);
    assert_eq!(run.end().code, 130);
    assert!(TcpStream::connect(&address).is_err(), "the port is free again");
}

#[test]
fn workers_have_figures_of_their_own() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.test_slow, with: {count: 1000000000, micros: 50}}\n  tensor: {kind: transform.test_tensor}\n  model: {kind: infer.test, with: {batch: 8}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n",
    );
    let mut run = folder.start(&["run", "p.yaml", "--isolation", "process", "--metrics-addr", "127.0.0.1:0"]);
    let address = run.metrics_address();
    let rows = "flowgpu_worker_rows_total{worker=\"0\",device=\"cpu\"}";
    wait_for("rows", || Some(sample(&address, rows)).filter(|rows| *rows > 0.0));
    let samples = scrape(&address);
    assert_eq!(samples["flowgpu_worker_restarts_total{worker=\"0\",device=\"cpu\"}"], 0.0);
    let in_state =
        |state: &str| samples[&format!("flowgpu_worker_state{{worker=\"0\",device=\"cpu\",state=\"{state}\"}}")];
    assert_eq!(["starting", "serving", "quarantine", "lost", "stopped"].map(in_state), [0.0, 1.0, 0.0, 0.0, 0.0]);
    run.signal(Signal::INT);
    assert_eq!(run.end().code, 130);
}

#[test]
fn only_figures_are_served_and_silent_clients_do_not_hinder_others() {
    let folder = Folder::with_nodes(ENDLESS);
    let mut run = folder.start(&["run", "p.yaml", "--metrics-addr", "localhost:0"]);
    let address = run.metrics_address();
    let silent: Vec<_> = (0..5).map(|_| TcpStream::connect(&address).expect("it listens")).collect();
    assert_eq!(request(&address, "GET / HTTP/1.1").0, "HTTP/1.1 404 Not Found");
    assert_eq!(request(&address, "POST /metrics HTTP/1.1").0, "HTTP/1.1 405 Method Not Allowed");
    let (status, _, body) = request(&address, "HEAD /metrics HTTP/1.1");
    assert_eq!((&*status, &*body), ("HTTP/1.1 200 OK", ""));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..5).for_each(|_| assert!(!scrape(&address).is_empty())));
        }
    });
    drop(silent);
    run.signal(Signal::INT);
    assert_eq!(run.end().code, 130);
}

#[test]
fn a_port_that_is_taken_is_told_before_the_run() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let folder = Folder::with_nodes(ENDLESS);
    let done = folder.run(&["run", "p.yaml", "--metrics-addr", &address]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains(&address), "{done:?}");
    assert_eq!(folder.names(""), ["p.yaml"]);
}
