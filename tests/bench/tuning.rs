//! The fastest settings are found, and put into a copy.

use serde_json::Value as Json;

use crate::program::{Done, Folder};

const ROWS: &str = "  rows: {kind: source.test_slow, with: {count: 1000, fetch_micros: 1000}}\n  tensor: {kind: transform.test_tensor}\n";
const OUT: &str = "  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}} # the output\n";

/// A pipeline whose model takes as long for a batch of two as for one of many.
fn slow_batches() -> Folder {
    Folder::with_nodes(&format!(
        "{ROWS}  # small on purpose\n  model: {{kind: infer.test, with: {{batch: 2, micros: 4000}}}} # slow\n{OUT}"
    ))
}

fn tune(folder: &Folder, args: &[&str]) -> Done {
    let args: Vec<_> = ["tune", "p.yaml", "--seconds", "1"].iter().chain(args).copied().collect();
    folder.run(&args)
}

#[test]
fn a_larger_batch_is_found_and_written_and_comments_stay() {
    let folder = slow_batches();
    // One instance, so that more of them do not take the place of larger batches.
    let text = folder.read("p.yaml").replace("nodes:", "run: {threads: {model: 1}} # one\nnodes:");
    folder.write("p.yaml", &text);
    let done = tune(&folder, &["--format", "json", "--write", "fast.yaml"]);
    assert_eq!(done.code, 0, "{done:?}");
    let found: Json = serde_json::from_str(&done.stdout).expect("JSON");
    let batch = found["settings"]["model.batch"].as_u64().unwrap_or_else(|| panic!("{found}"));
    assert!(batch > 2 && found["gain"].as_f64() > Some(1.03), "{found}");
    let tried = found["tried"].as_array().expect("a list");
    assert!(tried.iter().any(|trial| trial["setting"] == "model.batch" && trial["kept"] == true), "{found}");
    assert!(found["yaml"].as_str().expect("text").contains(&format!("model: {{with: {{batch: {batch}}}}}")), "{found}");
    let written = folder.read("fast.yaml");
    assert!(written.contains(&format!("batch: {batch}, micros: 4000}}}} # slow\n")), "{written}");
    for comment in ["# small on purpose\n", "# the output\n", "# one\n"] {
        assert!(written.contains(comment), "{comment} in {written}");
    }
    assert_eq!(folder.run(&["validate", "fast.yaml"]).code, 0);
    assert_eq!(folder.read("p.yaml"), text);
    assert_eq!(folder.names("."), ["fast.yaml", "p.yaml"], "nothing else is written");
}

#[test]
fn people_get_what_was_tried_and_what_to_write() {
    let done = tune(&slow_batches(), &[]);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{done:?}");
    let lines: Vec<_> = done.stdout.lines().collect();
    assert!(lines[0].split_whitespace().eq(["setting", "value", "default", "rate", "gain"]), "{done:?}");
    assert!(lines[1].starts_with("model.batch ") && lines[1].ends_with(" kept"), "{done:?}");
    let best = lines.iter().position(|line| line.starts_with("best: ")).expect("the best");
    assert!(lines[best].ends_with("; in p.yaml:"), "{done:?}");
    assert!(lines[best..].contains(&"  nodes:"), "{done:?}");
}

#[test]
fn a_value_of_a_variable_is_left_to_the_user() {
    let folder = slow_batches();
    let text = folder.read("p.yaml").replace("batch: 2", "batch: \"${n}\"").replace("nodes:", "vars: {n: 2}\nnodes:");
    folder.write("p.yaml", &text);
    let done = tune(&folder, &["--write", "fast.yaml"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("cannot put `nodes.model.with.batch` into `p.yaml`"), "{done:?}");
    assert!(done.stderr.contains("model: {with: {batch: "), "{done:?}");
    assert_eq!(folder.names("."), ["p.yaml"]);
}

#[test]
fn a_copy_that_cannot_be_is_refused_before_anything_is_measured() {
    let folder = slow_batches();
    folder.write("other/there.txt", "");
    folder.write("taken.yaml", "mine");
    for (file, told) in [("other/p.yaml", "is not in the folder of"), ("taken.yaml", "is there already")] {
        let done = tune(&folder, &["--write", file]);
        assert_eq!((done.code, &*done.stdout), (2, ""), "{done:?}");
        assert!(done.stderr.contains(told), "{done:?}");
    }
    assert_eq!(folder.read("taken.yaml"), "mine");
}
