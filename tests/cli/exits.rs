//! Exit codes, and what is said with each.

use std::fs;

use crate::program::{Folder, SHIPPED, TESTING, done};

const OUT: &str = "  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}\n";

fn rows(count: u64, between: &str) -> Folder {
    Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}\n{between}{OUT}"
    ))
}

#[test]
fn a_run_without_rejects_exits_0() {
    let folder = rows(1_000, "");
    let done = folder.run(&["run", "p.yaml"]);
    assert_eq!((done.code, &*done.stdout), (0, ""), "{done:?}");
    for part in
        ["p: done in ", "1,000 rows", "out/rows.jsonl  1,000 rows", "1,000 in = 1,000 out + 0 rejected", "limited by `"]
    {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
    assert_eq!(folder.rows("out/rows.jsonl").len(), 1_000);
    assert_eq!(folder.names("out"), ["rows.jsonl"]);
}

#[test]
fn a_run_of_nothing_exits_0() {
    let done = rows(0, "").run(&["run", "p.yaml"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("0 in = 0 out + 0 rejected") && !done.stderr.contains("limited"), "{done:?}");
}

#[test]
fn a_fault_exits_1_and_names_node_and_place() {
    let folder = rows(1_000, "  bad: {kind: transform.test_fault, with: {after: 500, how: transient}}\n");
    let done = folder.run(&["run", "p.yaml"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("fault: `bad`: "), "{done:?}");
    let last = done.stderr.lines().last().expect("a line");
    assert!(last.contains("run again: ") && last.contains(" run p.yaml"), "{last}");
    assert!(!folder.path("out/rows.jsonl").exists(), "nothing half done has a final name");
}

#[test]
fn a_bug_exits_1_and_asks_for_a_report() {
    for how in ["bug", "panic"] {
        let folder = rows(100, &format!("  bad: {{kind: transform.test_fault, with: {{after: 5, how: {how}}}}}\n"));
        let done = folder.run(&["run", "p.yaml"]);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.stderr.contains("fault: `bad`: ") && done.stderr.contains("please report it"), "{done:?}");
        assert!(!done.stderr.contains("RUST_BACKTRACE"), "{done:?}");
    }
}

#[test]
fn a_sink_without_room_exits_1_and_says_what_to_do() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 100000}}}\n  out: {kind: sink.jsonl, with: {path: /dev/full}}\n",
    );
    let done = folder.run(&["run", "p.yaml"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.stderr.contains("fault: `out`: cannot write `/dev/full`: no space left on the device\n  help: "),
        "{done:?}"
    );
}

#[test]
fn wrong_usage_and_wrong_pipelines_exit_2() {
    let folder = rows(10, "");
    folder.write("wrong.yaml", "name: wrong\nnodes: {a: {kind: source.nothing}}\n");
    folder.write(
        "empty.yaml",
        &format!("name: empty\nnodes:\n  files: {{kind: source.files, with: {{path: 'none/*'}}}}\n{OUT}"),
    );
    for args in [
        &[][..],
        &["walk"],
        &["run"],
        &["run", "wrong.yaml"],
        &["run", "none.yaml"],
        &["run", "empty.yaml"],
        &["run", "p.yaml", "--limit", "0"],
        &["run", "p.yaml", "--limit", "many"],
        &["run", "p.yaml", "--device", "cpu:1"],
        &["run", "p.yaml", "--max-rejects", "-1"],
        &["run", "p.yaml", "--metrics-addr", "nowhere"],
        &["run", "p.yaml", "--report", "."],
    ] {
        let done = folder.run(args);
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        assert_eq!(done.stdout, "", "{args:?}");
        assert!(!done.stderr.is_empty(), "{args:?}");
    }
    assert!(!folder.path("out/rows.jsonl").exists());
}

