//! What cannot be is told before or instead of a run, with what to do; never a silent CPU.

use std::os::unix::fs::PermissionsExt;

use engine::worker::frame::PROTOCOL;
use serde_json::json;

use crate::program::{Done, Folder, done};
use crate::scene::{Computing, describe, gpu, run_with_gpus, sums, uuid, with_gpus};

const CUDA: [&str; 4] = ["run", "p.yaml", "--device", "cuda"];

fn check(done: &Done, code: i32, parts: &[&str]) {
    assert_eq!(done.code, code, "{done:?}");
    for part in parts {
        assert!(done.stderr.contains(part), "{part:?} in {}", done.stderr);
    }
}

fn nothing_was_made(folder: &Folder) {
    assert!(!folder.names(".").contains(&"out.jsonl".to_owned()));
}

#[test]
fn cuda_without_a_driver_is_refused() {
    let folder = sums(10, 8, "");
    let mut command = folder.command(crate::program::TESTING, &CUDA);
    let done = done(command.env("FLOWGPU_NVML", "/nowhere/libnvidia-ml.so.1").output().expect("the program starts"));
    check(&done, 2, &["/nowhere/libnvidia-ml.so.1", "device: cpu"]);
    nothing_was_made(&folder);
}

#[test]
fn no_visible_gpu_is_refused() {
    let folder = sums(10, 8, "");
    describe(&folder, &[gpu(0, json!({}))]);
    for visible in ["", "-1", "7", "GPU-nothing"] {
        let mut command = with_gpus(&folder, &CUDA);
        let done = done(command.env("CUDA_VISIBLE_DEVICES", visible).output().expect("the program starts"));
        check(&done, 2, &["CUDA_VISIBLE_DEVICES"]);
    }
}

#[test]
fn a_gpu_that_is_not_there_is_refused_with_those_that_are() {
    let folder = sums(10, 8, "");
    describe(&folder, &[0, 1, 2, 3].map(|index| gpu(index, json!({}))));
    let done = run_with_gpus(&folder, &["run", "p.yaml", "--device", "cuda:7"]);
    check(&done, 2, &["cuda:7", "cuda:0", "cuda:3"]);
}

#[test]
fn a_model_that_does_not_fit_is_refused_with_the_sum() {
    let folder = sums(10, 8, "need: {weights: 9000000000, activations_per_row: 1000}");
    describe(&folder, &[gpu(0, json!({}))]);
    let done = run_with_gpus(&folder, &CUDA);
    check(&done, 2, &["weights", "sums"]);
    nothing_was_made(&folder);
}

#[test]
fn no_worker_for_gpus_is_refused_with_where_it_was_looked_for() {
    let folder = sums(10, 8, "");
    describe(&folder, &[gpu(0, json!({}))]);
    let mut command = with_gpus(&folder, &CUDA);
    let done = done(command.env("FLOWGPU_WORKER_CUDA", "/nowhere/worker").output().expect("the program starts"));
    check(&done, 2, &["/nowhere/worker", "scripts/cuda-build.sh"]);
}

/// Runs with a worker that says who it is and no more: its build, the UUID of its GPU, how many it sees.
fn run_with_stranger(folder: &Folder, build: &str, uuid: &str, n_visible: u8) -> Done {
    describe(folder, &[gpu(0, json!({}))]);
    let script = format!(
        "#!/usr/bin/env python3
import socket, struct
link = socket.socket(fileno=0)
def text(value): return bytes([0xd9, len(value)]) + value.encode()
def pair(key, value): return text(key) + value
device = bytes([0x85]) + pair('kind', text('cuda')) + pair('name', text('GPU')) + pair('uuid', text('{uuid}'))
device += pair('memory', b'\\xc0') + pair('n_visible', bytes([{n_visible}]))
hello = bytes([0x84]) + pair('protocol', bytes([{PROTOCOL}])) + pair('build', text('{build}'))
hello += pair('pid', bytes([1])) + pair('device', device)
frame = bytes([0x81]) + pair('hello', hello)
link.sendall(struct.pack('<I', len(frame)) + frame)
link.recv(1)
"
    );
    folder.write("worker", &script);
    let path = folder.path("worker");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut command = with_gpus(folder, &CUDA);
    done(command.env("FLOWGPU_WORKER_CUDA", &path).output().expect("the program starts"))
}

