//! A pipeline that is another one when its run is started again.

use crate::program::Folder;
use crate::scene::{RUN, kill_at, pipeline, rows_out, same, sums, undisturbed, write_pipeline};

/// A run of `nodes` that was killed with 300 of 500 rows committed.
fn killed(nodes: &str) -> Folder {
    let folder = pipeline(nodes);
    assert_eq!(kill_at(&folder, &RUN, 300), 300);
    folder
}

#[test]
fn what_changes_results_keeps_a_run_from_going_on_and_is_shown() {
    let nodes = sums(500, 300);
    let folder = killed(&nodes);
    let changes = [
        ("n: 2", "n: 3", "`sums`: `n` was 2 and is 3"),
        ("count: 500", "count: 600", "`rows`: `rows.count` was 500 and is 600"),
        (
            "  out: {kind: sink.jsonl,",
            "  out: {kind: sink.csv,",
            "`out`: the kind was \"sink.jsonl\" and is \"sink.csv\"",
        ),
        ("path: out.jsonl", "path: other.jsonl", "`out`: `path` was \"out.jsonl\" and is \"other.jsonl\""),
        (
            "  out: {kind: sink.jsonl, from: sums,",
            "  more: {kind: transform.test_pass, from: sums}\n  out: {kind: sink.jsonl, from: more,",
            "`out`: `from` was [\"sums\"] and is [\"more\"]; node `more` is new",
        ),
    ];
    for (from, to, told) in changes {
        write_pipeline(&folder, "", &nodes.replace(from, to));
        let done = folder.run(&RUN);
        assert_eq!(done.code, 2, "{to}: {done:?}");
        assert!(done.stderr.contains("`p` is another pipeline than the one that was begun"), "{done:?}");
        assert!(done.stderr.contains(told) && done.stderr.contains("--fresh"), "{told}: {done:?}");
    }
    // Nothing was lost by being refused.
    write_pipeline(&folder, "", &nodes);
    assert_eq!(folder.run(&RUN).code, 0);
    assert_eq!(rows_out(&folder, "rows"), 200);
    same(&undisturbed(&nodes).0, &folder, &["out.jsonl"]);
}

#[test]
fn with_fresh_the_other_pipeline_begins() {
    let nodes = sums(500, 300);
    let folder = killed(&nodes);
    let other = nodes.replace("n: 2", "n: 3");
    write_pipeline(&folder, "", &other);
    let done = folder.run(&[&RUN[..], &["--fresh"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    same(&undisturbed(&other).0, &folder, &["out.jsonl"]);
}

#[test]
fn after_a_finished_run_another_pipeline_begins_and_says_why() {
    let nodes = sums(500, 0);
    let (folder, _) = undisturbed(&nodes);
    let other = nodes.replace("n: 2", "n: 3");
    write_pipeline(&folder, "", &other);
    let done = folder.run(&RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("`sums`: `n` was 2 and is 3") && done.stderr.contains("beginning anew"), "{done:?}");
    same(&undisturbed(&other).0, &folder, &["out.jsonl"]);
}

#[test]
fn other_weights_are_another_pipeline() {
    let nodes = sums(500, 300).replace("batch: 1,", "batch: 1, weights: w.bin,");
    let folder = pipeline(&nodes);
    folder.write("w.bin", "one");
    assert_eq!(kill_at(&folder, &RUN, 300), 300);
    // Of the same length.
    folder.write("w.bin", "two");
    let done = folder.run(&RUN);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("the content of `w.bin` has changed"), "{done:?}");
    folder.write("w.bin", "one");
    assert_eq!(folder.run(&RUN).code, 0);
    assert_eq!(rows_out(&folder, "rows"), 200);
}

#[test]
fn how_it_is_run_may_be_another_way_each_time() {
    let nodes = sums(500, 300);
    let (expected, _) = undisturbed(&nodes);
    let changes: [(&str, &str, &str, &[&str]); 6] = [
        ("", "batch: 1", "batch: 7", &[]),
        ("", "from: sums", "queue: 1, from: sums", &[]),
        (", threads: {io: 1, rows: 3, model: 1}", "", "", &[]),
        (", queue_memory: 1MiB", "", "", &[]),
        ("", "", "", &["--isolation", "process", "--workers-per-device", "2"]),
        (", grace: 3s, rejects: r.jsonl", "", "", &["--device", "cpu", "--max-rejects", "10"]),
    ];
    for (run, from, to, args) in changes {
        let folder = killed(&nodes);
        write_pipeline(&folder, run, &if from.is_empty() { nodes.clone() } else { nodes.replace(from, to) });
        let done = folder.run(&[&RUN[..], args].concat());
        assert_eq!(done.code, 0, "{run} {to} {args:?}: {done:?}");
        assert_eq!(rows_out(&folder, "rows"), 200, "{run} {to} {args:?}");
        same(&expected, &folder, &["out.jsonl"]);
    }
}
