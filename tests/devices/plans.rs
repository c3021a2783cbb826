//! `flowgpu plan` on machines with GPUs.

use serde_json::{Value as Json, json};

use crate::machine::{Done, GIB, Machine, SHIPPED, TESTING, gpu, uuid, with};

const MODEL: &str = "  sums: {kind: infer.test}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n";
const MIB: u64 = 1 << 20;

/// A machine whose GPUs have so many MiB free, the first as many as are built in.
fn machine(free: &[u64], run: &str) -> Machine {
    let gpus: Vec<_> = free.iter().enumerate().map(|(at, mib)| with(gpu(at), "memory", json!(mib * MIB))).collect();
    let machine = Machine::new(&gpus);
    machine.write_pipeline(run, MODEL);
    machine
}

fn workers(done: &Done) -> Vec<Json> {
    done.json()["placement"]["workers"].as_array().expect("a list").clone()
}

fn devices(done: &Done) -> Vec<String> {
    workers(done).iter().map(|worker| worker["device"].as_str().expect("a name").to_owned()).collect()
}

/// The message and the help of a refusal.
fn refusal(done: &Done) -> &str {
    assert_eq!((done.code, &*done.stdout), (2, ""), "{done:?}");
    &done.stderr
}

#[test]
fn a_model_goes_to_every_gpu() {
    let machine = machine(&[4000, 4000], "{workers_per_device: 1}");
    let done = machine.plan(&["--format", "json"]);
    assert_eq!(done.json()["placement"]["isolation"], "process");
    let workers = workers(&done);
    assert_eq!(workers.len(), 2);
    for (at, worker) in workers.iter().enumerate() {
        assert_eq!((&worker["device"], &worker["uuid"]), (&json!(format!("cuda:{at}")), &json!(uuid(at))));
        assert_eq!((&worker["models"], &worker["isolation"]), (&json!(["sums"]), &json!("process")));
        assert!(worker["memory"].as_u64().expect("bytes") >= 450 * MIB);
        let items = &worker["memory_items"];
        let model = &items["models"][0];
        let number = |value: &Json| value.as_u64().expect("a number");
        let sum = number(&items["context"])
            + number(&model["weights"])
            + number(&model["rows"]) * number(&model["activations_per_row"])
            + number(&model["workspace"]);
        assert_eq!(number(&worker["memory"]), sum);
    }
    // The models' threads are the workers'.
    assert_eq!(done.json()["threads"]["model"], 0);
}

#[test]
fn tokens_are_the_users_own() {
    let machine = machine(&[4000, 4000, 4000], "{workers_per_device: 1}").set("CUDA_VISIBLE_DEVICES", "2,0");
    let done = machine.plan(&["--format", "json"]);
    let seen: Vec<_> = workers(&done).iter().map(|worker| (worker["token"].clone(), worker["uuid"].clone())).collect();
    assert_eq!(seen, [(json!("2"), json!(uuid(2))), (json!("0"), json!(uuid(0)))]);
}

#[test]
fn the_command_line_wins_over_the_file() {
    let machine = machine(&[4000, 4000], "{device: cpu, isolation: thread, workers_per_device: 1}");
    assert_eq!(devices(&machine.plan(&["--format", "json"])), ["cpu"]);
    assert_eq!(devices(&machine.plan(&["--format", "json", "--device", "cuda:1"])), ["cuda:1"]);
    let two = machine.plan(&["--format", "json", "--device", "cuda:0", "--workers-per-device", "2"]);
    assert_eq!(devices(&two), ["cuda:0", "cuda:0"]);
    let process = machine.plan(&["--format", "json", "--isolation", "process"]);
    assert_eq!(process.json()["placement"]["isolation"], "process");
    assert_eq!(process.json()["threads"]["model"], 0);
    let cores = std::thread::available_parallelism().expect("cores").get();
    assert_eq!(workers(&process)[0]["threads"], cores);
    assert_eq!(machine.plan(&["--isolation", "none"]).code, 2);
}

