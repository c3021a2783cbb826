//! What the engine promises of every pipeline, on random pipelines: through YAML, graph, plan and run, then by reading
//! the outputs again.
//!
//! A pipeline is built from a list of random choices together with what it must give: a few lines that know what each
//! node does to each row, and nothing of threads, queues or watermarks.

mod pipeline;
mod reference;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use engine::config::{Document, Isolation};
use engine::graph::Graph;
use engine::node::Cancel;
use engine::runtime::{Report, Running, Setup};
use engine::schedule::{Inventory, Plan};
use proptest::prelude::*;

use pipeline::{Choice, Pipeline};

/// Far beyond what any of these pipelines takes: only a deadlock gets there.
const PATIENCE: Duration = Duration::from_secs(120);

fn run(yaml: &str, folder: &Path) -> Report {
    run_by(Isolation::Thread, yaml, folder)
}

fn run_by(isolation: Isolation, yaml: &str, folder: &Path) -> Report {
    let registry = nodes::testing_registry();
    let document = Document::parse(yaml, &folder.join("p.yaml"), &[], &|_| None, &registry)
        .unwrap_or_else(|mistakes| panic!("{yaml}\n{mistakes}"));
    let mut graph = Graph::compile(&document, &registry).unwrap_or_else(|mistakes| panic!("{yaml}\n{mistakes}"));
    graph.run.isolation = Some(isolation);
    let plan = Plan::make(Arc::new(graph), &Inventory::without_gpus()).expect("the CPU takes every model");
    let program = Some(env!("CARGO_BIN_EXE_flowgpu-test").into());
    let setup = Setup { build: env!("FLOWGPU_BUILD").to_owned(), program, ..Setup::default() };
    let running = Running::start(plan, Cancel::new(), &setup, None).unwrap_or_else(|fault| panic!("{yaml}\n{fault}"));
    let (sender, receiver) = channel();
    std::thread::spawn(move || drop(sender.send(running.join())));
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the run does not end:\n{yaml}"))
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a sink writes JSON")).collect()
}

fn check(choices: &[Choice], isolation: Isolation) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipeline = Pipeline::build(choices);
    let report = run_by(isolation, &pipeline.yaml, folder.path());
    assert!(report.fault.is_none(), "{:?}\n{}", report.fault, pipeline.yaml);
    for (name, expected) in &pipeline.sinks {
        let found = lines(&folder.path().join(format!("{name}.jsonl")));
        assert_eq!(&found, expected, "sink `{name}` of\n{}", pipeline.yaml);
    }
    for (name, expected) in &pipeline.reject_sinks {
        let mut found = lines(&folder.path().join(format!("{name}.jsonl")));
        found.iter_mut().for_each(|row| drop(row.as_object_mut().expect("a row").remove("message")));
        assert_eq!(&found, expected, "rejects in sink `{name}` of\n{}", pipeline.yaml);
    }
    let rejects = lines(&folder.path().join("random.rejects.jsonl"));
    let rejects: Vec<_> = rejects.iter().map(|row| (text(row, "uri"), text(row, "node"), text(row, "code"))).collect();
    assert_eq!(rejects, pipeline.rejects, "rejects of\n{}", pipeline.yaml);
    assert!(report.accounts.iter().all(|account| account.balances()), "{:?}\n{}", report.accounts, pipeline.yaml);
    assert_eq!(report.exit_code, if rejects.is_empty() { 0 } else { 3 });
}

fn text(row: &serde_json::Value, key: &str) -> String {
    row[key].as_str().expect("a reject has texts").to_owned()
}

fn choice() -> impl Strategy<Value = Choice> {
    any::<[u8; 4]>().prop_map(|[what, first, second, size]| Choice { what, first, second, size })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_row_arrives_once_per_branch_in_order_or_is_a_reject(choices in prop::collection::vec(choice(), 1..16)) {
        check(&choices, Isolation::Thread);
    }
}

proptest! {
    // Fewer, because each starts processes.
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_holds_with_models_in_worker_processes(choices in prop::collection::vec(choice(), 4..16)) {
        check(&choices, Isolation::Process);
    }
}

