//! Where things go: data to standard output, all else to the error stream, reports to files.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value as Json;

use crate::program::{Folder, TESTING, done, rows};

fn to_stdout(count: u64) -> Folder {
    Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}\n  out: {{kind: sink.jsonl, with: {{path: '-'}}}}\n"
    ))
}

#[test]
fn standard_output_has_only_rows() {
    let done = to_stdout(5_000).run(&["run", "p.yaml"]);
    assert_eq!(done.code, 0, "{done:?}");
    let rows = rows(&done.stdout);
    assert_eq!(rows.len(), 5_000);
    assert_eq!(rows[4_999]["uri"], "synthetic/4999");
    assert!(done.stderr.contains("standard output  5,000 rows"), "{}", done.stderr);
}

#[test]
fn a_reader_that_has_enough_ends_the_run_quietly() {
    let folder = to_stdout(5_000_000);
    let mut command = folder.command(TESTING, &["run", "p.yaml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut first = String::new();
    // The pipe is closed with the reader, at the end of the statement.
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
    assert_eq!(rows(&first)[0]["uri"], "synthetic/0");
    let done = done(child.wait_with_output().expect("it ends"));
    assert_eq!((done.code, &*done.stderr), (0, ""));
}

#[test]
fn quiet_leaves_nothing_but_the_exit_code() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 10}}}\n  some: {kind: transform.test_reject, with: {rows: [1]}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n",
    );
    for flag in ["-q", "--quiet"] {
        let done = folder.run(&["run", "p.yaml", flag]);
        assert_eq!((done.code, &*done.stdout, &*done.stderr), (3, "", ""));
    }
    folder.write("p.yaml", &folder.read("p.yaml").replace("nodes:", "run: {quiet: true}\nnodes:"));
    assert_eq!(folder.run(&["run", "p.yaml"]).stderr, "");
}

fn grouped(n: &Json) -> String {
    let digits = n.as_u64().expect("a number").to_string();
    let from_end = |(place, digit): (usize, char)| {
        let comma = place > 0 && (digits.len() - place).is_multiple_of(3);
        if comma { vec![',', digit] } else { vec![digit] }
    };
    digits.chars().enumerate().flat_map(from_end).collect()
}

#[test]
fn the_report_says_what_the_summary_says() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 3000}}}\n  some: {kind: transform.test_reject, with: {share: 0.01}}\n  out: {kind: sink.jsonl, with: {path: out/a.jsonl}}\n  bad: {kind: sink.csv, from: some.rejects, with: {path: out/b.csv}}\n",
    );
    let done = folder.run(&["run", "p.yaml", "--report", "reports/r.json"]);
    assert_eq!(done.code, 3, "{done:?}");
    let report = folder.json("reports/r.json");
    assert_eq!(folder.names("reports"), ["r.json"], "no temporary file is left");
    assert_eq!((&report["name"], &report["outcome"], &report["exit_code"]), (&"p".into(), &"done".into(), &3.into()));
    assert_eq!(report["rows_in"], 3_000);
    let accounts = report["accounts"].as_array().expect("accounts");
    assert_eq!(accounts.len(), 2);
    for (account, path) in accounts.iter().zip(["out/a.jsonl", "out/b.csv"]) {
        let (entered, written, rejected) = (&account["entered"], &account["written"], &account["rejected"]);
        let line =
            format!("  {path}: {} in = {} out + {} rejected\n", grouped(entered), grouped(written), grouped(rejected));
        assert!(done.stderr.contains(&line), "{line} in {}", done.stderr);
        assert_eq!(entered.as_u64(), Some(written.as_u64().expect("a number") + rejected.as_u64().expect("a number")));
    }
    let n_rejects = report["rejects"]["total"].as_u64().expect("a number");
    assert_eq!(report["rejects"]["by_code"]["test"], n_rejects);
    assert_eq!(folder.rows("out/p.rejects.jsonl").len() as u64, n_rejects);
    assert_eq!(folder.rows("out/a.jsonl").len() as u64, 3_000 - n_rejects);
    assert_eq!(folder.read("out/b.csv").lines().count() as u64, 1 + n_rejects);
    assert!(
        done.stderr.contains(&format!("{n_rejects} rejects ({n_rejects} test → out/p.rejects.jsonl)")),
        "{}",
        done.stderr
    );
    let bottleneck = report["bottleneck"]["node"].as_str().expect("a node");
    assert!(done.stderr.contains(&format!("limited by `{bottleneck}`")), "{}", done.stderr);
}

#[test]
fn a_run_that_fails_has_a_report_too() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 1000}}}\n  bad: {kind: transform.test_fault, with: {after: 500, how: permanent}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n",
    );
    let done = folder.run(&["run", "p.yaml", "--report", "r.json"]);
    let report = folder.json("r.json");
    assert_eq!((done.code, &report["exit_code"], &report["outcome"]), (2, &2.into(), &"failed".into()));
    assert_eq!((&report["fault"]["node"], &report["fault"]["kind"]), (&"bad".into(), &"permanent".into()));
    // One whose nodes cannot even be built.
    folder.write("none.yaml", "name: none\nnodes:\n  files: {kind: source.files, with: {path: 'none/*'}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n");
    let done = folder.run(&["run", "none.yaml", "--report", "none.json"]);
    let report = folder.json("none.json");
    assert_eq!((done.code, &report["outcome"], &report["fault"]["node"]), (2, &"failed".into(), &"files".into()));
}

#[test]
fn paths_start_where_they_were_written() {
    let folder = Folder::new();
    let nodes = "  rows: {kind: source.synthetic, with: {rows: {count: 3}}}\n  out: {kind: sink.jsonl, with: {path: ../out/rows.jsonl}}\n";
    folder.write("deep/p.yaml", &format!("name: p\nrun: {{report: in-file.json}}\nnodes:\n{nodes}"));
    let done = folder.run(&["run", "deep/p.yaml"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("\n  out/rows.jsonl  3 rows"), "{}", done.stderr);
    assert!(folder.path("out/rows.jsonl").exists() && folder.path("deep/in-file.json").exists());
    assert_eq!(folder.run(&["run", "deep/p.yaml", "--report", "given.json", "--fresh"]).code, 0);
    assert!(folder.path("given.json").exists());
}

#[test]
fn a_report_to_a_device_leaves_the_device_there() {
    let folder = to_stdout(3);
    let done = folder.run(&["run", "p.yaml", "--report", "/dev/stderr", "-q"]);
    let report: Json = serde_json::from_str(&done.stderr).expect("nothing but the report");
    assert_eq!((done.code, &report["rows_in"]), (0, &3.into()));
    // On this one nothing can be written.
    let done = folder.run(&["run", "p.yaml", "--report", "/dev/full", "-q"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("cannot write the report `/dev/full`: no space left on device"), "{done:?}");
    assert!(!std::fs::metadata("/dev/full").expect("it is there").is_file());
}

#[test]
fn a_report_through_a_link_reaches_the_file_behind_it() {
    let folder = to_stdout(3);
    folder.write("real/r.json", "earlier");
    std::os::unix::fs::symlink("real/r.json", folder.path("link.json")).expect("a link");
    assert_eq!(folder.run(&["run", "p.yaml", "--report", "link.json"]).code, 0);
    assert!(folder.path("link.json").is_symlink());
    assert_eq!(folder.json("real/r.json")["rows_in"], 3);
    assert_eq!(folder.names("real"), ["r.json"]);
}
