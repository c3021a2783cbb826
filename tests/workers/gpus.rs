//! Models on several stand-in GPUs: who runs where, sees what, gets how much.

use serde_json::{Value as Json, json};

use crate::program::Folder;
use crate::scene::{check_sums, describe, example, gpu, rows_by_device, run_with_gpus, sums, uuid, with_gpus, workers};

#[test]
fn each_worker_sees_its_own_gpu_and_no_other() {
    let folder = sums(400, 8, "");
    describe(&folder, &[0, 1, 2, 3].map(|index| gpu(index, json!({"compute_ms": 2}))));
    let args = ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1", "--report", "r.json", "--fresh"];
    for (visible, seen) in [(None, vec![0, 1, 2, 3]), (Some("2,0"), vec![2, 0]), (Some("GPU-3"), vec![3])] {
        let mut command = with_gpus(&folder, &args);
        command.envs(visible.map(|visible| ("CUDA_VISIBLE_DEVICES", visible)));
        let done = crate::program::done(command.output().expect("the program starts"));
        assert_eq!(done.code, 0, "{done:?}");
        check_sums(&folder, 400, &[]);
        let workers = workers(&folder.json("r.json"));
        let found: Vec<_> = workers.iter().map(|worker| worker["uuid"].as_str().expect("a UUID").to_owned()).collect();
        assert_eq!(found, seen.into_iter().map(uuid).collect::<Vec<_>>(), "{visible:?}");
        let devices: Vec<_> = workers.iter().map(|worker| worker["device"].clone()).collect();
        assert_eq!(devices, (0..found.len()).map(|index| json!(format!("cuda:{index}"))).collect::<Vec<_>>());
    }
}

#[test]
fn a_slower_gpu_gets_less() {
    let folder = sums(4000, 8, "");
    let speeds = [1.0, 1.0, 0.33, 1.0];
    let gpus: Vec<_> =
        speeds.iter().enumerate().map(|(index, speed)| gpu(index, json!({"compute_ms": 10, "speed": speed}))).collect();
    describe(&folder, &gpus);
    let args = ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1", "--report", "r.json"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 0, "{done:?}");
    check_sums(&folder, 4000, &[]);
    let rows = rows_by_device(&folder.json("r.json"));
    assert_eq!(rows.values().sum::<u64>(), 4000);
    // A tenth of all, since 0.33 / 3.33 is that.
    let share = rows["cuda:2"] as f64 / 4000.0;
    assert!((0.07..=0.13).contains(&share), "{rows:?}");
}

/// What the trace says of one stage of one node's jobs in one worker: start and end, in milliseconds, by start.
fn spans(trace: &Json, node: &str, stage: &str) -> Vec<(f64, f64)> {
    let events = trace.as_array().expect("a list");
    let track = events.iter().find(|event| event["args"]["name"] == format!("{node} {stage}")).expect("a track");
    let of_track =
        |event: &&Json| event["ph"] == "X" && (&event["pid"], &event["tid"]) == (&track["pid"], &track["tid"]);
    let span = |event: &Json| {
        let (start, took) = (event["ts"].as_f64().expect("a time"), event["dur"].as_f64().expect("a time"));
        (start / 1e3, (start + took) / 1e3)
    };
    let mut spans: Vec<_> = events.iter().filter(of_track).map(span).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    spans
}

#[test]
fn upload_compute_and_download_of_successive_jobs_overlap() {
    let folder = sums(800, 8, "");
    describe(&folder, &[gpu(0, json!({"upload_ms": 10, "compute_ms": 10, "download_ms": 10}))]);
    let args = ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1", "--trace", "t.json"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 0, "{done:?}");
    let trace = folder.json("t.json");
    let (uploads, downloads) = (spans(&trace, "sums", "upload"), spans(&trace, "sums", "download"));
    assert_eq!((uploads.len(), downloads.len()), (100, 100));
    // One after the other they would take 3,000 ms; overlapped 1,020, and more where this machine is late to start one.
    let took = downloads[99].1 - uploads[0].0;
    assert!(took < 1500.0, "{took} ms");
}

#[test]
fn two_models_on_one_gpu_compute_at_the_same_time() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 800}}}
  tensor: {kind: transform.test_tensor, with: {shape: [8], dtype: u8}}
  batches: {kind: batch, with: {size: 8}}
  one: {kind: infer.test, from: batches, with: {as: one}}
  two: {kind: infer.test, from: batches, with: {as: two}}
  both: {kind: transform.join, from: [one, two]}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
