//! What cannot be measured, and being told to stop.

use std::fs;

use rustix::process::Signal;

use crate::program::{Folder, TESTING, Under, wait_for};

const OUT: &str = "  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}\n";

/// Measures in vain: what was said.
fn refused(folder: &Folder) -> String {
    let done = folder.run(&["bench", "p.yaml", "--seconds", "1"]);
    assert_eq!((done.code, &*done.stdout), (1, ""), "{done:?}");
    done.stderr
}

#[test]
fn an_empty_input_is_told() {
    let folder =
        Folder::with_nodes(&format!("  rows: {{kind: source.synthetic, with: {{rows: {{count: 0}}}}}}\n{OUT}"));
    assert_eq!(refused(&folder), "fault: there is nothing to measure: the input is empty\n");
}

#[test]
fn an_input_of_bad_files_alone_is_told_after_one_pass() {
    let nodes = "  files: {kind: source.files, with: {path: 'bad/*'}}\n  pixels: {kind: decode.image, with: {resize: [8, 8]}}\n";
    let folder = Folder::with_nodes(&format!("{nodes}  model: {{kind: infer.test}}\n{OUT}"));
    ["bad/a.jpg", "bad/b.png"].iter().for_each(|file| folder.write(file, "no picture"));
    let told = "fault: there is nothing to measure: no row came through, and 2 rows were rejected\n";
    assert_eq!(refused(&folder), told);
    // Their rejects are rows of another output.
    folder.write(
        "p.yaml",
        &(folder.read("p.yaml") + "  broken: {kind: sink.csv, from: pixels.rejects, with: {path: out/broken.csv}}\n"),
    );
    assert_eq!(refused(&folder), told);
}

#[test]
fn mistakes_are_told_as_ever() {
    let folder =
        Folder::with_nodes(&format!("  rows: {{kind: source.synthetic, with: {{rows: {{count: 3}}}}}}\n{OUT}"));
    for args in
        [&["bench", "p.yaml", "--set", "n=3"][..], &["bench", "p.yaml", "--seconds", "0"], &["bench", "none.yaml"]]
    {
        assert_eq!(folder.run(args).code, 2, "{args:?}");
    }
}

#[test]
fn a_signal_ends_it_at_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let nodes = "  rows: {kind: source.test_slow, with: {count: 1000000, micros: 1000}}\n";
        let folder = Folder::with_nodes(&format!("{nodes}{OUT}"));
        let args = ["--default-signal=INT,TERM", TESTING, "bench", "p.yaml", "--seconds", "10000"];
        let bench = Under::start(folder.command("env", &args));
        let threads = format!("/proc/{}/task", bench.child.id());
        wait_for("a thread that listens", || {
            let threads = fs::read_dir(&threads).ok()?;
            let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            threads.flatten().any(|thread| name(thread).trim() == "signals").then_some(())
        });
        bench.signal(signal);
        let done = bench.end();
        assert_eq!((done.code, &*done.stderr), (130, "p: interrupted; nothing was written\n"), "{done:?}");
        assert_eq!(folder.names("."), ["p.yaml"]);
    }
}
