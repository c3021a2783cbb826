//! No death of a worker costs a row that it was not guilty of.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use crate::program::{Folder, wait_for};
use crate::scene::{Computing, check_sums, children, sums, workers, workers_of};

const PROCESS: [&str; 4] = ["run", "p.yaml", "--isolation", "process"];

fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a number")).expect("a process");
    // It may be gone already.
    let _ = kill_process(pid, signal);
}

/// Rows of the runs below, computed in batches of 8.
const ROWS: u64 = 1200;

/// Kills one of one or two workers at a moment that `turn` chooses; says whether it had a job in flight.
fn killed_at_random(turn: u64) -> bool {
    let folder = sums(ROWS as usize, 8, "micros: 2000");
    let n_workers = 1 + (turn % 2) as usize;
    let count = n_workers.to_string();
    let computing =
        Computing::start(&folder, &[&PROCESS[..], &["--workers-per-device", &count, "--report", "r.json"]].concat());
    let processes = workers_of(computing.run.child.id(), n_workers);
    // From the first moments, in which models are loaded, to shortly before the end.
    let chance = nodes::testing::hash(turn, 0);
    let n_rows = match chance % 8 {
        0 => 0,
        _ => computing.wait_for_rows(chance % (ROWS * 9 / 10)),
    };
    kill(processes[(chance >> 32) as usize % n_workers], Signal::KILL);
    let done = computing.run.end();
    assert_eq!(done.code, 0, "turn {turn}: {done:?}");
    check_sums(&folder, ROWS as usize, &[]);
    let report = folder.json("r.json");
    let restarts: u64 = workers(&report).iter().map(|worker| worker["restarts"].as_u64().expect("a count")).sum();
    assert!(restarts <= 1, "turn {turn}: {report}");
    assert_eq!(folder.names("."), [".flowgpu", "out.jsonl", "p.yaml", "r.json"], "turn {turn}");
    // The model is the slowest node by far: until the last batches are out, each worker has some.
    n_rows > 0 && restarts == 1
}

/// `FLOWGPU_KILLS=200` kills more often.
#[expect(clippy::print_stdout, reason = "how often it hit is worth knowing")]
#[test]
fn a_worker_killed_at_any_moment_costs_no_row() {
    let n_runs = std::env::var("FLOWGPU_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(10);
    let n_hits = (0..n_runs).filter(|turn| killed_at_random(*turn)).count() as u64;
    println!("{n_hits} of {n_runs} workers had jobs in flight when they were killed");
    assert!(n_hits * 4 >= n_runs * 3, "{n_hits} of {n_runs} had jobs in flight");
}

/// A row that kills whatever computes it.
fn poison(how: &str) {
    let nodes = format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 10000}}}}}}
  tensor: {{kind: transform.test_tensor, with: {{shape: [8], numbered: true}}}}
  bad: {{kind: infer.test, from: tensor, with: {{n: 1, batch: 64, as: bad, crash: {{rows: [7777], how: {how}}}}}}}
  good: {{kind: infer.test, from: tensor, with: {{n: 2, batch: 64, as: logits}}}}
  out: {{kind: sink.jsonl, from: good, with: {{path: out.jsonl}}}}
  guilty: {{kind: sink.jsonl, from: bad, with: {{path: bad.jsonl}}}}
"
    );
    let folder = Folder::with_nodes(&nodes);
    let done = folder.run(&[&PROCESS[..], &["--report", "r.json"]].concat());
    assert_eq!(done.code, 3, "{done:?}");
    check_sums(&folder, 10_000, &[]);
    assert_eq!(folder.rows("bad.jsonl").len(), 9_999);
    // Each model computed each of its rows once that it gave out.
    assert_eq!(workers(&folder.json("r.json"))[0]["rows"], 19_999);
    let rejects = folder.rows("p.rejects.jsonl");
    assert_eq!(rejects.len(), 1);
    let told = |key: &str| rejects[0][key].as_str().expect("a text").to_owned();
    assert_eq!([told("uri"), told("node"), told("code")], ["synthetic/7777", "bad", "worker_crash"]);
}

#[test]
fn one_poison_row_is_one_reject_and_the_other_model_is_unharmed() {
    ["abort", "segfault", "exit"].into_iter().for_each(poison);
}

#[test]
fn a_row_that_never_ends_is_found_by_its_worker_s_silence() {
    let folder = sums(200, 16, "hang: {rows: [77]}");
    let done = folder.run(&[&PROCESS[..], &["--job-timeout", "500ms"]].concat());
    assert_eq!(done.code, 3, "{done:?}");
    check_sums(&folder, 200, &[77]);
    assert_eq!(folder.rows("p.rejects.jsonl")[0]["code"], "worker_crash");
}

#[test]
fn a_stopped_worker_is_replaced() {
    let folder = sums(800, 8, "micros: 2000");
    let args = [&PROCESS[..], &["--job-timeout", "1s", "--report", "r.json"]].concat();
    let computing = Computing::start(&folder, &args);
    let processes = workers_of(computing.run.child.id(), 1);
    computing.wait_for_rows(100);
    kill(processes[0], Signal::STOP);
    let done = computing.run.end();
    assert_eq!(done.code, 0, "{done:?}");
    check_sums(&folder, 800, &[]);
    assert_eq!(workers(&folder.json("r.json"))[0]["restarts"], 1);
}

#[test]
fn a_worker_that_always_dies_is_a_fault_with_its_last_words() {
    let folder = sums(100, 8, "fail: load_crash");
    let done = folder.run(&PROCESS);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("worker 0 (cpu, pid ") && done.stderr.contains("last words"), "{done:?}");
    assert_eq!(folder.names("."), [".flowgpu", "p.yaml"]);
}

#[test]
fn a_model_that_cannot_be_loaded_is_told_as_by_thread() {
    let folder = sums(100, 8, "fail: load");
    for isolation in ["thread", "process"] {
        let done = folder.run(&["run", "p.yaml", "--isolation", isolation]);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains("`sums`: the model fails to load on purpose"), "{done:?}");
    }
}

#[test]
fn no_worker_outlives_its_coordinator() {
    let folder = sums(1_000_000, 8, "micros: 2000");
    let run = folder.start(&[&PROCESS[..], &["--workers-per-device", "2"]].concat());
    let processes = workers_of(run.child.id(), 2);
    kill(run.child.id(), Signal::KILL);
    let gone = |pid: &u32| crate::scene::stat(*pid).is_none_or(|(_, state)| state == 'Z');
    wait_for("the workers' end", || processes.iter().all(gone).then_some(()));
}

#[test]
fn ctrl_c_reaches_the_coordinator_alone_and_what_is_in_flight_is_finished() {
    let folder = sums(1_000_000, 8, "micros: 2000");
    let computing = Computing::start(&folder, &PROCESS);
    let run = &computing.run;
    let processes = workers_of(run.child.id(), 1);
    computing.wait_for_rows(100);
    // A terminal sends it to the whole foreground group; workers have groups of their own, and ignore it besides.
    processes.iter().for_each(|pid| kill(*pid, Signal::INT));
    run.signal(Signal::INT);
    let pid = run.child.id();
    let done = computing.run.end();
    assert_eq!(done.code, 130, "{done:?}");
    assert_eq!(children(pid), Vec::<u32>::new());
    let text = folder.read(".out.jsonl.partial");
    let rows: Vec<Json> = crate::program::rows(&text);
    assert!(rows.iter().enumerate().all(|(index, row)| row["uri"] == format!("synthetic/{index}")));
}
