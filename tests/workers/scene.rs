//! Pipelines for workers, stand-in GPUs, and what is read back.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::program::{Done, Folder, ROOT, TESTING, Under, done, wait_for};

/// The UUID of stand-in number `index`.
pub fn uuid(index: usize) -> String {
    format!("GPU-{index}{index}{index}{index}{index}{index}{index}{index}-0000-0000-0000-000000000000")
}

/// A stand-in GPU of 8 GiB, with `more` said of it.
pub fn gpu(index: usize, more: Json) -> Json {
    let mut gpu = json!({"uuid": uuid(index), "name": format!("Stand-in {index}"), "memory": 8u64 << 30});
    let more = more.as_object().expect("a map").clone();
    gpu.as_object_mut().expect("a map").extend(more);
    gpu
}

/// Describes the machine's stand-in GPUs.
pub fn describe(folder: &Folder, gpus: &[Json]) {
    folder.write("gpus.json", &json!({"driver": "580.159", "gpus": gpus}).to_string());
}

/// The command on a machine with the stand-ins that were described.
pub fn with_gpus(folder: &Folder, args: &[&str]) -> Command {
    let mut command = folder.command(TESTING, args);
    command
        .env("FLOWGPU_NVML", flowgpu_standin_nvml::library())
        .env("FLOWGPU_STANDIN", folder.path("gpus.json"))
        .env("FLOWGPU_WORKER_CUDA", TESTING)
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("CUDA_DEVICE_ORDER");
    command
}

pub fn run_with_gpus(folder: &Folder, args: &[&str]) -> Done {
    done(with_gpus(folder, args).output().expect("the program starts"))
}

/// `count` rows through a model with the options `model`, in batches of `batch`, into `out.jsonl`.
pub fn sums(count: usize, batch: usize, model: &str) -> Folder {
    Folder::with_nodes(&format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}
  tensor: {{kind: transform.test_tensor, with: {{shape: [8], numbered: true}}}}
  sums: {{kind: infer.test, with: {{n: 2, batch: {batch}{}{model}}}}}
  out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}
",
        if model.is_empty() { "" } else { ", " },
    ))
}

/// A folder with the example `name` as the pipeline `p.yaml`; photographs and models stay where they are.
pub fn example(name: &str) -> Folder {
    let examples = format!("{ROOT}/pipelines");
    let text = std::fs::read_to_string(format!("{examples}/{name}.yaml")).expect("an example");
    let text = text.replace("models/", &format!("{examples}/models/"));
    let text = text.replace("{photos: photos", &format!("{{photos: {examples}/photos"));
    let folder = Folder::new();
    folder.write("p.yaml", &text.replace("\"photos/", &format!("\"{examples}/photos/")));
    folder
}

/// What `out.jsonl` of [`sums`] must hold, but for the rows that are left out.
pub fn check_sums(folder: &Folder, count: usize, without: &[u64]) {
    let rows = folder.rows("out.jsonl");
    let expected: Vec<u64> = (0..count as u64).filter(|index| !without.contains(index)).collect();
    assert_eq!(rows.len(), expected.len());
    for (row, index) in rows.iter().zip(expected) {
        let logits: Vec<f32> = row["logits"].as_array().expect("a list").iter().map(number).collect();
        assert_eq!(logits, nodes::testing::expected_numbered_logits(index, 8, 2), "row {index}");
        assert_eq!(row["uri"], format!("synthetic/{index}"));
    }
}

fn number(value: &Json) -> f32 {
    value.as_f64().expect("a number") as f32
}

/// The workers of a report.
pub fn workers(report: &Json) -> Vec<Json> {
    report["workers"].as_array().expect("a list").clone()
}

/// The processes that `pid` has started and that are alive, by what they were called with.
pub fn children(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|child| stat(*child).is_some_and(|(parent, state)| parent == pid && state != 'Z')).collect()
}

/// A process's parent and state.
pub fn stat(pid: u32) -> Option<(u32, char)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((words.next()?.parse().ok()?, state))
}

/// Waits until a run has workers, and gives their processes.
pub fn workers_of(pid: u32, n_workers: usize) -> Vec<u32> {
    wait_for("workers", || Some(children(pid)).filter(|children| children.len() >= n_workers))
}

/// How many rows each device computed, by its name.
pub fn rows_by_device(report: &Json) -> BTreeMap<String, u64> {
    let rows = workers(report).into_iter().map(|worker| {
        (worker["device"].as_str().expect("a name").to_owned(), worker["rows"].as_u64().expect("a count"))
    });
    rows.collect()
}

/// A run of [`sums`] under way that has computed so many rows.
pub struct Computing {
    pub run: Under,
    address: String,
}

impl Computing {
    pub fn start(folder: &Folder, args: &[&str]) -> Self {
        let mut run = folder.start(&[args, &["--metrics-addr", "127.0.0.1:0"]].concat());
        let address = run.metrics_address();
        Computing { run, address }
    }

    /// Rows that the model has given out so far; `None` when the run is over.
    pub fn rows(&self) -> Option<u64> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let line = text.lines().find(|line| line.starts_with("flowgpu_rows_total{node=\"sums\""))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Waits until the model has given out more than `n_rows`, and says how many.
    pub fn wait_for_rows(&self, n_rows: u64) -> u64 {
        wait_for("rows", || self.rows().filter(|rows| *rows > n_rows))
    }
}
