//! A folder with a machine's description in it, and the programs that look at it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flowgpu_standin_nvml::library;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

pub const GIB: u64 = 1 << 30;

/// The program as it is shipped.
pub const SHIPPED: &str = env!("CARGO_BIN_EXE_flowgpu");
/// The one with the kinds for tests.
pub const TESTING: &str = env!("CARGO_BIN_EXE_flowgpu-test");

/// A machine as a program sees it.
pub struct Machine {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn json(&self) -> Json {
        assert_eq!((self.code, &*self.stderr), (0, ""), "{}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }
}

/// A GPU of 24 GiB, number `at` of its machine. UUIDs differ in their first digits.
pub fn gpu(at: usize) -> Json {
    json!({"uuid": uuid(at), "name": "Stand-in A", "memory": 24 * GIB})
}

pub fn uuid(at: usize) -> String {
    format!("GPU-{}-2222-3333-4444-555555555555", at.to_string().repeat(8))
}

/// `gpu` with `value` at `key`.
pub fn with(mut gpu: Json, key: &str, value: Json) -> Json {
    gpu[key] = value;
    gpu
}

impl Machine {
    /// A machine without a driver, and without a worker for GPUs.
    pub fn without_driver() -> Self {
        Machine { folder: tempfile::tempdir().expect("a folder"), variables: Vec::new() }
    }

    /// A machine with these GPUs, and a file that passes for the worker.
    pub fn new(gpus: &[Json]) -> Self {
        let machine = Self::without_driver().with_library().with_worker();
        machine.write("gpus.json", &json!({"driver": "580.159", "gpus": gpus}).to_string());
        let path = machine.path("gpus.json");
        machine.set("FLOWGPU_STANDIN", path.to_str().expect("UTF-8"))
    }

    /// The library without a description: a driver that is not loaded.
    pub fn with_library(self) -> Self {
        self.set("FLOWGPU_NVML", library().to_str().expect("UTF-8"))
    }

    pub fn with_worker(self) -> Self {
        self.write("worker", "");
        let path = self.path("worker");
        self.set("FLOWGPU_WORKER_CUDA", path.to_str().expect("UTF-8"))
    }

    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(other, _)| other != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// A pipeline of these models, each behind the same source.
    pub fn write_pipeline(&self, run: &str, models: &str) {
        let text = format!(
            "name: p\nrun: {run}\nnodes:\n  rows: {{kind: source.synthetic, with: {{rows: {{count: 10}}}}}}\n  \
             tensor: {{kind: transform.test_tensor}}\n{models}"
        );
        self.write("p.yaml", &text);
    }

    pub fn run(&self, program: &str, args: &[&str]) -> Done {
        let mut command = Command::new(program);
        self.prepare(command.args(args));
        done(command.output().expect("the program starts"))
    }

    /// Lets a program see this machine, and nothing of who runs the tests.
    pub fn prepare(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).env("LANG", "C.UTF-8").stdin(Stdio::null());
        command.env("FLOWGPU_ONNXRUNTIME", self.folder.path().join("libonnxruntime.so.1.32.0"));
        for variable in [
            "LC_ALL",
            "LC_CTYPE",
            "NO_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "FLOWGPU_LOG",
            "FLOWGPU_NVML",
            "FLOWGPU_STANDIN",
            "FLOWGPU_WORKER_CUDA",
            "CUDA_VISIBLE_DEVICES",
            "CUDA_DEVICE_ORDER",
        ] {
            command.env_remove(variable);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    pub fn devices(&self) -> Json {
        self.run(SHIPPED, &["devices", "--format", "json"]).json()
    }

    /// The plan of `p.yaml`.
    pub fn plan(&self, args: &[&str]) -> Done {
        self.run(TESTING, &[&["plan", "p.yaml"], args].concat())
    }
}

fn done(output: Output) -> Done {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Done { code: output.status.code().expect("an exit code"), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The tests' library must not be taken for the shipped program's.
#[test]
fn the_library_stands_beside_the_tests() {
    assert!(library().starts_with(Path::new(TESTING).parent().expect("a folder")));
}
