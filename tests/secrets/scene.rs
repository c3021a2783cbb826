//! A folder with inputs that hold secrets, and the search through everything else in it.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use crate::workplace::{Ended, Workplace};

/// A part of every secret.
pub const SECRET: &str = "S3CRET";
/// `S3CRETuser:S3CRETpass` as a header of HTTP has it.
const IN_BASE64: &str = "UzNDUkVUdXNlcjpTM0NSRVRwYXNz";
/// How a secret is put into a URL: user info, and a signature behind a question mark.
pub const USER: &str = "S3CRETuser:S3CRETpass@";
pub const SIGNATURE: &str = "?sv=2024-01-01&sig=S3CRETsig%2Fx&X-Amz-Signature=S3CRETamz";

/// What the environment of each command has beside that of the test.
const ENVIRONMENT: [&str; 5] = [
    "FLOWGPU_LOG=trace",
    "AWS_ACCESS_KEY_ID=test",
    "AWS_SECRET_ACCESS_KEY=S3CRETkey",
    "AWS_SESSION_TOKEN=S3CRETtoken",
    "KEY=S3CRETenv",
];

/// A folder, and which files of it are inputs with secrets in them.
pub struct Scene {
    pub place: Workplace,
    given: RefCell<Vec<String>>,
}

impl Scene {
    pub fn new() -> Self {
        Scene { place: Workplace::new(), given: RefCell::default() }
    }

    /// Writes an input that is not searched: the secret is there because its user has put it there.
    pub fn give(&self, name: &str, content: impl AsRef<[u8]>) {
        self.place.write(name, content);
        self.given.borrow_mut().push(name.to_owned());
    }

    /// Runs `flowgpu` with everything logged; what it says is searched, and all files.
    pub fn flowgpu(&self, args: &[&str]) -> Ended {
        self.command(env!("CARGO_BIN_EXE_flowgpu"), args)
    }

    /// The same with the program that has the kinds for tests.
    pub fn flowgpu_test(&self, args: &[&str]) -> Ended {
        self.command(env!("CARGO_BIN_EXE_flowgpu-test"), args)
    }

    fn command(&self, program: &str, args: &[&str]) -> Ended {
        let before: Vec<_> = ["env"].iter().chain(&ENVIRONMENT).copied().chain([program]).collect();
        let ended = self.place.command(&before, args);
        let said = ended.said();
        found_nothing(&format!("what {args:?} says"), said.as_bytes());
        assert!(!said.contains("RUST_BACKTRACE"), "{args:?}: {said}");
        self.search();
        ended
    }

    /// All that can be done with a pipeline; how the run ended.
    pub fn everything(&self, pipeline: &str) -> Ended {
        for format in ["text", "json"] {
            self.flowgpu(&["validate", pipeline, "--format", format]);
            self.flowgpu(&["plan", pipeline, "--format", format]);
        }
        let ended = self.flowgpu(&["run", pipeline, "--report", "report.json", "--trace", "trace.json"]);
        for format in ["text", "dot", "mermaid", "json", "svg", "html"] {
            self.flowgpu(&["graph", pipeline, "--format", format]);
        }
        if self.place.path("report.json").exists() {
            self.flowgpu(&["graph", pipeline, "--report", "report.json", "-o", "graph.svg"]);
        }
        for format in ["text", "json"] {
            self.flowgpu(&["status", pipeline, "--format", format]);
        }
        // Once more, of what is done; in part, and that gone on with.
        self.flowgpu(&["run", pipeline]);
        self.flowgpu(&["run", pipeline, "--fresh", "--limit", "1"]);
        self.flowgpu(&["run", pipeline]);
        self.flowgpu(&["verify", pipeline, "--python", "no-such-python"]);
        ended
    }

    fn search(&self) {
        self.search_in("");
        let unpacked = self.place.command(&["sh", "-c", "find . -name '*.gz' -exec gzip -dc {} +"], &[]);
        if self.given.borrow().iter().all(|name| !name.ends_with(".gz")) {
            found_nothing("what is packed by gzip", unpacked.said().as_bytes());
        }
    }

    fn search_in(&self, folder: &str) {
        for name in self.place.names(folder) {
            let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let path = self.place.path(&name);
            found_nothing("the name of a file", name.as_bytes());
            if path.is_symlink() || self.given.borrow().contains(&name) {
                continue;
            }
            if path.is_dir() {
                self.search_in(&name);
            } else {
                found_nothing(&name, &fs::read(&path).expect("a file"));
            }
        }
    }
}

fn found_nothing(place: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for secret in [SECRET, IN_BASE64] {
        if let Some(at) = text.find(secret) {
            let start = text[..at].char_indices().rev().nth(300).map_or(0, |(start, _)| start);
            let end = text[at..].char_indices().nth(200).map_or(text.len(), |(end, _)| at + end);
            panic!("{place} has a secret: …{}…", &text[start..end]);
        }
    }
}

#[test]
#[should_panic(expected = "rows.jsonl has a secret")]
fn a_secret_in_an_output_is_found() {
    let scene = Scene::new();
    scene.place.write("out/rows.jsonl", "{\"uri\": \"https://host/a?sig=S3CRETsig\"}\n");
    scene.flowgpu(&["--version"]);
}

#[test]
fn secrets_in_inputs_are_where_they_belong() {
    let scene = Scene::new();
    scene.give("list.txt", format!("https://{USER}host/a{SIGNATURE}\n"));
    scene.flowgpu(&["--version"]);
    assert!(Path::new(&scene.place.path("list.txt")).exists());
}