#[test]
fn workers_on_the_cpu_share_its_threads() {
    let machine = machine(&[], "{device: cpu, isolation: process, workers_per_device: 2, threads: {model: 3}}");
    let threads: Vec<_> =
        workers(&machine.plan(&["--format", "json"])).iter().map(|worker| worker["threads"].clone()).collect();
    assert_eq!(threads, [2, 1]);
    let done = machine.plan(&["--workers-per-device", "4"]);
    assert!(refusal(&done).contains("4 workers on the CPU were asked for, and there are 3 threads"), "{done:?}");
}

#[test]
fn a_pipeline_for_the_cpu_asks_no_driver() {
    // A library that ends the process when it is asked would be better proof; one that is not there gives a note.
    let machine = Machine::without_driver().set("FLOWGPU_NVML", "/none.so");
    machine.write_pipeline("{device: cpu}", MODEL);
    let done = machine.plan(&["--format", "json"]).json();
    assert_eq!((&done["host"]["gpus_note"], &done["notes"]), (&Json::Null, &json!([])));
    machine.write_pipeline("{}", MODEL);
    let done = machine.plan(&["--format", "json"]).json();
    let reason = "`/none.so`, which `FLOWGPU_NVML` names, cannot be loaded";
    assert_eq!(done["notes"], json!([format!("models run on the CPU: {reason}")]));
}

#[test]
fn auto_without_the_worker_takes_the_cpu_and_says_so() {
    let machine = machine(&[4000], "{}").set("FLOWGPU_WORKER_CUDA", "/none");
    let done = machine.plan(&["--format", "json"]);
    assert_eq!(devices(&done), ["cpu"]);
    assert_eq!(
        done.json()["notes"],
        json!(["models run on the CPU: the worker for GPUs was not found: looked for `/none`"])
    );
    let text = machine.plan(&[]).stdout;
    assert!(text.contains("\nnote       models run on the CPU: "), "{text}");
}

/// Both commands refuse in the same words, before anything is written.
fn check_refused(machine: &Machine, args: &[&str], parts: &[&str]) {
    for command in ["plan", "run"] {
        let done = machine.run(TESTING, &[&[command, "p.yaml"], args].concat());
        for part in parts {
            assert!(refusal(&done).contains(part), "{part} in {}", done.stderr);
        }
        assert!(!machine.path("out.jsonl").exists());
    }
}

#[test]
fn cuda_without_a_gpu_is_refused_with_what_was_looked_for() {
    let machine = Machine::without_driver();
    machine.write_pipeline("{}", MODEL);
    let reason = "`sums` asks for `cuda`, and there is no NVIDIA driver (looked for `libnvidia-ml.so.1`, ";
    check_refused(&machine, &["--device", "cuda"], &[reason, "help: ", "`flowgpu devices`"]);
    let hidden = self::machine(&[4000], "{device: cuda}").set("CUDA_VISIBLE_DEVICES", "");
    check_refused(&hidden, &[], &["`CUDA_VISIBLE_DEVICES` is empty"]);
}

#[test]
fn cuda_without_the_worker_is_refused_with_where_it_was_looked_for() {
    let machine = machine(&[4000], "{device: cuda}").set("FLOWGPU_WORKER_CUDA", "/none");
    let parts =
        ["`sums` asks for `cuda`, and the worker for GPUs was not found: looked for `/none`", "scripts/cuda-build.sh"];
    check_refused(&machine, &[], &parts);
}

#[test]
fn a_gpu_that_is_not_there_is_refused_with_the_list() {
    let machine = machine(&[4096, 4096, 4096, 8192], "{}");
    let list = "`sums` asks for `cuda:7`, and there are 4 GPUs: cuda:0 Stand-in A (4 GiB), cuda:1 Stand-in A (4 GiB), \
                cuda:2 Stand-in A (4 GiB), cuda:3 Stand-in A (8 GiB)";
    check_refused(&machine, &["--device", "cuda:7"], &[list]);
}

