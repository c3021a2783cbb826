//! A real S3 server on this machine, for tests: see server.py for what it can be told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value as Json, json};

/// A server that runs until this is dropped, or its process is gone.
pub struct Server {
    child: Child,
    /// The server ends when this does.
    stdin: Option<ChildStdin>,
    port: u16,
}

#[allow(dead_code, reason = "each test that shares this file uses a part of it")]
impl Server {
    /// Starts a server with nothing in it.
    pub fn start() -> Self {
        let folder = folder();
        let root = folder.ancestors().nth(2).expect("the repository");
        let environment = root.join("scripts/python_env.py");
        let made = Command::new("python3").arg(environment).arg(folder.join("requirements.txt")).output();
        let made = made.expect("python3 is there");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let python = String::from_utf8(made.stdout).expect("a path");
        let mut command = Command::new(python.trim());
        command.arg(folder.join("server.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let stdin = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let port = line.trim().strip_prefix("port ").and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("the server said {line:?}"));
        Server { child, stdin, port }
    }

    /// Starts a server with an empty bucket.
    pub fn with_bucket(name: &str) -> Self {
        let server = Server::start();
        server.tell("bucket", json!({"name": name}));
        server
    }

    /// Its address: `http://127.0.0.1:N`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes `n` objects `<prefix>000000` and so on, each with its number, filled up with dots to `n_bytes`.
    pub fn preload(&self, bucket: &str, prefix: &str, n: usize, n_bytes: usize) {
        self.tell("preload", json!({"bucket": bucket, "prefix": prefix, "n": n, "bytes": n_bytes}));
    }

    /// Makes `n` objects `<prefix>000000<ending>` and so on, each with the content of one of `files`, in turns.
    pub fn fill(&self, bucket: &str, prefix: &str, ending: &str, n: usize, files: &[PathBuf]) {
        self.tell("fill", json!({"bucket": bucket, "prefix": prefix, "ending": ending, "n": n, "files": files}));
    }

    /// Makes an object of a local file, whatever its key.
    pub fn put(&self, bucket: &str, key: &str, file: &Path) {
        self.tell("put", json!({"bucket": bucket, "key": key, "file": file}));
    }

    /// Makes an empty object, such as consoles do that show folders.
    pub fn empty_object(&self, bucket: &str, key: &str) {
        self.tell("empty", json!({"bucket": bucket, "key": key}));
    }

    /// Begins an upload in parts, as somebody else might.
    pub fn begin_upload(&self, bucket: &str, key: &str) {
        self.tell("begin", json!({"bucket": bucket, "key": key}));
    }

    /// Makes the next requests fail: see server.py.
    pub fn fault(&self, fault: Json) {
        self.tell("fault", fault);
    }

    /// Makes every request take longer.
    pub fn delay(&self, ms: u64) {
        self.tell("delay", json!({"ms": ms}));
    }

    /// How many requests of a kind there were: `list`, `get`, `head`, `put`, `create`, `part`, `complete`, `abort`.
    pub fn count(&self, kind: &str) -> u64 {
        self.count_for(kind, "")
    }

    /// How many of them there were for keys that contain `key`.
    pub fn count_for(&self, kind: &str, key: &str) -> u64 {
        self.tell("counts", json!({"key": key}))[kind].as_u64().unwrap_or(0)
    }

    /// Forgets counts, faults and the delay.
    pub fn forget(&self) {
        self.tell("forget", json!({}));
    }

    /// The keys of the uploads in parts that are under way.
    pub fn uploads(&self, bucket: &str) -> Vec<String> {
        let keys = self.tell("uploads", json!({"bucket": bucket}));
        keys.as_array().expect("keys").iter().map(|key| key.as_str().expect("a key").to_owned()).collect()
    }

    fn tell(&self, what: &str, told: Json) -> Json {
        let body = told.to_string();
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        write!(
            connection,
            "POST /__control/{what} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .expect("it reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin.take();
        // It may be in the middle of a request that was told to hang.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of this file: this file is a part of tests in several packages.
fn folder() -> PathBuf {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = folders.find_map(|folder| {
        let folder = folder.join("tests/store_server");
        folder.join("server.py").is_file().then_some(folder)
    });
    found.expect("the repository")
}