",
    );
    describe(&folder, &[gpu(0, json!({"upload_ms": 1, "compute_ms": 10, "download_ms": 1}))]);
    let args =
        ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1", "--trace", "t.json", "--report", "r.json"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.rows("out.jsonl").len(), 800);
    assert_eq!(workers(&folder.json("r.json"))[0]["nodes"], json!(["one", "two"]));
    let trace = folder.json("t.json");
    let [one, two] = ["one", "two"].map(|node| spans(&trace, node, "compute"));
    assert!(in_common(&one, &two) >= 0.5 * length(&one).min(length(&two)), "{one:?} {two:?}");
}

#[test]
fn the_two_models_of_the_example_compute_at_the_same_time() {
    let folder = example("two-models");
    // Longer than the arithmetic takes that stands behind it.
    describe(&folder, &[gpu(0, json!({"upload_ms": 1, "compute_ms": 400, "download_ms": 1}))]);
    let args = ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1", "--trace", "t.json"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.rows("out/two-models.jsonl").len(), 6);
    let trace = folder.json("t.json");
    let [one, two] = ["lite0", "resnet18"].map(|node| spans(&trace, node, "compute"));
    assert!(in_common(&one, &two) >= 0.5 * length(&one).min(length(&two)), "{one:?} {two:?}");
}

/// How long all spans are together.
fn length(spans: &[(f64, f64)]) -> f64 {
    spans.iter().map(|(start, end)| end - start).sum()
}

/// How long spans of one list and of the other go on at the same time.
fn in_common(one: &[(f64, f64)], two: &[(f64, f64)]) -> f64 {
    one.iter().flat_map(|a| two.iter().map(move |b| (a.1.min(b.1) - a.0.max(b.0)).max(0.0))).sum()
}

#[test]
fn models_that_do_not_fit_together_are_dealt_over_the_gpus() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 200}}}
  tensor: {kind: transform.test_tensor, with: {shape: [8]}}
  batches: {kind: batch, with: {size: 8}}
  one: {kind: infer.test, from: batches, with: {as: one, need: {weights: 5000000000}}}
  two: {kind: infer.test, from: batches, with: {as: two, need: {weights: 5000000000}}}
  both: {kind: transform.join, from: [one, two]}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
",
    );
    describe(&folder, &[0, 1].map(|index| gpu(index, json!({}))));
    let done = run_with_gpus(&folder, &["run", "p.yaml", "--device", "cuda"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("placement: spread"), "{done:?}");
    let args = ["run", "p.yaml", "--device", "cuda", "--placement", "spread", "--report", "r.json"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.rows("out.jsonl").len(), 200);
    let workers = workers(&folder.json("r.json"));
    let placed: Vec<_> = workers.iter().map(|worker| (worker["device"].clone(), worker["nodes"].clone())).collect();
    assert_eq!(placed, [(json!("cuda:0"), json!(["one"])), (json!("cuda:1"), json!(["two"]))]);
}

#[test]
fn a_gpu_that_is_lost_for_good_costs_no_row() {
    let folder = sums(800, 8, "");
    describe(&folder, &[gpu(0, json!({"compute_ms": 2})), gpu(1, json!({"compute_ms": 2, "lost_after": 5}))]);
    let args = ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1", "--report", "r.json"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 0, "{done:?}");
    check_sums(&folder, 800, &[]);
}

#[test]
fn a_gpu_that_is_lost_once_comes_back() {
    let folder = sums(800, 8, "");
    describe(&folder, &[gpu(0, json!({"compute_ms": 2, "lost_after": 5, "lost_again": false}))]);
    let args = ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1", "--report", "r.json"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 0, "{done:?}");
    check_sums(&folder, 800, &[]);
    assert_eq!(workers(&folder.json("r.json"))[0]["restarts"], 1);
}

#[test]
fn when_the_only_gpu_is_lost_for_good_the_run_ends_with_a_fault_that_says_so() {
    let folder = sums(800, 8, "");
    describe(&folder, &[gpu(0, json!({"compute_ms": 2, "lost_after": 0}))]);
    let args = ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("fell off the bus"), "{done:?}");
}
