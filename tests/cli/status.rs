//! `status`: what is told of runs alive and dead.

use std::fs;

use engine::durable::Log;
use rustix::process::Signal;
use serde_json::{Value as Json, json};

use crate::interrupts::{endless, with_signals};
use crate::program::{Folder, Under, wait_for};

const OUT: &str = "{kind: sink.jsonl, with: {path: out/rows.jsonl}}";
const RUN: [&str; 4] = ["run", "p.yaml", "--commit-every", "20ms"];

/// What is told of the one run of `p.yaml`.
pub fn status(folder: &Folder) -> Json {
    let done = folder.run(&["status", "p.yaml", "--format", "json"]);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{done:?}");
    let mut told: Json = serde_json::from_str(&done.stdout).expect("JSON");
    let runs = told["runs"].as_array_mut().expect("a list");
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

fn text(folder: &Folder, args: &[&str]) -> String {
    let done = folder.run(&[&["status"], args].concat());
    assert_eq!((done.code, &*done.stderr), (0, ""), "{done:?}");
    done.stdout
}

/// A run that has committed rows and would go on for hours.
fn under_way(folder: &Folder) -> Under {
    let run = Under::start(with_signals(folder, &RUN));
    wait_for("rows", || status(folder)["rows"].as_u64().filter(|rows| *rows > 0));
    run
}

#[test]
fn a_run_is_followed_from_its_start_to_its_end() {
    let folder = endless(OUT);
    let never = "p: never started: nothing is noted in `.flowgpu/p`\n";
    assert_eq!((text(&folder, &["p.yaml"]), &status(&folder)["state"]), (never.to_owned(), &json!("never_started")));
    let run = under_way(&folder);
    let alive = status(&folder);
    assert_eq!((&alive["state"], &alive["pid"]), (&json!("running"), &json!(run.child.id())));
    assert_eq!((&alive["total"], &alive["sessions"]), (&json!(1_000_000_000), &json!(1)));
    let more =
        wait_for("more rows", || Some(status(&folder)).filter(|told| told["rows"].as_u64() > alive["rows"].as_u64()));
    assert!(more["rows_per_second"].as_f64() > Some(0.0) && more["eta_seconds"].as_f64() > Some(0.0), "{more}");
    let shown = text(&folder, &["p.yaml"]);
    assert!(shown.starts_with("p: ") && shown.contains(" / 1,000,000,000 "), "{shown}");
    assert!(shown.contains(&format!("\n  process   pid {} on ", run.child.id())), "{shown}");
    run.signal(Signal::TERM);
    assert_eq!(run.end().code, 130);
    let dead = status(&folder);
    assert_eq!((&dead["state"], &dead["outputs"][0]["rows"]), (&json!("interrupted"), &dead["rows"]));
    assert_eq!(dead["rows"], folder.rows("out/.rows.jsonl.partial").len());
    let shown = text(&folder, &["p.yaml"]);
    assert!(shown.starts_with("p: interrupted at "), "{shown}");
    assert!(
        shown.ends_with(&"\n  next      the same command goes on from row N\n".replace('N', &grouped(&dead))),
        "{shown}"
    );
}

/// As people read it.
fn grouped(told: &Json) -> String {
    flowgpu::progress::human::grouped(told["rows"].as_u64().expect("a count"))
}

#[test]
fn a_killed_run_is_told_from_one_that_lives_and_is_taken_up() {
    let folder = endless(OUT);
    let run = under_way(&folder);
    run.signal(Signal::KILL);
    run.killed();
    let dead = status(&folder);
    assert_eq!((&dead["state"], &dead["rows_per_second"]), (&json!("killed"), &Json::Null));
    let shown = text(&folder, &[".flowgpu/p"]);
    assert!(shown.contains(&format!(": nothing is left of pid {}, ", dead["pid"])), "{shown}");
    let run = Under::start(with_signals(&folder, &RUN));
    let alive = wait_for("a second process", || Some(status(&folder)).filter(|told| told["sessions"] == 2));
    assert_eq!((&alive["pid"], &alive["resumed_at"]), (&json!(run.child.id()), &dead["rows"]));
    run.signal(Signal::TERM);
    run.end();
}

#[test]
fn a_finished_run_shows_its_outputs_and_the_code_that_it_repeats() {
    let folder = Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 1000}}}}}}\n  some: {{kind: transform.test_reject, with: {{rows: [1, 10]}}}}\n  out: {OUT}\n"
    ));
    assert_eq!(folder.run(&RUN).code, 3);
    let journal = fs::read(folder.path(".flowgpu/p/journal")).expect("a journal");
    let told = status(&folder);
    assert_eq!((&told["state"], &told["exit_code"], &told["rows"]), (&json!("done"), &json!(3), &json!(1000)));
    let n_bytes = folder.read("out/rows.jsonl").len();
    assert_eq!(told["outputs"], json!([{"node": "out", "path": "out/rows.jsonl", "rows": 998, "bytes": n_bytes}]));
    assert_eq!(told["rejects"], json!({"total": 2, "by_code": {"test": 2}, "path": "out/p.rejects.jsonl"}));
    let shown = text(&folder, &["p.yaml"]);
    assert!(shown.starts_with("p: done, 1,000 rows, 2 rejects, 20"), "{shown}");
    assert!(
        shown.contains("\n  rejects   2 test → out/p.rejects.jsonl\n  out       out/rows.jsonl  998 rows  "),
        "{shown}"
    );
    assert!(shown.contains(" exits with 3 again; `--fresh` begins anew\n"), "{shown}");
    assert_eq!(fs::read(folder.path(".flowgpu/p/journal")).expect("a journal"), journal, "nothing is written");
}

