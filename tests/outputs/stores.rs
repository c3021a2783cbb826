//! Outputs that are objects of a store, on a real server: whole or not there, and no remains of uploads.

use std::path::Path;
use std::process::Command;

use nodes::store::{Environment, Location, StoreOptions, Stores};
use rustix::process::Signal;

use crate::program::{Done, Folder, TESTING, Under, done, wait_for};
use crate::server::Server;

const BUCKET: &str = "bucket";
const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];

/// A folder with a pipeline of `count` rows into `sinks`, in which `{store}` is how the server is reached.
fn pipeline(server: &Server, count: usize, n: usize, sinks: &str) -> Folder {
    let folder = Folder::new();
    let store = format!("store: {{endpoint: '{}', region: us-east-1}}", server.url());
    let sinks = sinks.replace("{store}", &store);
    folder.write(
        "p.yaml",
        &format!(
            "name: p\nrun: {{commit_every: 20ms}}\nnodes:\n  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}\n  \
             x: {{kind: transform.test_tensor, with: {{shape: [{n}], as: x}}}}\n{sinks}"
        ),
    );
    folder
}

fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = folder.command(TESTING, args);
    command.envs(KEYS);
    command
}

fn run(folder: &Folder, args: &[&str]) -> Done {
    done(command(folder, args).output().expect("the program starts"))
}

fn stores(server: &Server) -> Stores {
    let options = StoreOptions { endpoint: Some(server.url()), ..StoreOptions::default() };
    Stores::with_environment(options, Environment::of(KEYS))
}

fn object(server: &Server, key: &str) -> Vec<u8> {
    let location = Location::parse(&format!("s3://{BUCKET}/{key}"), Path::new("/")).expect("a URL");
    stores(server).read(&location, 1 << 30).expect("an object").0.to_vec()
}

fn keys(server: &Server) -> Vec<String> {
    let prefix = Location::parse(&format!("s3://{BUCKET}/out/"), Path::new("/")).expect("a URL");
    let pages = stores(server).list(&prefix).expect("a listing");
    pages.flat_map(|page| page.expect("a page")).map(|(object, _)| object.key().into_owned()).collect()
}

#[test]
fn every_form_is_an_object_with_the_bytes_of_a_file() {
    let server = Server::with_bucket(BUCKET);
    let sinks = |to: &str, store: &str| {
        format!(
            "  lines: {{kind: sink.jsonl, from: x, with: {{path: {to}l.jsonl{store}}}}}
  parts: {{kind: sink.csv, from: x, with: {{path: {to}c.csv, rotate: {{rows: 30}}{store}}}}}
  array: {{kind: sink.npy, from: x, with: {{path: {to}n.npy{store}}}}}
  archives: {{kind: sink.webdataset, from: x, with: {{path: {to}w.tar, rotate: {{rows: 40}}{store}}}}}
  tensors: {{kind: sink.safetensors, from: x, with: {{path: {to}s.safetensors, rotate: {{rows: 60}}{store}}}}}
"
        )
    };
    let local = pipeline(&server, 100, 3, &sinks("out/", ""));
    assert_eq!(run(&local, &["run", "p.yaml"]).code, 0);
    let remote = pipeline(&server, 100, 3, &sinks("s3://bucket/out/", ", {store}"));
    // An older run had more parts.
    for stale in ["out/c-00004.csv", "out/s-00002.safetensors"] {
        server.empty_object(BUCKET, stale);
    }
    // Done in two turns: an object that is there is gone on with from what was kept.
    let first = run(&remote, &["run", "p.yaml", "--limit", "55"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(object(&server, "out/l.jsonl").iter().filter(|&&byte| byte == b'\n').count(), 55);
    let second = run(&remote, &["run", "p.yaml"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let expected: Vec<_> = local.names("out").into_iter().map(|name| format!("out/{name}")).collect();
    assert_eq!(keys(&server), expected);
    for key in &expected {
        assert_eq!(object(&server, key), std::fs::read(local.path(key)).expect("a file"), "{key}");
    }
    assert!(!remote.path(".flowgpu/p/spool").exists(), "nothing is kept of a run that is done");
    let again = run(&remote, &["run", "p.yaml"]);
    assert!(
        again.stderr.contains("done already") || again.stdout.contains("done already"),
        "{}{}",
        again.stdout,
        again.stderr
    );
}

#[test]
fn a_run_that_is_killed_while_it_uploads_leaves_one_object_and_no_remains() {
    for args in [&["run", "p.yaml"][..], &["run", "p.yaml", "--fresh"]] {
        let server = Server::with_bucket(BUCKET);
        let sink = "  array: {kind: sink.npy, from: x, with: {path: 's3://bucket/out/n.npy', {store}}}\n";
        let folder = pipeline(&server, 2600, 2048, sink);
        server.delay(200);
        let first = Under::start(command(&folder, &["run", "p.yaml"]));
        wait_for("parts to be uploaded", || (!server.uploads(BUCKET).is_empty()).then_some(()));
        first.signal(Signal::KILL);
        first.killed();
        server.delay(0);
        assert_eq!(server.uploads(BUCKET), ["out/n.npy"], "an upload was under way");
        let second = run(&folder, args);
        assert_eq!(second.code, 0, "{}", second.stderr);
        assert_eq!(server.uploads(BUCKET), [] as [&str; 0]);
        assert_eq!(keys(&server), ["out/n.ids.jsonl", "out/n.npy"]);
        assert_eq!(object(&server, "out/n.npy").len(), 128 + 2600 * 2048 * 4);
    }
}
