//! What the driver tells, and what it does not.

use serde_json::{Value as Json, json};

use crate::machine::{GIB, Machine, SHIPPED, gpu, uuid, with};

/// Four GPUs: idle, busy, drawn on, and cut into instances.
fn machine() -> Machine {
    let busy = with(gpu(1), "users", json!([{"pid": 4000, "bytes": GIB}, {"pid": 4121, "bytes": 13 * GIB}]));
    let drawn = with(gpu(2), "users", json!([{"pid": 7, "bytes": GIB, "graphics": true}, {"pid": 8}]));
    let cut = with(gpu(3), "mig", json!([{"uuid": "MIG-a", "name": "Stand-in A MIG 1g.5gb", "memory": 5 * GIB}]));
    Machine::new(&[gpu(0), busy, drawn, cut])
}

#[test]
fn every_figure_of_a_gpu_is_the_drivers() {
    let devices = machine().devices();
    let gpus = devices["gpus"].as_array().expect("a list");
    assert_eq!(gpus.len(), 4);
    let context = devices["overhead"].as_u64().expect("a number");
    assert_eq!(
        gpus[1],
        json!({
            "index": 1, "token": uuid(1), "uuid": uuid(1), "name": "Stand-in A", "total": 24 * GIB, "free": 10 * GIB,
            "users": [{"pid": 4121, "bytes": 13 * GIB}, {"pid": 4000, "bytes": GIB}], "driver": "580.159", "mig": false,
            "device": "cuda:1", "available": 10 * GIB - context, "workers": Json::Null,
        })
    );
    assert_eq!(gpus[2]["users"], json!([{"pid": 7, "bytes": GIB}, {"pid": 8, "bytes": null}]));
    assert_eq!(gpus[3]["name"], "Stand-in A MIG 1g.5gb");
    assert_eq!((&gpus[3]["mig"], &gpus[3]["total"]), (&json!(true), &json!(5 * GIB)));
    assert_eq!(devices["totals"]["gpus"], 4);
    assert_eq!(devices["totals"]["memory"], 77 * GIB);
    assert_eq!(devices["gpus_note"], Json::Null);
    let cores = std::thread::available_parallelism().expect("cores").get();
    assert_eq!(devices["cores"], cores);
}

#[test]
fn workers_are_recommended_for_the_models_memory() {
    let done = machine().run(SHIPPED, &["devices", "--model-memory", "5GiB", "--format", "json"]);
    let devices = done.json();
    let workers: Vec<_> = devices["gpus"].as_array().expect("a list").iter().map(|gpu| &gpu["workers"]).collect();
    assert_eq!(workers, [4, 1, 4, 0]);
    assert_eq!(devices["totals"]["workers"], 9);
    assert_eq!(devices["command"], "flowgpu run PIPELINE.yaml --device cuda:0,1,2 --workers-per-device 1");
    for wrong in ["much", "-1", "5 pounds"] {
        assert_eq!(machine().run(SHIPPED, &["devices", "--model-memory", wrong]).code, 2, "{wrong}");
    }
}

#[test]
fn people_get_a_table_that_ends_with_the_command() {
    let done = machine().run(SHIPPED, &["devices", "--model-memory", "5GiB"]);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{done:?}");
    for part in
        [&*uuid(0), "pid 4121 uses 13 GiB, pid 4000 uses 1 GiB", "580.159", "4 GPUs, 77 GiB", "cuda:3  Stand-in A MIG"]
    {
        assert!(done.stdout.contains(part), "{part} in {}", done.stdout);
    }
    let last = done.stdout.lines().last().expect("a line");
    assert_eq!(last, "run     flowgpu run PIPELINE.yaml --device cuda:0,1,2 --workers-per-device 1");
    assert!(done.stdout.is_ascii() && !done.stdout.contains('\x1b'));
    let coloured = machine().set("CLICOLOR_FORCE", "1");
    assert!(coloured.run(SHIPPED, &["devices"]).stdout.contains('\x1b'));
    let plain = coloured.set("NO_COLOR", "1");
    assert!(!plain.run(SHIPPED, &["devices"]).stdout.contains('\x1b'));
}

#[test]
fn a_gpu_whose_memory_cannot_be_asked_is_left_out_and_named() {
    let lost = with(gpu(1), "failing", json!(["nvmlDeviceGetMemoryInfo_v2"]));
    let devices = Machine::new(&[gpu(0), lost, gpu(2)]).devices();
    let names: Vec<_> = devices["gpus"].as_array().expect("a list").iter().map(|gpu| &gpu["device"]).collect();
    assert_eq!(names, ["cuda:0", "cuda:2"], "numbers stay as CUDA counts");
    assert!(devices["gpus_note"].as_str().expect("a note").starts_with("cuda:1 is left out: "), "{devices}");
}