#[test]
fn a_failed_run_says_why() {
    let folder = Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 1000}}}}}}\n  bad: {{kind: transform.test_fault, with: {{after: 500, how: transient}}}}\n  out: {OUT}\n"
    ));
    assert_eq!(folder.run(&RUN).code, 1);
    let told = status(&folder);
    assert_eq!(told["state"], "failed");
    assert!(told["message"].as_str().expect("a message").starts_with("`bad`: "), "{told}");
    assert!(text(&folder, &["p.yaml"]).contains("\n  fault     `bad`: "));
}

#[test]
fn a_folder_shows_all_its_runs_and_one_without_any_is_refused() {
    let folder = Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 10}}}}}}\n  out: {OUT}\n"
    ));
    let refused = folder.run(&["status"]);
    assert_eq!((refused.code, &*refused.stdout), (2, ""));
    assert!(
        refused.stderr.starts_with("error: no run has its state in `.`\n  help: name a pipeline file, "),
        "{refused:?}"
    );
    assert_eq!(folder.run(&["status", "none.yaml"]).code, 2);
    folder.write("q.yaml", &folder.read("p.yaml").replace("name: p", "name: q").replace("rows.jsonl", "q.jsonl"));
    for file in ["q.yaml", "p.yaml"] {
        assert_eq!(folder.run(&["run", file]).code, 0);
    }
    for args in [&[][..], &[".flowgpu"]] {
        let shown = text(&folder, args);
        let heads: Vec<_> = shown.lines().filter(|line| line.contains(": done, 10 rows, 20")).collect();
        assert!(heads.len() == 2 && heads[0].starts_with("p: ") && heads[1].starts_with("q: "), "{shown}");
    }
}

#[test]
fn a_pipeline_that_is_being_changed_still_shows_its_run() {
    let folder = Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 10}}}}}}\n  out: {OUT}\n"
    ));
    let sound = folder.read("p.yaml");
    folder.write("p.yaml", &sound.replace("path:", "paht:"));
    assert_eq!(folder.run(&["status", "p.yaml"]).code, 2, "there is nothing to show but the mistake");
    folder.write("p.yaml", &sound);
    assert_eq!(folder.run(&RUN).code, 0);
    folder.write("p.yaml", &sound.replace("path:", "paht:"));
    assert_eq!(status(&folder)["state"], "done");
}

#[test]
fn a_journal_of_another_version_is_named_as_one() {
    let folder = Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 10}}}}}}\n  out: {OUT}\n"
    ));
    fs::create_dir_all(folder.path(".flowgpu/p")).expect("a folder");
    let (mut log, _) = Log::open(&folder.path(".flowgpu/p/journal")).expect("a log");
    log.append(r#"{"opened":{"format":7}}"#).expect("a line");
    let done = folder.run(&["status", "p.yaml"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stdout.starts_with("p: cannot be told: line 1 of the journal cannot be understood: "), "{done:?}");
    assert!(
        done.stdout.ends_with("\n  next      it is of another version of flowgpu; `--fresh` begins anew\n"),
        "{done:?}"
    );
}
