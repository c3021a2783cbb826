//! Outputs that are objects: also where the run is killed, in shards, and with stores that are reached in another way.

use std::fs;

use rustix::process::Signal;
use serde_json::Value as Json;

use crate::program::{Folder, wait_for};
use crate::scene::{BUCKET, RUN, figure, keys, kill_at, object, pipeline, run, start, write_pipeline};
use crate::server::Server;

/// `count` rows of `n` numbers each, with a delay of so many microseconds a row.
fn rows(count: usize, n: usize, micros: u32) -> String {
    format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}
  x: {{kind: transform.test_tensor, with: {{shape: [{n}], as: x}}}}
  slow: {{kind: transform.test_delay, with: {{micros: {micros}, seed: 1}}}}
"
    )
}

const SINKS: &str = "  table: {kind: sink.parquet, from: slow, with: {path: TO/t.parquet, rotate: {rows: 40}STORE}}
  archives: {kind: sink.webdataset, from: slow, with: {path: TO/w.tar, rotate: {rows: 50}STORE}}
  lines: {kind: sink.jsonl, from: slow, with: {path: TO/l.jsonlSTORE}}
";

fn local_sinks() -> String {
    SINKS.replace("TO/", "out/").replace("STORE", "")
}

fn remote_sinks() -> String {
    SINKS.replace("TO/", "s3://bucket/out/").replace("STORE", ", {store}")
}

/// The objects of the bucket are the files of the folder `out`, byte for byte.
#[track_caller]
fn same_as_files(server: &Server, local: &Folder) {
    let names = local.names("out");
    let expected: Vec<_> = names.iter().map(|name| format!("out/{name}")).collect();
    assert_eq!(keys(server, "out/"), expected);
    for key in &expected {
        assert!(object(server, key) == fs::read(local.path(key)).expect("a file"), "`{key}` has other bytes");
    }
    assert_eq!(server.uploads(BUCKET), [] as [&str; 0]);
}

#[test]
fn parts_in_a_bucket_are_those_in_a_folder_also_after_a_kill() {
    let server = Server::with_bucket(BUCKET);
    let local = pipeline(&server, &format!("{}{}", rows(200, 8, 0), local_sinks()));
    assert_eq!(run(&local, &RUN).code, 0);
    let folder = pipeline(&server, &format!("{}{}", rows(200, 8, 20_000), remote_sinks()));
    let at = kill_at(&folder, 60);
    assert!((60..200).contains(&at), "{at}");
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(figure(&folder, "resumed_at"), at);
    same_as_files(&server, &local);
}

#[test]
fn a_run_that_is_killed_during_an_upload_leaves_the_object_of_an_undisturbed_one() {
    let server = Server::with_bucket(BUCKET);
    let nodes = |to: &str| format!("{}  array: {{kind: sink.npy, with: {{path: {to}}}}}\n", rows(2600, 2048, 0));
    let local = pipeline(&server, &nodes("out/n.npy"));
    assert_eq!(run(&local, &RUN).code, 0);
    let folder = pipeline(&server, &nodes("'s3://bucket/out/n.npy', {store}"));
    server.delay(200);
    let first = start(&folder, &RUN);
    wait_for("parts to be uploaded", || (server.count("part") > 0).then_some(()));
    first.signal(Signal::KILL);
    first.killed();
    server.delay(0);
    assert_eq!(server.uploads(BUCKET), ["out/n.npy"], "an upload was under way");
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 0, "{done:?}");
    same_as_files(&server, &local);
}

#[test]
fn how_a_store_is_reached_may_change_between_two_sessions_and_where_it_is_may_not() {
    let server = Server::with_bucket(BUCKET);
    let other = Server::with_bucket(BUCKET);
    let nodes = format!("{}{}", rows(200, 8, 20_000), remote_sinks());
    let folder = pipeline(&server, &nodes);
    let at = kill_at(&folder, 30);
    write_pipeline(&folder, &other, "", &nodes);
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("`store.endpoint` was"), "{done:?}");
    assert_eq!(keys(&other, ""), [] as [&str; 0]);
    write_pipeline(&folder, &server, "", &nodes);
    let yaml = folder
        .read("p.yaml")
        .replace("region: us-east-1", "region: eu-west-1, timeout: 9s, attempts: 3, max_in_flight: 7");
    folder.write("p.yaml", &yaml);
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(figure(&folder, "resumed_at"), at);
    let local = pipeline(&server, &format!("{}{}", rows(200, 8, 0), local_sinks()));
    assert_eq!(run(&local, &RUN).code, 0);
    same_as_files(&server, &local);
}

#[test]
fn what_lies_in_a_folder_beside_the_parts_is_not_taken_for_an_older_one() {
    let server = Server::with_bucket(BUCKET);
    for key in ["out/t-00009.parquet", "out/t-x/t-00009.parquet", "out/t-old/readme"] {
        server.empty_object(BUCKET, key);
    }
    let sinks =
        "  table: {kind: sink.parquet, with: {path: 's3://bucket/out/t.parquet', rotate: {rows: 40}, {store}}}\n";
    let folder = pipeline(&server, &format!("{}{sinks}", rows(50, 8, 0)));
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        keys(&server, "out/"),
        ["out/t-00000.parquet", "out/t-00001.parquet", "out/t-old/readme", "out/t-x/t-00009.parquet"]
    );
}

#[test]
fn shards_with_outputs_in_a_bucket_are_merged_into_a_list_of_their_parts() {
    let server = Server::with_bucket(BUCKET);
    // The numbers of the test's tensors are those of a row within its shard.
    let sink =
        |path: &str| format!("  lines: {{kind: sink.jsonl, from: slow, with: {{columns: [uri], path: {path}}}}}\n");
    let local = pipeline(&server, &format!("{}{}", rows(100, 3, 0), sink("out/l.jsonl")));
    assert_eq!(run(&local, &RUN).code, 0);
    let folder = pipeline(&server, &format!("{}{}", rows(100, 3, 0), sink("'s3://bucket/out/l.jsonl', {store}")));
    let done = run(&folder, &["run", "p.yaml", "--shards", "3", "--shard", "0-2"]);
    assert_eq!(done.code, 0, "{done:?}");
    let merged = run(&folder, &["merge", "p.yaml"]);
    assert_eq!(merged.code, 0, "{merged:?}");
    assert!(merged.stderr.contains("s3://bucket/out/l.manifest.json: a list of 3 parts, 100 rows"), "{merged:?}");
    let list: Json = serde_json::from_slice(&object(&server, "out/l.manifest.json")).expect("JSON");
    let paths = list["parts"].as_array().expect("parts").iter().map(|part| part["path"].as_str().expect("a text"));
    let keys: Vec<_> = paths.map(|path| path.strip_prefix("s3://bucket/").expect("a URL").to_owned()).collect();
    assert_eq!(keys, [0, 1, 2].map(|shard| format!("out/l-{shard:05}-of-00003.jsonl")));
    // One after the other they are what one run would have written.
    let joined: Vec<u8> = keys.iter().flat_map(|key| object(&server, key)).collect();
    assert!(joined == fs::read(local.path("out/l.jsonl")).expect("a file"));
}
