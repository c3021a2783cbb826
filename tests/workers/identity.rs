//! The same bytes, whether a model runs on a thread or in a process.

use serde_json::json;

use crate::scene::{check_sums, describe, example, gpu, run_with_gpus, sums, workers};

#[test]
fn the_quick_start_is_byte_identical_by_thread_and_by_process() {
    let outputs = ["thread", "process"].map(|isolation| {
        let folder = example("quickstart");
        let done = folder.run(&["run", "p.yaml", "--isolation", isolation, "--report", "r.json"]);
        assert_eq!(done.code, 0, "{done:?}");
        (folder.read("out/labels.jsonl"), folder.json("r.json"))
    });
    assert_eq!(outputs[0].0, outputs[1].0);
    let pids = outputs.each_ref().map(|(_, report)| workers(report)[0]["pid"].as_u64().expect("a process"));
    assert_ne!(pids[0], pids[1]);
}

#[test]
fn whole_batches_as_on_a_gpu_give_the_bytes_of_rows_alone() {
    // The last batch is filled up there. The stand-in computes on the CPU, so even the bits are the same.
    let folder = example("quickstart");
    describe(&folder, &[gpu(0, json!({}))]);
    let outputs = ["cpu", "cuda"].map(|device| {
        let done = run_with_gpus(&folder, &["run", "p.yaml", "--device", device]);
        assert_eq!(done.code, 0, "{done:?}");
        folder.read("out/labels.jsonl")
    });
    assert_eq!(outputs[0], outputs[1]);
}

#[test]
fn several_workers_give_the_rows_of_one_in_order() {
    let folder = sums(1000, 16, "");
    for workers_per_device in ["1", "2"] {
        let args = ["run", "p.yaml", "--isolation", "process", "--workers-per-device", workers_per_device];
        let done = folder.run(&[&args[..], &["--report", "r.json", "--fresh"]].concat());
        assert_eq!(done.code, 0, "{done:?}");
        check_sums(&folder, 1000, &[]);
        let workers = workers(&folder.json("r.json"));
        assert_eq!(workers.len().to_string(), workers_per_device);
        let rows: u64 = workers.iter().map(|worker| worker["rows"].as_u64().expect("a count")).sum();
        assert_eq!(rows, 1000);
    }
}
