//! Pipelines that are stopped at a row, and what their journals say.

use std::fs;

use engine::durable::Lines;
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::program::{Done, Folder, Under, wait_for};

/// What every run here is started with.
pub const RUN: [&str; 4] = ["run", "p.yaml", "--report", "r.json"];

/// A folder with the pipeline `p`, which commits often.
pub fn pipeline(nodes: &str) -> Folder {
    let folder = Folder::new();
    write_pipeline(&folder, "", nodes);
    folder
}

/// Writes the pipeline file again, with more under `run:`.
pub fn write_pipeline(folder: &Folder, run: &str, nodes: &str) {
    folder.write("p.yaml", &format!("name: p\nrun: {{commit_every: 10ms{run}}}\nnodes:\n{nodes}"));
}

/// `count` rows through a model into `out.jsonl`. Where the marker `hung` does not exist, the model hangs on row `hangs_at`.
pub fn sums(count: u64, hangs_at: u64) -> String {
    format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}\n{}",
        sums_of("rows", hangs_at, "out: {kind: sink.jsonl, from: sums, with: {path: out.jsonl}}")
    )
}

/// The rows of a source through a model that hangs once on row `hangs_at`, into a sink.
pub fn sums_of(source: &str, hangs_at: u64, sink: &str) -> String {
    format!(
        "  tensor: {{kind: transform.test_tensor, from: {source}, with: {{shape: [4], numbered: true}}}}
  sums: {{kind: infer.test, with: {{n: 2, batch: 1, hang: {{rows: [{hangs_at}], once: hung}}}}}}
  {sink}
"
    )
}

/// Runs to the end what was made not to hang, in a folder of its own, and returns that.
pub fn undisturbed(nodes: &str) -> (Folder, Done) {
    let folder = pipeline(nodes);
    folder.write("hung", "");
    let done = folder.run(&RUN);
    (folder, done)
}

/// The records of a journal.
pub fn records(folder: &Folder) -> Vec<Json> {
    let lines = Lines::read(&folder.path(".flowgpu/p/journal")).expect("a journal").lines;
    lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The rows of all sources that the last cut of a journal holds; 0 without one.
pub fn committed(folder: &Folder) -> u64 {
    let records = records(folder);
    let cut = records.iter().rev().find_map(|record| record.get("cut"));
    let sources = cut.and_then(|cut| cut["sources"].as_array().cloned()).unwrap_or_default();
    sources.iter().map(|source| source["done"].as_u64().expect("a count")).sum()
}

/// Starts a run, waits until so many rows are committed, kills it, and says how many were committed in the end.
pub fn kill_at(folder: &Folder, args: &[&str], n_rows: u64) -> u64 {
    let run = stuck_at(folder, args, n_rows);
    run.signal(Signal::KILL);
    run.killed();
    committed(folder)
}

/// Starts a run and waits until so many rows are committed.
pub fn stuck_at(folder: &Folder, args: &[&str], n_rows: u64) -> Under {
    let run = folder.start(args);
    wait_for("rows to be committed", || (committed(folder) >= n_rows).then_some(()));
    run
}

/// Fails unless the files have the same bytes in both folders.
#[track_caller]
pub fn same(expected: &Folder, found: &Folder, names: &[&str]) {
    for name in names {
        let [expected, found] = [expected, found].map(|folder| fs::read(folder.path(name)).expect("a file"));
        assert!(expected == found, "`{name}`: {} bytes undisturbed, {} here", expected.len(), found.len());
    }
}

/// Rows that a node of the report has let out.
pub fn rows_out(folder: &Folder, node: &str) -> u64 {
    let report = folder.json("r.json");
    let nodes = report["nodes"].as_array().expect("nodes");
    let node = nodes.iter().find(|found| found["name"] == node).expect("the node");
    node["rows_out"].as_u64().expect("a count")
}

/// A figure at the top of the report.
pub fn figure(folder: &Folder, name: &str) -> u64 {
    folder.json("r.json")[name].as_u64().unwrap_or_else(|| panic!("no `{name}` in the report"))
}

/// No unfinished output is in the folder.
#[track_caller]
pub fn nothing_unfinished(folder: &Folder) {
    let names = folder.names(".");
    assert!(names.iter().all(|name| !name.ends_with(".partial")), "{names:?}");
}
