//! Running out of a device's memory.

use serde_json::json;

use crate::scene::{check_sums, describe, gpu, run_with_gpus, sums, workers};

#[test]
fn batches_that_are_too_large_are_cut_and_the_cap_is_told() {
    // Room for 16 rows of 64: what the plan could not know, since the model says that it needs less.
    let folder = sums(640, 64, "max_rows: 16");
    let args = ["run", "p.yaml", "--isolation", "process", "--report", "r.json"];
    let done = folder.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    check_sums(&folder, 640, &[]);
    let caps = workers(&folder.json("r.json"))[0]["caps"].clone();
    assert_eq!(caps, json!([{"node": "sums", "shape": [[8]], "rows": 16}]));
}

#[test]
fn another_user_of_the_gpu_costs_batch_size_and_no_row() {
    // By the plan three batches of 64 fit beside each other; then somebody takes all but the memory of 20 rows.
    let model = "need: {weights: 1000, activations_per_row: 10000000}";
    let folder = sums(640, 64, model);
    describe(&folder, &[gpu(0, json!({"overhead": (8u64 << 30) - 200_001_000}))]);
    let args = ["run", "p.yaml", "--device", "cuda", "--workers-per-device", "1", "--report", "r.json"];
    let done = run_with_gpus(&folder, &args);
    assert_eq!(done.code, 0, "{done:?}");
    check_sums(&folder, 640, &[]);
    let caps = workers(&folder.json("r.json"))[0]["caps"].clone();
    assert_eq!(caps, json!([{"node": "sums", "shape": [[8]], "rows": 16}]));
}

#[test]
fn rows_that_never_fit_are_rejects_of_their_own_kind() {
    let folder = sums(20, 8, "max_rows: 0");
    let done = folder.run(&["run", "p.yaml", "--isolation", "process"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(folder.rows("p.rejects.jsonl").iter().all(|reject| reject["code"] == "out_of_memory"), "{done:?}");
    assert_eq!(folder.rows("out.jsonl").len(), 0);
}
