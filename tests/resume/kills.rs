//! A run that was killed: what is done again.

use std::fs;

use serde_json::json;

use crate::program::{Folder, TESTING};
use crate::scene::{
    RUN, committed, figure, kill_at, nothing_unfinished, pipeline, rows_out, same, sums, sums_of, undisturbed,
};

const ROWS: u64 = 1000;

/// Rows in `out.jsonl`'s unfinished file behind the last cut.
fn rows_behind(folder: &Folder) -> u64 {
    let rows = folder.read(".out.jsonl.partial").lines().count() as u64;
    rows - committed(folder)
}

#[test]
fn a_killed_run_goes_on_at_its_last_cut() {
    let (expected, done) = undisturbed(&sums(ROWS, 0));
    assert_eq!(done.code, 0, "{done:?}");
    for percent in [20, 50, 90] {
        // Whatever is before the row on which it hangs can be committed.
        let hangs_at = ROWS * percent / 100;
        let folder = pipeline(&sums(ROWS, hangs_at));
        let resumed = kill_at(&folder, &RUN, "hung", hangs_at);
        assert_eq!(resumed, hangs_at, "nothing before the row is missing, nothing behind it is there");
        let behind = rows_behind(&folder);
        let done = folder.run(&RUN);
        assert_eq!(done.code, 0, "{done:?}");
        let told = format!("p: resuming at {} of 1,000 rows ({percent} %)", resumed);
        assert!(done.stderr.lines().any(|line| line == told), "{told}: {done:?}");
        assert_eq!(figure(&folder, "resumed_at"), resumed);
        assert_eq!(figure(&folder, "redone"), behind);
        assert_eq!(figure(&folder, "committed"), ROWS);
        assert_eq!(rows_out(&folder, "rows"), ROWS - resumed, "only the rest is listed");
        assert_eq!(rows_out(&folder, "sums"), ROWS - resumed, "only the rest is computed");
        same(&expected, &folder, &["out.jsonl"]);
        nothing_unfinished(&folder);
    }
}

#[test]
fn what_is_done_is_not_read_again() {
    let nodes = |hangs_at| {
        let source = "  files: {kind: source.files, with: {path: \"in/*.txt\"}}\n".to_owned();
        source + &sums_of("files", hangs_at, "out: {kind: sink.jsonl, with: {path: out.jsonl}}")
    };
    let folder = pipeline(&nodes(990));
    let name = |index| format!("in/{index:04}.txt");
    (0..ROWS).for_each(|index| folder.write(&name(index), "text"));
    assert_eq!(kill_at(&folder, &RUN, "hung", 990), 990);
    // It cannot be read, so whoever tries gets a reject.
    (0..990).for_each(|index| fs::remove_file(folder.path(&name(index))).expect("a file"));
    let done = folder.run(&RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(rows_out(&folder, "files"), 10, "1 % of the input");
    let uris: Vec<_> = folder.rows("out.jsonl").iter().map(|row| row["uri"].clone()).collect();
    assert_eq!(uris, (0..ROWS).map(|index| json!(name(index))).collect::<Vec<_>>());
}

/// Rows of which some are rejected, through a model for each of these rows that hangs on it once, into three sinks.
fn hanging(hangs_at: &[u64]) -> String {
    let mut nodes = format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: {ROWS}}}}}}}
  some: {{kind: transform.test_reject, with: {{share: 0.2}}}}
"
    );
    for (turn, row) in hangs_at.iter().enumerate() {
        nodes += &format!(
            "  t{turn}: {{kind: transform.test_tensor, with: {{shape: [4], numbered: true, as: t{turn}}}}}
  m{turn}: {{kind: infer.test, with: {{column: t{turn}, as: m{turn}, batch: 1, hang: {{rows: [{row}], once: hung{turn}}}}}}}
"
        );
    }
    let last = hangs_at.len() - 1;
    nodes
        + &format!(
            "  out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}
  table: {{kind: sink.csv, from: m{last}, with: {{path: out.csv}}}}
  array: {{kind: sink.npy, from: m{last}, with: {{path: out.npy, column: m0}}}}
"
        )
}

#[test]
fn it_may_be_killed_again_and_again() {
    // The row before is kept too: rejects travel with the batch behind them, which is the one that hangs.
    let is_kept = |index: &u64| [index - 1, *index].iter().all(|&index| !nodes::testing::chosen(0.2, 0, index));
    let hangs_at = [200, 450, 700, 950].map(|from| (from..).find(is_kept).expect("a row"));
    let (expected, folder) = (pipeline(&hanging(&hangs_at)), pipeline(&hanging(&hangs_at)));
    (0..hangs_at.len()).for_each(|turn| expected.write(&format!("hung{turn}"), ""));
    assert_eq!(expected.run(&RUN).code, 3);
    for (turn, row) in hangs_at.into_iter().enumerate() {
        assert_eq!(kill_at(&folder, &RUN, &format!("hung{turn}"), row), row);
    }
    let done = folder.run(&RUN);
    assert_eq!(done.code, 3, "{done:?}");
    same(&expected, &folder, &["out.jsonl", "out.csv", "out.npy", "out.ids.jsonl", "p.rejects.jsonl"]);
    nothing_unfinished(&folder);
}

#[test]
fn a_run_killed_at_any_step_to_the_disk_is_finished_by_the_next_and_leaves_nothing() {
    let nodes = "  rows: {kind: source.synthetic, with: {rows: {count: 5}}}
  lines: {kind: sink.jsonl, from: rows, with: {path: out.jsonl}}
  table: {kind: sink.parquet, from: rows, with: {path: out.parquet, rotate: {rows: 3}}}
";
    // A report is a file of its own, which only a run that has done something writes.
    let run = ["run", "p.yaml"];
    let expected = pipeline(nodes);
    assert_eq!(expected.run(&run).code, 0);
    let mut n_kills = 0;
    for step in ["write", "sync", "append", "rename", "cut"] {
        for (when, n) in ["before", "after"].into_iter().flat_map(|when| (1..).map(move |n| (when, n))) {
            let fault = format!("{step}:{when}:{n}:kill");
            let folder = pipeline(nodes);
            let first = folder.command(TESTING, &run).env("FLOWGPU_FAULT", &fault).output().expect("it starts");
            let again = folder.run(&run);
            assert_eq!(again.code, 0, "{fault}: {again:?}");
            same(&expected, &folder, &["out.jsonl", "out-00000.parquet", "out-00001.parquet"]);
            nothing_unfinished(&folder);
            assert!(!folder.path(".flowgpu/p/spool").exists(), "{fault}: what sinks have kept is still there");
            // There are no more steps of this kind.
            if first.status.success() {
                break;
            }
            n_kills += 1;
        }
    }
    assert!(n_kills > 30, "{n_kills} kills");
}
