//! A folder to run pipelines in, and the program itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The examples that ship with flowgpu.
pub const PIPELINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines");

/// A folder of its own, with the examples' models in it.
pub struct Workplace {
    folder: tempfile::TempDir,
    onnxruntime: Option<PathBuf>,
}

impl Workplace {
    /// A folder that any user may look into.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("a folder of one's own");
        symlink(Path::new(PIPELINES).join("models"), folder.path().join("models")).expect("a link");
        Workplace { folder, onnxruntime: None }
    }

    /// The same where this ONNX Runtime is.
    #[allow(dead_code, reason = "others who have this file need none")]
    pub fn with_onnxruntime(self, library: PathBuf) -> Self {
        Workplace { onnxruntime: Some(library), ..self }
    }

    /// Where `name` is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a pipeline, or any other file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    /// The bytes of a file that must be there.
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The rows of a file of JSON lines that must be there.
    pub fn rows(&self, name: &str) -> Vec<Value> {
        let text = String::from_utf8(self.read(name)).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The names in a folder, hidden ones too; none where there is no such folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// `flowgpu run` in this folder.
    pub fn run(&self, args: &[&str]) -> Ended {
        self.command(&[env!("CARGO_BIN_EXE_flowgpu"), "run"], args)
    }

    /// Any program in this folder.
    pub fn command(&self, program: &[&str], args: &[&str]) -> Ended {
        let mut command = Command::new(program[0]);
        // What whoever runs the tests has set for the tests themselves.
        command.env_remove("RUST_BACKTRACE").env_remove("FLOWGPU_LOG");
        if let Some(library) = &self.onnxruntime {
            command.env("FLOWGPU_ONNXRUNTIME", library);
        }
        let output = command.args(&program[1..]).args(args).current_dir(self.folder.path()).output();
        Ended(output.unwrap_or_else(|error| panic!("{}: {error}", program[0])))
    }
}

/// What a program has said, and how it ended.
pub struct Ended(Output);

impl Ended {
    /// What it wrote to both of its streams.
    pub fn said(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(&self.0.stderr), String::from_utf8_lossy(&self.0.stdout))
    }

    /// Its exit code, if it was not ended by a signal.
    pub fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    /// Fails unless the exit code was `code`; then what it said.
    #[track_caller]
    pub fn expect(&self, code: i32) -> String {
        assert_eq!(self.code(), Some(code), "{:?}: {}", self.0.status, self.said());
        self.said()
    }
}
