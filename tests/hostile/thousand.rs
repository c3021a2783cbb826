//! One bad file among many, and one bad row in a batch: nothing else changes.

use serde_json::Value;

use crate::told;
use crate::workplace::Workplace;

const TESTING: &str = env!("CARGO_BIN_EXE_flowgpu-test");

const TENSORS: &str = r#"
name: thousand
nodes:
  photos: {kind: source.files, with: {path: "in/*.jpg"}}
  pixels: {kind: decode.image, with: {resize: 24, crop: 24}}
  ids:    {kind: sink.jsonl, from: pixels, with: {path: out/ids.jsonl}}
  array:  {kind: sink.npy, from: pixels, with: {path: out/pixels.npy, column: image}}
"#;

/// Some pictures of different forms, again and again.
fn picture(index: usize) -> Vec<u8> {
    let names = ["420-35x33", "444-35x33", "420-progressive", "422-arithmetic", "411-35x33"];
    let path = format!("{}/nodes/tests/jpeg/{}.jpg", env!("CARGO_MANIFEST_DIR"), names[index % names.len()]);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_truncated_picture_among_a_thousand_is_one_reject_and_changes_no_byte_of_the_others() {
    const BAD: usize = 500;
    let workplace = Workplace::new();
    workplace.write("p.yaml", TENSORS);
    for index in (0..1000).filter(|&index| index != BAD) {
        workplace.write(&format!("in/{index:04}.jpg"), picture(index));
    }
    workplace.run(&["p.yaml"]).expect(0);
    let (ids, pixels) = (workplace.read("out/ids.jsonl"), workplace.read("out/pixels.npy"));
    assert_eq!(ids.iter().filter(|&&byte| byte == b'\n').count(), 999);
    assert_eq!(pixels.len(), 128 + 999 * 24 * 24 * 3, "a header and a row each");
    let whole = picture(0);
    workplace.write("in/0500.jpg", &whole[..whole.len() / 2]);
    workplace.run(&["p.yaml", "--fresh"]).expect(3);
    assert!(workplace.read("out/ids.jsonl") == ids && workplace.read("out/pixels.npy") == pixels, "other rows changed");
    let rejects = workplace.rows("out/thousand.rejects.jsonl");
    assert_eq!(rejects.iter().map(told).collect::<Vec<_>>(), [["in/0500.jpg", "pixels", "truncated"]]);
}

/// The numbers of rows of the batches that a model was given, in order.
fn batches(workplace: &Workplace) -> Vec<u64> {
    let events: Value = serde_json::from_slice(&workplace.read("trace.json")).expect("JSON");
    let events = events.as_array().expect("events").iter();
    events.filter(|event| event["ph"] == "b").map(|event| event["args"]["rows"].as_u64().expect("rows")).collect()
}

fn rows_but(bad: &str, model: &str) -> String {
    format!(
        "name: batches\nnodes:\n  rows: {{kind: source.synthetic, with: {{rows: {{count: 64}}}}}}\n{bad}  \
         x: {{kind: transform.test_tensor}}\n  scores: {{kind: infer.test, with: {{batch: 32{model}}}}}\n  \
         out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}\n"
    )
}

#[test]
fn a_row_that_is_rejected_before_a_batch_leaves_no_hole_in_it() {
    let workplace = Workplace::new();
    let run = |yaml: String, code: i32| {
        workplace.write("p.yaml", yaml);
        workplace.command(&[TESTING, "run"], &["p.yaml", "--fresh", "--trace", "trace.json"]).expect(code);
        (workplace.rows("out.jsonl"), batches(&workplace))
    };
    let (all, of_all) = run(rows_but("", ""), 0);
    assert_eq!(of_all, [32, 32]);
    let (rows, of_rest) = run(rows_but("  bad: {kind: transform.test_reject, with: {rows: [5]}}\n", ""), 3);
    assert_eq!(of_rest, [32, 31], "the first batch is full again");
    let is_other = |(index, row): (usize, &Value)| (index != 5).then(|| row.clone());
    assert_eq!(rows, all.iter().enumerate().filter_map(is_other).collect::<Vec<_>>());
}

#[test]
fn a_row_that_breaks_the_model_costs_itself_and_no_other_of_its_batch() {
    let workplace = Workplace::new();
    let model = ", column: tensor";
    workplace.write("p.yaml", rows_but("", model));
    workplace.command(&[TESTING, "run"], &["p.yaml", "--fresh"]).expect(0);
    let all = workplace.rows("out.jsonl");
    let numbered = rows_but("", ", panic: {rows: [5]}").replace("test_tensor}", "test_tensor, with: {numbered: true}}");
    workplace.write("p.yaml", numbered);
    workplace.command(&[TESTING, "run"], &["p.yaml", "--fresh"]).expect(3);
    let rows = workplace.rows("out.jsonl");
    assert_eq!(rows.len(), all.len() - 1);
    assert!(rows.iter().all(|row| row["uri"] != "synthetic/5"));
    let rejects = workplace.rows("batches.rejects.jsonl");
    assert_eq!(rejects.iter().map(told).collect::<Vec<_>>(), [["synthetic/5", "scores", "panic"]]);
}
