//! A row that kills the whole process is found after two deaths, and rejected; one that was only near is not.

use std::process::ExitStatus;

use rustix::process::Signal;
use serde_json::Value as Json;

use crate::program::{Folder, TESTING, wait_for};

/// 1,000 rows of which some kill the process that decodes them.
fn pipeline(rows: &str, how: &str) -> Folder {
    Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 1000}}}}}}
  pixels: {{kind: decode.test_fault, with: {{rows: [{rows}], {how}, micros: 50}}}}
  out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}\n"
    ))
}

/// Runs once more; how that ended, and what it said.
fn run(folder: &Folder) -> (ExitStatus, String) {
    let output =
        folder.command(TESTING, &["run", "p.yaml", "--report", "r.json"]).output().expect("the program starts");
    (output.status, String::from_utf8(output.stderr).expect("UTF-8"))
}

/// Runs until the run is done: how many processes died on the way.
fn deaths(folder: &Folder) -> u32 {
    for n_deaths in 0..20 {
        let (status, told) = run(folder);
        match status.code() {
            None => continue,
            Some(3) => return n_deaths,
            Some(_) => panic!("{status}: {told}"),
        }
    }
    panic!("it does not end");
}

/// All rows but `killers` are in the output, in order; those are rejected, each with its message.
fn check(folder: &Folder, killers: &[u64]) -> Vec<String> {
    let expected = (0..1000).filter(|index| !killers.contains(index)).map(|index| format!("synthetic/{index}"));
    let found = folder.rows("out.jsonl").into_iter().map(|row| row["uri"].as_str().expect("a text").to_owned());
    assert!(found.eq(expected));
    let rejects = folder.rows("p.rejects.jsonl");
    let uris: Vec<_> = rejects.iter().map(|reject| reject["uri"].clone()).collect();
    assert_eq!(uris, killers.iter().map(|index| Json::from(format!("synthetic/{index}"))).collect::<Vec<_>>());
    let told = |reject: &Json| {
        assert_eq!((&reject["code"], &reject["node"]), (&"crash".into(), &"pixels".into()));
        reject["message"].as_str().expect("a text").to_owned()
    };
    rejects.iter().map(told).collect()
}

#[test]
fn a_killer_is_one_reject_after_two_deaths() {
    for (how, death) in [
        ("abort", "died of signal 6 (abort)"),
        ("segfault", "died of signal 11 (segmentation fault)"),
        ("overflow", "died of signal 6 (abort)"),
    ] {
        let folder = pipeline("617", &format!("how: {how}"));
        assert_eq!(deaths(&folder), 2, "{how}");
        let messages = check(&folder, &[617]);
        let twice = "the process died twice with this row in `pixels`, and once more with it alone: it";
        assert!(messages[0].contains(&format!("{twice} {death}; its last words: ")), "{messages:?}");
        let words = if how == "overflow" { "overflowed its stack" } else { "ends its process on purpose: row 617" };
        assert!(messages[0].contains(words) || how == "overflow", "{messages:?}");
        // Done is done: the same command changes nothing.
        assert_eq!(run(&folder).0.code(), Some(3));
        check(&folder, &[617]);
    }
}

#[test]
fn two_killers_are_two_rejects() {
    let far = pipeline("100, 900", "how: abort");
    assert_eq!(deaths(&far), 4);
    check(&far, &[100, 900]);
}

#[test]
fn rows_that_were_only_near_two_deaths_are_not_rejected() {
    let folder = pipeline("3", "until: go");
    for _ in 0..2 {
        let run = folder.start(&["run", "p.yaml"]);
        let flight = folder.path(".flowgpu/p/in-flight");
        let is_in_flight = || engine::journal::Flight::read(&flight).iter().any(|row| row.index == 3);
        wait_for("the row", || is_in_flight().then_some(()));
        run.signal(Signal::KILL);
        run.killed();
    }
    folder.write("go", "");
    let (status, told) = run(&folder);
    assert_eq!(status.code(), Some(0), "{told}");
    assert_eq!(folder.rows("out.jsonl").len(), 1000);
    assert!(!folder.path("p.rejects.jsonl").exists());
}

#[test]
fn a_run_that_ends_in_order_leaves_no_suspects() {
    let folder = pipeline("999", "until: go");
    let mut command = folder.command(TESTING, &["run", "p.yaml", "--set", "x=1"]);
    // A variable that there is not: the run ends before it begins, and nothing is noted.
    assert_eq!(command.output().expect("the program starts").status.code(), Some(2));
    folder.write("go", "");
    let (status, told) = run(&folder);
    assert_eq!(status.code(), Some(0), "{told}");
    assert_eq!(engine::journal::Flight::read(&folder.path(".flowgpu/p/in-flight")), []);
}