#[test]
fn branches_of_a_join_may_have_very_different_batches() {
    let yaml = "
name: random
nodes:
  rows: {kind: source.synthetic, with: {rows: {count: 500}}}
  large: {kind: batch, from: rows, with: {size: 200}, queue: 1}
  small: {kind: batch, from: rows, with: {size: 3}, queue: 1}
  a: {kind: transform.test_pass, from: large, with: {as: a}, queue: 1}
  b: {kind: transform.test_pass, from: small, with: {as: b}, queue: 1}
  both: {kind: transform.join, from: [a, b], queue: 1}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
";
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(run(yaml, folder.path()).exit_code, 0);
    let rows = lines(&folder.path().join("out.jsonl"));
    assert_eq!(rows.len(), 500);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row, &serde_json::json!({"uri": format!("synthetic/{index}"), "a": index, "b": index}));
    }
}

#[test]
fn a_row_rejected_on_both_branches_of_a_union_is_one_reject_wherever_batches_end() {
    let yaml = "
name: random
nodes:
  rows: {kind: source.synthetic, with: {rows: {count: 50}}}
  a: {kind: transform.test_delay, from: rows, with: {micros: 100}}
  b: {kind: transform.test_delay, from: rows, with: {micros: 300}}
  batches: {kind: batch, from: [a, b], with: {size: 3}}
  bad: {kind: transform.test_reject, with: {share: 1.0}, queue: 1}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
";
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(run(yaml, folder.path()).exit_code, 3);
    let rejects: Vec<_> =
        lines(&folder.path().join("random.rejects.jsonl")).iter().map(|row| text(row, "uri")).collect();
    let expected: Vec<_> = (0..50).map(|index| format!("synthetic/{index}")).collect();
    assert_eq!(rejects, expected);
}

#[test]
fn a_fault_ends_the_run_without_outputs_and_names_its_node() {
    for (how, exit_code) in [("transient", 1), ("permanent", 2), ("bug", 1), ("panic", 1)] {
        let yaml = format!(
            "
name: random
nodes:
  rows: {{kind: source.synthetic, with: {{rows: {{count: 5000}}}}}}
  bad: {{kind: transform.test_fault, with: {{after: 700, how: {how}}}}}
  out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}
  other: {{kind: sink.jsonl, from: rows, with: {{path: other.jsonl}}}}
"
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let report = run(&yaml, folder.path());
        assert_eq!(report.exit_code, exit_code, "{how}");
        assert_eq!(report.fault.and_then(|fault| fault.node).as_deref(), Some("bad"), "{how}");
        for name in ["out.jsonl", "other.jsonl", "random.rejects.jsonl"] {
            assert!(!folder.path().join(name).exists(), "{how}: {name} has its final name");
        }
    }
}

#[test]
fn the_slowest_node_is_the_verdict() {
    let rigged = [
        ("rows", "source.test_slow, with: {count: 60, micros: 5000}", "transform.test_spin, with: {micros: 1}", 1),
        (
            "rows",
            "source.test_slow, with: {count: 200, fetch_micros: 20000}",
            "transform.test_spin, with: {micros: 1}",
            1,
        ),
        ("work", "source.synthetic, with: {rows: {count: 400}}", "transform.test_spin, with: {micros: 2000}", 1),
        ("model", "source.synthetic, with: {rows: {count: 400}}", "transform.test_spin, with: {micros: 1}", 10_000),
    ];
    for (expected, source, work, model_micros) in rigged {
        let yaml = format!(
            "
name: random
nodes:
  rows: {{kind: {source}}}
  work: {{kind: {work}}}
  tensor: {{kind: transform.test_tensor}}
  model: {{kind: infer.test, with: {{micros: {model_micros}}}}}
  out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}
"
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let report = run(&yaml, folder.path());
        let verdict = report.bottleneck.expect("a run has a bottleneck");
        let shares: Vec<_> = report.nodes.iter().map(|node| (&node.name, node.shares)).collect();
        assert_eq!(verdict.node, expected, "{shares:?}");
    }
}