const BUILD: &str = env!("FLOWGPU_BUILD");

#[test]
fn a_worker_of_another_build_is_refused_with_both_versions() {
    let folder = sums(10, 8, "");
    let done = run_with_stranger(&folder, "0.0.1+old", &uuid(0), 1);
    check(&done, 2, &["0.0.1+old", BUILD, "another build"]);
    nothing_was_made(&folder);
}

#[test]
fn a_worker_on_another_gpu_is_refused() {
    let folder = sums(10, 8, "");
    let done = run_with_stranger(&folder, BUILD, &uuid(3), 1);
    check(&done, 2, &["cuda:0", &uuid(0), &uuid(3)]);
    nothing_was_made(&folder);
}

#[test]
fn a_worker_that_sees_several_gpus_is_refused() {
    let folder = sums(10, 8, "");
    let done = run_with_stranger(&folder, BUILD, &uuid(0), 4);
    check(&done, 2, &["cuda:0", "sees 4 devices"]);
    nothing_was_made(&folder);
}

#[test]
fn a_worker_that_is_no_program_is_told() {
    let folder = sums(10, 8, "");
    describe(&folder, &[gpu(0, json!({}))]);
    folder.write("worker", "not a program");
    let mut command = with_gpus(&folder, &CUDA);
    let done = done(command.env("FLOWGPU_WORKER_CUDA", folder.path("worker")).output().expect("the program starts"));
    check(&done, 1, &["cannot start", "worker"]);
}

#[test]
fn auto_says_why_it_takes_the_cpu() {
    let folder = sums(10, 8, "");
    describe(&folder, &[gpu(0, json!({}))]);
    let mut command = with_gpus(&folder, &["run", "p.yaml"]);
    let done = done(command.env("FLOWGPU_WORKER_CUDA", "/nowhere/worker").output().expect("the program starts"));
    check(&done, 0, &["/nowhere/worker", "CPU"]);
}

#[test]
fn weights_that_change_after_the_plan_are_a_fault_that_names_them() {
    // A worker that is replaced loads the model again, and the file is another by then.
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 8000}}}
  tensor: {kind: transform.test_tensor, with: {shape: [8], numbered: true}}
  sums: {kind: infer.test, with: {micros: 1000, weights: weights.bin, crash: {rows: [6000], once: crashed}}}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
",
    );
    folder.write("weights.bin", "one");
    let computing = Computing::start(&folder, &["run", "p.yaml", "--isolation", "process"]);
    computing.wait_for_rows(100);
    folder.write("weights.bin", "three");
    let done = computing.run.end();
    check(&done, 1, &["weights.bin", "has changed"]);
}

#[test]
fn a_folder_whose_name_is_no_text_is_for_threads_alone() {
    use std::os::unix::ffi::OsStrExt;
    let folder = sums(10, 8, "");
    let odd = folder.path(".").join(std::ffi::OsStr::from_bytes(b"odd \xff"));
    std::fs::create_dir(&odd).expect("a folder");
    std::fs::copy(folder.path("p.yaml"), odd.join("p.yaml")).expect("a copy");
    for (isolation, code) in [("process", 2), ("thread", 0)] {
        let mut command = folder.command(crate::program::TESTING, &["run", "--isolation", isolation]);
        let done = done(command.arg(odd.join("p.yaml")).output().expect("the program starts"));
        assert_eq!(done.code, code, "{done:?}");
        assert_eq!(done.stderr.contains("isolation: thread"), code == 2, "{done:?}");
    }
}
