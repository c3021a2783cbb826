//! What is measured.

use serde_json::Value as Json;

use crate::program::Folder;

const ROWS: &str = "  rows: {kind: source.synthetic, with: {rows: {count: 20}}}\n";
const MODEL: &str =
    "  tensor: {kind: transform.test_tensor}\n  model: {kind: infer.test, with: {batch: 4, micros: 500}}\n";
const OUT: &str = "  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}\n";

/// Measures `p.yaml` of a folder: its figures, after what holds for all of them.
fn bench(folder: &Folder) -> Json {
    let done = folder.run(&["bench", "p.yaml", "--seconds", "1", "--format", "json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let figures: Json = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    let keys: Vec<_> = figures.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["decode", "infer", "end_to_end", "limit", "ratio", "rejected"]);
    let [decode, end_to_end, limit, ratio] =
        ["decode", "end_to_end", "limit", "ratio"].map(|key| number(&figures, key));
    assert!((ratio - end_to_end / limit).abs() < 1e-9, "{figures}");
    let expected = match figures["infer"].as_f64() {
        Some(infer) => 1.0 / (1.0 / decode + 1.0 / infer),
        None => decode,
    };
    assert!((limit / expected - 1.0).abs() < 1e-9, "{figures}");
    assert_eq!(folder.names("."), ["p.yaml"], "nothing is written");
    figures
}

fn number(figures: &Json, key: &str) -> f64 {
    figures[key].as_f64().filter(|number| *number > 0.0).unwrap_or_else(|| panic!("{key} of {figures}"))
}

#[test]
fn a_model_is_measured_apart_from_what_is_before_it() {
    let figures = bench(&Folder::with_nodes(&format!("{ROWS}{MODEL}{OUT}")));
    // Four rows in half a millisecond, one batch after the other on two instances at most.
    assert!(number(&figures, "infer") < 40_000.0, "{figures}");
    assert_eq!(figures["rejected"], 0);
}

#[test]
fn workers_are_measured_as_threads_are() {
    let folder = Folder::with_nodes(&format!("{ROWS}{MODEL}{OUT}"));
    let done = folder.run(&["bench", "p.yaml", "--seconds", "1", "--format", "json", "--isolation", "process"]);
    assert_eq!(done.code, 0, "{done:?}");
    let figures: Json = serde_json::from_str(&done.stdout).expect("JSON");
    number(&figures, "infer");
    number(&figures, "end_to_end");
}

#[test]
fn without_a_model_there_is_no_rate_of_inference() {
    let figures = bench(&Folder::with_nodes(&format!("{ROWS}{OUT}")));
    assert_eq!((&figures["infer"], &figures["ratio"]), (&Json::Null, &1.0.into()));
    let batches = "  batches: {kind: batch, with: {size: 4}}\n";
    assert_eq!(bench(&Folder::with_nodes(&format!("{ROWS}{batches}{OUT}")))["infer"], Json::Null);
}

#[test]
fn sources_of_a_union_all_come_to_their_turn() {
    let other = "  others: {kind: source.synthetic, with: {rows: {count: 3}}}\n";
    let union = MODEL.replace("transform.test_tensor", "transform.test_tensor, from: [rows, others]");
    let figures = bench(&Folder::with_nodes(&format!("{ROWS}{other}{union}{OUT}")));
    number(&figures, "infer");
    // The first gives no row that comes through.
    let bad = ROWS.to_owned() + "  bad: {kind: transform.test_reject, with: {share: 1.0}}\n";
    let union = MODEL.replace("transform.test_tensor", "transform.test_tensor, from: [bad, others]");
    let figures = bench(&Folder::with_nodes(&format!("{bad}{other}{union}{OUT}")));
    assert!(figures["rejected"].as_u64() > Some(0), "{figures}");
}

#[test]
fn branches_that_are_joined_and_read_for_their_rejects_are_measured() {
    let nodes = "  some: {kind: transform.test_reject, with: {share: 0.2}}
  tensor: {kind: transform.test_tensor}
  first: {kind: infer.test, from: tensor, with: {batch: 4, as: first}}
  other: {kind: transform.test_pass, from: tensor}
  second: {kind: infer.test, with: {batch: 3, as: second}}
  both: {kind: transform.join, from: [first, second]}
";
    let broken = "  broken: {kind: sink.jsonl, from: [some.rejects, first.rejects], with: {path: out/broken.jsonl}}\n";
    let figures = bench(&Folder::with_nodes(&format!("{ROWS}{nodes}{OUT}{broken}")));
    number(&figures, "infer");
    assert!(figures["rejected"].as_u64() > Some(0), "{figures}");
}

#[test]
fn a_model_behind_another_is_measured_with_it() {
    let second = "  again: {kind: transform.test_tensor}\n  second: {kind: infer.test, with: {batch: 2, as: second, column: tensor}}\n";
    number(&bench(&Folder::with_nodes(&format!("{ROWS}{MODEL}{second}{OUT}"))), "infer");
}

#[test]
fn a_limit_is_of_rows_where_items_hold_many() {
    let boxes = "  rows: {kind: source.test_boxes, with: {boxes: 5, most: 9, open: 3, bad_every: 4}}\n";
    let folder = Folder::with_nodes(&format!("{boxes}{MODEL}{OUT}"));
    number(&bench(&folder), "infer");
    folder.write("p.yaml", &folder.read("p.yaml").replace("nodes:", "run: {limit: 7}\nnodes:"));
    number(&bench(&folder), "infer");
    let folder = Folder::with_nodes(&format!("{ROWS}{MODEL}{OUT}"));
    folder.write("p.yaml", &folder.read("p.yaml").replace("nodes:", "run: {limit: 7}\nnodes:"));
    number(&bench(&folder), "infer");
}

#[test]
fn rejects_are_told_and_no_failure() {
    let nodes = format!("{ROWS}  some: {{kind: transform.test_reject, with: {{share: 0.5}}}}\n{MODEL}{OUT}");
    let folder = Folder::with_nodes(&nodes);
    folder.write("p.yaml", &folder.read("p.yaml").replace("nodes:", "run: {max_rejects: 1}\nnodes:"));
    assert!(bench(&folder)["rejected"].as_u64() > Some(0));
}

#[test]
fn people_get_a_line_for_each_figure() {
    let folder = Folder::with_nodes(&format!("{ROWS}{MODEL}{OUT}"));
    let done = folder.run(&["bench", "p.yaml", "--seconds", "1"]);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{done:?}");
    let lines: Vec<_> = done.stdout.lines().collect();
    let words: Vec<_> = lines.iter().map(|line| line[..10].trim_end()).collect();
    assert_eq!(words, ["decode", "infer", "limit", "end to end"]);
    assert!(lines.iter().all(|line| line[11..].split_whitespace().next().is_some_and(|rate| rate.ends_with("/s"))));
    assert!(lines[2].ends_with("decode and infer share the cores"), "{done:?}");
    assert!(lines[3].ends_with(" % of the limit"), "{done:?}");
}

#[test]
fn what_earlier_runs_have_left_stays() {
    let folder = Folder::with_nodes(&format!("{ROWS}{MODEL}{OUT}"));
    let left = ["out/rows.jsonl", "out/.rows.jsonl.partial", "out/p.rejects.jsonl", ".flowgpu/p/spool/out/part"];
    left.iter().for_each(|file| folder.write(file, "earlier\n"));
    let done = folder.run(&["bench", "p.yaml", "--seconds", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
    left.iter().for_each(|file| assert_eq!(folder.read(file), "earlier\n", "{file}"));
    assert_eq!(folder.names("out"), [".rows.jsonl.partial", "p.rejects.jsonl", "rows.jsonl"]);
    assert_eq!(folder.names(".flowgpu/p"), ["spool"]);
}