#[test]
fn calls_that_tell_less_cost_less() {
    let all = ["Name", "ComputeRunningProcesses_v3", "GraphicsRunningProcesses_v3", "MigMode", "UtilizationRates"];
    let failing: Vec<_> = all.iter().map(|call| format!("nvmlDeviceGet{call}")).collect();
    let devices = Machine::new(&[with(gpu(0), "failing", json!(failing))]).devices();
    let gpu = &devices["gpus"][0];
    assert_eq!((&gpu["name"], &gpu["users"], &gpu["uuid"]), (&json!("unknown"), &json!([]), &json!(uuid(0))));
    assert_eq!(devices["gpus_note"], Json::Null);
}

#[test]
fn a_gpu_that_cannot_be_opened_is_named() {
    let lost = with(gpu(0), "failing", json!(["nvmlDeviceGetHandleByIndex_v2"]));
    let devices = Machine::new(&[lost, gpu(1)]).devices();
    assert_eq!(devices["gpus"].as_array().expect("a list").len(), 1);
    assert!(devices["gpus_note"].as_str().expect("a note").contains("GPU 0 of the driver cannot be opened"));
}

#[test]
fn without_a_driver_there_is_one_line_about_it_and_the_cpu() {
    let cases = [
        (Machine::without_driver(), "there is no NVIDIA driver (looked for `libnvidia-ml.so.1`, `libnvidia-ml.so`)"),
        (Machine::without_driver().with_library(), "the NVIDIA driver does not answer: NVIDIA driver is not loaded"),
        (
            Machine::without_driver().set("FLOWGPU_NVML", "/none.so"),
            "`/none.so`, which `FLOWGPU_NVML` names, cannot be loaded",
        ),
    ];
    for (machine, reason) in cases {
        let done = machine.run(SHIPPED, &["devices", "--model-memory", "5GiB"]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{done:?}");
        let lines: Vec<_> = done.stdout.lines().collect();
        assert_eq!(lines.len(), 4, "{}", done.stdout);
        assert_eq!(lines[0], format!("gpu     {reason}"));
        assert!(lines[1].starts_with("cpu     ") && lines[1].contains(" of memory"), "{}", lines[1]);
        assert!(lines[2].starts_with("onnx    there is no ONNX Runtime: "), "{}", lines[2]);
        assert!(lines[3].contains("pip install onnxruntime"), "{}", lines[3]);
        let json = machine.devices();
        assert_eq!((&json["gpus"], &json["gpus_note"]), (&json!([]), &json!(reason)));
        assert_eq!(json["onnxruntime"], Json::Null);
    }
}

#[test]
fn the_onnx_runtime_that_would_be_used_is_named() {
    let machine = machine();
    let library = machine.path("libonnxruntime.so.1.32.0");
    machine.write("libonnxruntime.so.1.32.0", "");
    let done = machine.run(SHIPPED, &["devices"]);
    let line = format!("onnx    1.32.0, {} (named by FLOWGPU_ONNXRUNTIME)", library.display());
    assert!(done.stdout.lines().any(|found| found == line), "{line} in {}", done.stdout);
    let found = &machine.devices()["onnxruntime"];
    assert_eq!(*found, json!({"path": library, "version": "1.32.0", "by": "named by FLOWGPU_ONNXRUNTIME"}));
}

#[test]
fn a_driver_without_gpus_says_so() {
    let devices = Machine::new(&[]).devices();
    assert_eq!(devices["gpus_note"], "there is an NVIDIA driver, and it knows no GPU");
}

#[test]
fn the_worker_for_gpus_is_shown_or_where_it_was_looked_for() {
    let machine = Machine::new(&[gpu(0)]);
    let path = machine.path("worker");
    assert_eq!(machine.devices()["cuda_worker"], json!({"path": path}));
    let machine = machine.set("FLOWGPU_WORKER_CUDA", "/none");
    assert_eq!(machine.devices()["cuda_worker"], json!({"looked": ["/none"]}));
    assert_eq!(machine.devices()["command"], Json::Null);
    let text = machine.run(SHIPPED, &["devices"]).stdout;
    assert!(text.contains("looked for `/none`") && text.contains("scripts/cuda-build.sh"), "{text}");
    // Unset, it is beside the program.
    let beside = std::path::Path::new(SHIPPED).with_file_name("flowgpu-worker-cuda");
    let machine = machine.set("FLOWGPU_WORKER_CUDA", "");
    assert!(!beside.exists(), "this test needs a build without the worker");
    assert_eq!(machine.devices()["cuda_worker"], json!({"looked": [beside]}));
}
