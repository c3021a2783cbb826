//! A model that ends its process, hangs, dawdles or panics does so on the chosen rows and on no others.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A run of 300 rows: more than there are different tensors without a number.
struct Run(TempDir);

impl Run {
    /// With these options of the model.
    fn of(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipeline = format!(
            "name: p\nnodes:\n  rows: {{kind: source.synthetic, with: {{rows: {{count: 300}}}}}}\n  \
             tensor: {{kind: transform.test_tensor, with: {{numbered: true}}}}\n  \
             model: {{kind: infer.test, with: {{n: 2, batch: 8, {options}}}}}\n  \
             out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}\n"
        );
        fs::write(folder.path().join("p.yaml"), pipeline).unwrap();
        Run(folder)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgpu-test"));
        command.args(["run", "p.yaml"]).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn end(&self) -> Output {
        self.command().output().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn rows(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Whether all rows are there with the right numbers, but for `missing`.
    fn assert_right_but_for(&self, missing: &[u64]) {
        let rows = self.rows("out.jsonl");
        let indices: Vec<u64> = (0..300).filter(|index| !missing.contains(index)).collect();
        assert_eq!(rows.len(), indices.len());
        for (row, index) in rows.iter().zip(indices) {
            assert_eq!(row["uri"], format!("synthetic/{index}"));
            let logits: Vec<f32> = serde_json::from_value(row["logits"].clone()).unwrap();
            assert_eq!(logits, nodes::testing::expected_numbered_logits(index, 4, 2), "row {index}");
        }
    }
}

#[test]
fn a_crash_ends_the_process_as_it_says() {
    for (how, signal, code) in [("abort", Some(6), None), ("segfault", Some(11), None), ("exit", None, Some(0))] {
        let run = Run::of(&format!("crash: {{rows: [277], how: {how}}}"));
        let done = run.end();
        assert_eq!((done.status.signal(), done.status.code()), (signal, code), "{how}: {done:?}");
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(stderr.contains("infer.test ends its process on purpose: row 277"), "{how}: {stderr}");
        assert!(!run.path("out.jsonl").exists(), "{how}");
    }
}

#[test]
fn a_model_can_end_its_process_while_it_is_loaded() {
    let done = Run::of("fail: load_crash").end();
    assert_eq!(done.status.signal(), Some(6), "{done:?}");
}

#[test]
fn rows_that_do_not_come_harm_nobody() {
    let run = Run::of("crash: {rows: [300]}, hang: {rows: [1000]}, panic: {rows: [551]}");
    assert_eq!(run.end().status.code(), Some(0));
    run.assert_right_but_for(&[]);
}

#[test]
fn what_happens_once_does_not_happen_again() {
    let run = Run::of("crash: {rows: [12], once: crashed}");
    assert_eq!(run.end().status.signal(), Some(6));
    assert!(run.path("crashed").exists());
    assert_eq!(run.end().status.code(), Some(0));
    run.assert_right_but_for(&[]);
}

#[test]
fn a_panic_costs_its_row() {
    let run = Run::of("panic: {rows: [26, 277]}");
    assert_eq!(run.end().status.code(), Some(3));
    run.assert_right_but_for(&[26, 277]);
    let rejects = run.rows("p.rejects.jsonl");
    let found: Vec<_> =
        rejects.iter().map(|row| (row["uri"].as_str().unwrap(), row["code"].as_str().unwrap())).collect();
    assert_eq!(found, [("synthetic/26", "panic"), ("synthetic/277", "panic")]);
}

#[test]
fn slow_rows_take_their_time_each() {
    let run = Run::of("slow: {rows: [3, 4, 200], micros: 50000}");
    let start = Instant::now();
    assert_eq!(run.end().status.code(), Some(0));
    assert!(start.elapsed() >= Duration::from_millis(150));
    run.assert_right_but_for(&[]);
}

#[test]
fn a_hang_does_not_end() {
    let run = Run::of("hang: {rows: [5], once: hanging}");
    let mut child = run.command().stderr(Stdio::null()).spawn().unwrap();
    let patience = Instant::now();
    while !run.path("hanging").exists() {
        assert!(patience.elapsed() < Duration::from_secs(120), "it never came to row 5");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.try_wait().unwrap(), None);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!run.path("out.jsonl").exists());
}
