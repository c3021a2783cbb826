//! A bucket with pictures, and pipelines that read them from there and from a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::durable::Lines;
use nodes::store::{Environment, Location, StoreOptions, Stores};
use serde_json::Value as Json;

use crate::program::{Done, Folder, ROOT, TESTING, Under, done, wait_for};
use crate::server::Server;

/// The bucket of all tests, each of which has a server of its own.
pub const BUCKET: &str = "bucket";
/// Keys that the server does not look at closely.
pub const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];
/// What every run here is started with.
pub const RUN: [&str; 4] = ["run", "p.yaml", "--report", "r.json"];
/// From bytes to lines: the size of a picture and sums of its pixels.
pub const SUMS: &str = "  pixels: {kind: decode.image, with: {resize: [8, 8]}}
  sums: {kind: infer.test, with: {n: 2, batch: 4}}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
";

/// Some small photographs.
pub fn pictures() -> Vec<PathBuf> {
    let names = ["420-35x33", "444-18x50", "422-18x50", "411-35x33", "wild-0", "grey-h2v2"];
    names.iter().map(|name| Path::new(ROOT).join(format!("nodes/tests/jpeg/{name}.jpg"))).collect()
}

/// The option `store`, by which `server` is reached.
pub fn store(server: &Server) -> String {
    format!("store: {{endpoint: '{}', region: us-east-1}}", server.url())
}

/// A folder with the pipeline `p`, which commits often; `{store}` in its nodes is how the server is reached.
pub fn pipeline(server: &Server, nodes: &str) -> Folder {
    let folder = Folder::new();
    write_pipeline(&folder, server, "", nodes);
    folder
}

/// Writes the pipeline file, with more under `run:`.
pub fn write_pipeline(folder: &Folder, server: &Server, run: &str, nodes: &str) {
    let nodes = nodes.replace("{store}", &store(server));
    folder.write("p.yaml", &format!("name: p\nrun: {{commit_every: 10ms{run}}}\nnodes:\n{nodes}"));
}

/// The program for tests with credentials, and signals that do what they do by default.
pub fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = folder.command("env", &[&["--default-signal=HUP,INT,TERM", TESTING], args].concat());
    command.envs(KEYS).env_remove("AWS_PROFILE").env("HOME", folder.path("home"));
    command
}

pub fn run(folder: &Folder, args: &[&str]) -> Done {
    done(command(folder, args).output().expect("the program starts"))
}

pub fn start(folder: &Folder, args: &[&str]) -> Under {
    Under::start(command(folder, args))
}

/// What a run that must succeed writes.
#[track_caller]
pub fn lines(folder: &Folder) -> String {
    let done = run(folder, &RUN);
    assert_eq!(done.code, 0, "{done:?}");
    folder.read("out.jsonl")
}

pub fn stores(server: &Server) -> Stores {
    let options = StoreOptions { endpoint: Some(server.url()), ..StoreOptions::default() };
    Stores::with_environment(options, Environment::of(KEYS))
}

pub fn location(key: &str) -> Location {
    Location::parse(&format!("s3://{BUCKET}/{key}"), Path::new("/")).expect("a URL")
}

/// Makes an object.
pub fn put(server: &Server, key: &str, content: impl AsRef<[u8]>) {
    stores(server).write(&location(key), content.as_ref().to_vec().into()).expect("it is written");
}

/// The content of an object.
pub fn object(server: &Server, key: &str) -> Vec<u8> {
    stores(server).read(&location(key), 1 << 30).expect("an object").0.to_vec()
}

/// All keys that begin with `prefix`.
pub fn keys(server: &Server, prefix: &str) -> Vec<String> {
    let pages = stores(server).list(&location(prefix)).expect("a listing");
    pages.flat_map(|page| page.expect("a page")).map(|(object, _)| object.key().into_owned()).collect()
}

/// Copies the pictures in turns to `in/000000.jpg` and so on, as [`Server::fill`] does in a bucket.
pub fn local_pictures(folder: &Folder, n: usize) {
    fs::create_dir_all(folder.path("in")).expect("a folder");
    for (number, picture) in (0..n).zip(pictures().iter().cycle()) {
        fs::copy(picture, folder.path(&format!("in/{number:06}.jpg"))).expect("a copy");
    }
}

/// The rejects of a run: uri and code.
pub fn rejects(folder: &Folder) -> Vec<(String, String)> {
    let text = |row: &Json, name: &str| row[name].as_str().expect("a text").to_owned();
    folder.rows("p.rejects.jsonl").iter().map(|row| (text(row, "uri"), text(row, "code"))).collect()
}

/// Rows of all sources that the last cut of the journal holds; 0 before there is one.
pub fn committed(folder: &Folder) -> u64 {
    let path = folder.path(".flowgpu/p/journal");
    if !path.exists() {
        return 0;
    }
    let lines = Lines::read(&path).expect("a journal").lines;
    let mut records = lines.iter().rev().map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
    let cut = records.find_map(|record| record.get("cut").cloned());
    let sources = cut.and_then(|cut| cut["sources"].as_array().cloned()).unwrap_or_default();
    sources.iter().map(|source| source["done"].as_u64().expect("a count")).sum()
}

/// Starts a run, kills it when so many rows are committed, and says how many are in the end.
pub fn kill_at(folder: &Folder, n_rows: u64) -> u64 {
    let run = start(folder, &RUN);
    wait_for("rows to be committed", || (committed(folder) >= n_rows).then_some(()));
    run.signal(rustix::process::Signal::KILL);
    run.killed();
    committed(folder)
}

/// A figure at the top of the report.
pub fn figure(folder: &Folder, name: &str) -> u64 {
    folder.json("r.json")[name].as_u64().unwrap_or_else(|| panic!("no `{name}` in the report"))
}