#[test]
fn a_gpu_that_is_not_there_exits_2_with_what_to_do() {
    let folder = rows(10, "  tensor: {kind: transform.test_tensor}\n  model: {kind: infer.test}\n");
    let mut command = folder.command(TESTING, &["run", "p.yaml", "--device", "cuda"]);
    let done = done(command.env("FLOWGPU_NVML", "/none.so").output().expect("the program starts"));
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("`model` asks for `cuda`, and `/none.so`"), "{done:?}");
    assert!(done.stderr.contains("`device: auto` takes GPUs where there are some"), "{done:?}");
    assert_eq!(folder.run(&["run", "p.yaml", "--device", "cpu"]).code, 0);
}

#[test]
fn rejects_exit_3_and_are_counted_by_code_and_place() {
    let folder = rows(1_000, "  some: {kind: transform.test_reject, with: {rows: [1, 10, 100]}}\n");
    let done = folder.run(&["run", "p.yaml"]);
    assert_eq!(done.code, 3, "{done:?}");
    for part in ["997 rows, 3 rejects (3 test → out/p.rejects.jsonl)", "1,000 in = 997 out + 3 rejected"] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
    assert_eq!(folder.rows("out/p.rejects.jsonl").len(), 3);
}

#[test]
fn too_many_rejects_exit_2_by_the_command_line_over_the_file() {
    let folder = rows(100, "  some: {kind: transform.test_reject, with: {rows: [1, 2, 3]}}\n");
    folder.write("p.yaml", &folder.read("p.yaml").replace("nodes:", "run: {max_rejects: 2}\nnodes:"));
    assert_eq!(folder.run(&["run", "p.yaml"]).code, 2);
    assert_eq!(folder.run(&["run", "p.yaml", "--max-rejects", "3"]).code, 3);
    assert_eq!(folder.run(&["run", "p.yaml", "--max-rejects", "5%"]).code, 3);
}

#[test]
fn rows_that_panic_are_rejects_without_a_word_of_the_panic() {
    let folder = rows(50, "  bad: {kind: transform.test_panic, with: {rows: [7]}}\n");
    let done = folder.run(&["run", "p.yaml"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(!done.stderr.contains("panicked at") && done.stderr.contains("1 panic"), "{done:?}");
    let mut command = folder.command(TESTING, &["run", "p.yaml", "--fresh"]);
    let shown = done_with(command.env("FLOWGPU_LOG", "debug"));
    assert!(shown.stderr.contains("panic"), "{shown:?}");
}

fn done_with(command: &mut std::process::Command) -> crate::program::Done {
    done(command.output().expect("the program starts"))
}

#[test]
fn a_log_filter_that_is_none_exits_2() {
    let folder = rows(1, "");
    let shown = done_with(folder.command(SHIPPED, &["run", "p.yaml"]).env("FLOWGPU_LOG", "a=b=c"));
    assert_eq!(shown.code, 2, "{shown:?}");
    assert!(shown.stderr.contains("FLOWGPU_LOG"), "{shown:?}");
}

#[test]
fn the_shipped_program_has_no_kinds_for_tests() {
    let folder = rows(1, "  some: {kind: transform.test_reject, with: {}}\n");
    assert_eq!(folder.run(&["validate", "p.yaml"]).code, 0);
    let shown = done_with(&mut folder.command(SHIPPED, &["validate", "p.yaml"]));
    assert_eq!(shown.code, 2);
    assert!(shown.stdout.contains("transform.test_reject"), "{shown:?}");
}

#[test]
fn a_limit_stops_each_source() {
    let folder = rows(1_000, "");
    assert_eq!(folder.run(&["run", "p.yaml", "--limit", "7", "--fresh"]).code, 0);
    assert_eq!(folder.rows("out/rows.jsonl").len(), 7);
}

#[test]
fn an_output_stays_until_the_next_one_is_complete() {
    let folder = rows(1_000, "  bad: {kind: transform.test_fault, with: {after: 500}}\n");
    folder.write("out/rows.jsonl", "earlier\n");
    assert_eq!(folder.run(&["run", "p.yaml"]).code, 1);
    assert_eq!(folder.read("out/rows.jsonl"), "earlier\n");
    fs::remove_file(folder.path("p.yaml")).expect("the file");
}
