//! Whether the readers that people use find in our outputs what is in them: pyarrow, polars, duckdb, webdataset, safetensors,
//! numpy, in a Python environment of their own.

use std::path::Path;
use std::process::Command;

use crate::program::Folder;

const PIPELINE: &str = "\
name: p
nodes:
  rows: {kind: source.synthetic, with: {rows: {count: 250}}}
  tensors: {kind: transform.test_tensor, from: rows, with: {shape: [2, 3], numbered: true, as: x}}
  model: {kind: infer.test, with: {column: x, as: m, n: 4, batch: 16}}
  labels: {kind: transform.topk, with: {column: m, k: 2, as: labels}}
  all: {kind: transform.join, from: [tensors, labels]}
  text: {kind: sink.jsonl, from: all, with: {path: rows.jsonl, columns: [uri, x, labels]}}
  table: {kind: sink.parquet, from: all, with: {path: p.parquet, columns: [uri, x, labels], rotate: {rows: 100}, row_group_rows: 40}}
  zipped: {kind: sink.jsonl, from: all, with: {path: g.jsonl.gz, columns: [uri, x, labels], rotate: {bytes: 8KiB}}}
  packed: {kind: sink.jsonl, from: all, with: {path: z.jsonl.zst, columns: [uri]}}
  cells: {kind: sink.csv, from: all, with: {path: c.csv.gz, columns: [uri, labels]}}
  archives: {kind: sink.webdataset, from: all, with: {path: w.tar, columns: {json: [uri], x.npy: x}, rotate: {rows: 100}}}
  tensors_out: {kind: sink.safetensors, from: all, with: {path: s.safetensors, columns: [x], rotate: {rows: 70}}}
  array: {kind: sink.npy, from: all, with: {path: n.npy, column: x}}
";

/// The Python of the environment for `requirements`, which is made if it is not there yet.
fn python(root: &Path, requirements: &Path) -> String {
    let made = Command::new("python3").arg(root.join("scripts/python_env.py")).arg(requirements).output();
    let made = made.expect("python3 is there");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).expect("a path").trim().to_owned()
}

#[test]
fn the_readers_of_each_form_read_the_values_that_were_written() {
    let folder = Folder::new();
    folder.write("p.yaml", PIPELINE);
    let done = folder.run(&["run", "p.yaml"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = root.join("tests/outputs");
    let read = Command::new(python(root, &here.join("requirements.txt")))
        .arg(here.join("read.py"))
        .arg(folder.path("."))
        .output()
        .expect("python starts");
    assert!(
        read.status.success(),
        "{}{}",
        String::from_utf8_lossy(&read.stdout),
        String::from_utf8_lossy(&read.stderr)
    );
}
