//! A folder of its own for each test, and the program in it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tempfile::TempDir;

/// The program as it is shipped.
pub const SHIPPED: &str = env!("CARGO_BIN_EXE_flowgpu");
/// The one that has the kinds for tests too.
pub const TESTING: &str = env!("CARGO_BIN_EXE_flowgpu-test");
/// The repository.
pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// No test waits longer for something that must happen; far more than any needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder that the program runs in.
pub struct Folder(TempDir);

/// How a program ended.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    /// A folder with the pipeline `p.yaml`: its nodes, and `name: p`.
    pub fn with_nodes(nodes: &str) -> Self {
        let folder = Folder::new();
        folder.write("p.yaml", &format!("name: p\nnodes:\n{nodes}"));
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn json(&self, name: &str) -> Json {
        serde_json::from_str(&self.read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The rows of a file of JSON lines.
    pub fn rows(&self, name: &str) -> Vec<Json> {
        rows(&self.read(name))
    }

    /// All names in the folder `name`, sorted.
    pub fn names(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).expect("a folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// The command `program args…` here, without the settings of whoever runs the tests.
    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.0.path()).env("LANG", "C.UTF-8").stdin(Stdio::null());
        for variable in [
            "LC_ALL",
            "LC_CTYPE",
            "NO_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "FLOWGPU_LOG",
            "FLOWGPU_FAULT",
            "RUST_BACKTRACE",
            "FLOWGPU_SHARD",
            "JOB_COMPLETION_INDEX",
            "SLURM_ARRAY_TASK_ID",
            "SLURM_PROCID",
        ] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs the program for tests to its end.
    pub fn run(&self, args: &[&str]) -> Done {
        done(self.command(TESTING, args).output().expect("the program starts"))
    }

    /// Starts the program for tests.
    pub fn start(&self, args: &[&str]) -> Under {
        Under::start(self.command(TESTING, args))
    }
}

impl Under {
    /// Starts a program.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is a pipe"));
        Under { child, stderr, told: String::new() }
    }
}

pub fn rows(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

pub fn done(output: Output) -> Done {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Done { code: output.status.code().expect("an exit code"), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The pipelines of the repository whose models are in it too: those of embedders are for the user to fetch.
pub fn examples() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(ROOT).join("pipelines")).expect("the examples");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    let is_here = |name: &str| name.ends_with(".yaml") && !name.starts_with("embed-");
    files.retain(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(is_here));
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    files
}

/// A program under way.
pub struct Under {
    pub child: Child,
    stderr: BufReader<ChildStderr>,
    /// What it has told so far on the standard error stream.
    told: String,
}

impl Under {
    /// Waits for a line on the standard error stream that contains `part`.
    pub fn line_with(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            let n_bytes = self.stderr.read_line(&mut line).expect("a line");
            assert!(n_bytes > 0, "no line with {part:?} in {:?}", self.told);
            self.told.push_str(&line);
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The address of its metrics, which must have been asked for.
    pub fn metrics_address(&mut self) -> String {
        let line = self.line_with("figures for Prometheus at http://");
        let address = line.split("http://").nth(1).expect("an address");
        address.split('/').next().expect("host and port").to_owned()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it is there");
    }

    /// Waits for its end, which a signal is to bring.
    pub fn killed(mut self) {
        let status = self.child.wait().expect("it ends");
        assert!(status.code().is_none(), "{status}");
    }

    /// Waits for its end.
    pub fn end(mut self) -> Done {
        self.stderr.read_to_string(&mut self.told).expect("UTF-8");
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).expect("UTF-8");
        }
        let status = self.child.wait().expect("it ends");
        Done { code: status.code().expect("an exit code"), stdout, stderr: self.told }
    }
}

/// Asks again and again until there is an answer.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        // Not a time that anything depends on: only to leave the processor to the program.
        std::thread::sleep(Duration::from_millis(5));
    }
}