#[test]
fn a_model_that_does_not_fit_is_refused_with_the_whole_sum() {
    // Less than the context alone takes.
    let machine = machine(&[400, 300], "{}");
    let parts = [
        "`sums` does not fit on any GPU",
        "context 450 MiB",
        "cuda:0 has 400 MiB free of 400 MiB",
        "cuda:1 has 300 MiB",
    ];
    check_refused(&machine, &[], &parts);
}

#[test]
fn memory_of_other_users_is_not_ours() {
    let busy = with(gpu(0), "users", json!([{"pid": 4121, "bytes": 24 * GIB - 400 * MIB}]));
    let machine = Machine::new(std::slice::from_ref(&busy));
    machine.write_pipeline("{}", MODEL);
    check_refused(&machine, &[], &["cuda:0 has 400 MiB free of 24 GiB; pid 4121 uses 23.6 GiB"]);
    let machine = Machine::new(&[busy, gpu(1)]);
    machine.write_pipeline("{}", MODEL);
    let done = machine.plan(&["--format", "json"]);
    assert!(devices(&done).iter().all(|device| device == "cuda:1"), "{done:?}");
    let notes = done.json()["notes"].clone();
    assert!(notes[0].as_str().expect("a note").starts_with("cuda:0 gets no model: "), "{notes}");
}

#[test]
fn more_workers_than_fit_are_refused() {
    let machine = machine(&[4000], "{}");
    let done = machine.plan(&["--workers-per-device", "9"]);
    assert!(refusal(&done).contains("9 workers do not fit on cuda:0: 9 x "), "{done:?}");
    assert!(done.stderr.contains("fits on every GPU that is used"), "{done:?}");
}

#[test]
fn models_of_their_own_gpus_are_where_they_were_put() {
    let machine = machine(&[4000, 4000], "{placement: spread}");
    let two = "  a: {kind: infer.test, from: tensor, with: {as: a}}\n  b: {kind: infer.test, from: tensor, with: {as: b}}\n  \
               out: {kind: sink.jsonl, from: a, with: {path: a.jsonl}}\n  \
               other: {kind: sink.jsonl, from: b, with: {path: b.jsonl}}\n";
    machine.write_pipeline("{placement: spread, workers_per_device: 1}", two);
    let done = machine.plan(&["--format", "json"]);
    let models: Vec<_> = workers(&done).iter().map(|worker| worker["models"].clone()).collect();
    assert_eq!(models, [json!(["a"]), json!(["b"])]);
    let done = machine.plan(&["--format", "json", "--device", "cuda:1"]);
    assert_eq!(devices(&done), ["cuda:1"]);
    assert_eq!(workers(&done)[0]["models"], json!(["a", "b"]));
}

#[test]
fn people_see_devices_sums_bars_and_streams() {
    let users = json!([{"pid": 4121, "bytes": 14 * GIB}]);
    let machine = Machine::new(&[gpu(0), with(gpu(1), "users", users)]);
    machine.write_pipeline("{workers_per_device: 1}", MODEL);
    let done = machine.plan(&[]);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{done:?}");
    for part in [
        "devices    2 × Stand-in A (24 GiB): cuda:0 24 GiB free, cuda:1 10 GiB free (pid 4121 uses 14 GiB)\n",
        "memory     sums  ",
        "context 450 MiB = ",
        " a worker\n",
        "placement  sums → cuda:0 ▕█░░░░░░░░░▏ 1 worker, ",
        "           sums → cuda:1 ▕█▒▒▒▒▒▒░░░▏ 1 worker, ",
        "streams    3 for each model: upload, compute, download; 3 slots\n",
    ] {
        assert!(done.stdout.contains(part), "{part} in {}", done.stdout);
    }
    let ascii = machine.set("LANG", "C").plan(&[]);
    assert!(ascii.stdout.is_ascii() && ascii.stdout.contains("sums -> cuda:0 [#.........] 1 worker"), "{ascii:?}");
}

#[test]
fn the_shipped_program_plans_the_same() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/quickstart.yaml");
    let done = Machine::new(&[gpu(0)]).run(SHIPPED, &["plan", file, "--format", "json"]);
    assert_eq!(workers(&done)[0]["models"], json!(["scores"]));
}
