//! Tars, Parquet files and tables in a bucket, and pictures that tables there name.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use nodes::testing::{parquet_of, tar_of};
use serde_json::json;

use crate::program::{Folder, wait_for};
use crate::scene::{
    BUCKET, RUN, committed, figure, kill_at, lines, local_pictures, pictures, pipeline, put, rejects, run, start,
};
use crate::server::Server;

const OUT: &str = "  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n";
const SLOW: &str = "  slow: {kind: transform.test_delay, with: {micros: 20000, seed: 1}}\n";
const SIZES: &str = "  pixels: {kind: decode.image, with: {resize: [8, 8]}}\n";

/// A tar of `n` pictures with a label each, from number `first` on.
fn tar(first: usize, n: usize) -> Vec<u8> {
    let contents: Vec<_> = pictures().iter().map(|path| fs::read(path).expect("a picture")).collect();
    let members: Vec<_> = (first..first + n)
        .flat_map(|number| {
            let picture = contents[number % contents.len()].clone();
            [(format!("{number:05}.jpg"), picture), (format!("{number:05}.cls"), number.to_string().into_bytes())]
        })
        .collect();
    tar_of(members.iter().map(|(name, content)| (name.as_str(), content.as_slice())))
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip");
    let mut stdin = gzip.stdin.take().expect("a pipe");
    let content = content.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(&content).expect("it reads"));
    let packed = gzip.wait_with_output().expect("it ends").stdout;
    writer.join().expect("it is written");
    packed
}

/// What the same pipeline writes with the files in the folder `in`, with the names they have in the bucket.
fn local(files: &[(&str, Vec<u8>)], nodes: &str) -> String {
    let folder = Folder::with_nodes(&nodes.replace("s3://bucket/", "").replace(", {store}", ""));
    fs::create_dir_all(folder.path("in")).expect("a folder");
    for (name, content) in files {
        fs::write(folder.path(name), content).expect("a file");
    }
    lines(&folder).replace("\"in/", "\"s3://bucket/in/")
}

/// The rows of files in a bucket are those of files in a folder, also when a run over them is killed in the middle.
#[track_caller]
fn same_as_in_a_folder(files: &[(&str, Vec<u8>)], source: &str, n_rows: u64) {
    let server = Server::with_bucket(BUCKET);
    for (key, content) in files {
        put(&server, key, content);
    }
    let expected = local(files, &format!("{source}{OUT}"));
    assert_eq!(expected.lines().count() as u64, n_rows);
    let folder = pipeline(&server, &format!("{source}{OUT}"));
    assert!(lines(&folder) == expected, "other rows than those of the same files in a folder");
    let slow = |micros: &str| format!("{source}{}{OUT}", SLOW.replace("20000", micros));
    let folder = pipeline(&server, &slow("20000"));
    let at = kill_at(&folder, 30);
    assert!((30..n_rows).contains(&at), "{at}");
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(figure(&folder, "resumed_at"), at);
    assert!(folder.read("out.jsonl") == expected, "other rows after a kill at {at}");
}

#[test]
fn rows_of_ten_tars_are_those_of_tars_in_a_folder_also_after_a_kill() {
    let shards: Vec<_> = (0..10).map(|shard| (format!("in/shard-{shard:03}.tar"), tar(shard * 40, 40))).collect();
    let files: Vec<_> = shards.iter().map(|(name, content)| (name.as_str(), content.clone())).collect();
    let source = "  rows: {kind: source.webdataset, with: {path: 's3://bucket/in/shard-{000..009}.tar', \
                  carry: {label: cls}, {store}}}\n";
    same_as_in_a_folder(&files, &format!("{source}{SIZES}"), 400);
}

#[test]
fn rows_of_a_packed_tar_are_those_of_one_in_a_folder_also_after_a_kill() {
    let files = [("in/a.tar.gz", gzipped(&tar(0, 200))), ("in/b.tar.gz", gzipped(&tar(200, 50)))];
    let source =
        "  rows: {kind: source.webdataset, with: {path: 's3://bucket/in/*.tar.gz', carry: {label: cls}, {store}}}\n";
    same_as_in_a_folder(&files, source, 250);
}

#[test]
fn rows_of_parquet_files_are_those_of_files_in_a_folder_also_after_a_kill() {
    let images = |n: u8| -> Vec<Vec<u8>> { (0..200).map(|row| vec![row ^ n; 3000]).collect() };
    let files = [("in/x-0.parquet", parquet_of(&images(1), 80)), ("in/x-1.parquet", parquet_of(&images(2), 200))];
    let source = "  rows: {kind: source.parquet, with: {path: ['s3://bucket/in/x-0.parquet', \
                  's3://bucket/in/x-1.parquet'], {store}}}\n";
    same_as_in_a_folder(&files, source, 400);
}

#[test]
fn a_parquet_file_that_is_replaced_under_its_reader_mixes_no_versions() {
    let server = Server::with_bucket(BUCKET);
    let folder = Folder::new();
    // More than is read at once.
    let images = |n: u8| -> Vec<Vec<u8>> { (0..300).map(|row| vec![row as u8 ^ n; 100_000]).collect() };
    put(&server, "x.parquet", parquet_of(&images(0), 300));
    fs::write(folder.path("other"), parquet_of(&images(255), 300)).expect("a file");
    let nodes = format!(
        "  rows: {{kind: source.parquet, with: {{path: 's3://bucket/x.parquet', {}}}}}\n{SLOW}{OUT}",
        crate::scene::store(&server)
    );
    folder.write("p.yaml", &format!("name: p\nrun: {{commit_every: 10ms, queue_memory: 1MiB}}\nnodes:\n{nodes}"));
    let under_way = start(&folder, &RUN);
    wait_for("rows to be committed", || (committed(&folder) >= 5).then_some(()));
    server.put(BUCKET, "x.parquet", &folder.path("other"));
    let done = under_way.end();
    assert_eq!(done.code, 3, "{done:?}");
    let n_rows = folder.rows("out.jsonl").len();
    assert!((5..300).contains(&n_rows), "{n_rows}");
    let rejected = folder.rows("p.rejects.jsonl");
    assert_eq!((rejected.len(), &rejected[0]["code"]), (1, &json!("io")));
    let message = rejected[0]["message"].as_str().expect("a text");
    assert!(message.contains(&format!("cannot be read from row {n_rows} on")), "{message}");
    assert!(message.contains("cannot read `s3://bucket/x.parquet`: it was replaced meanwhile"), "{message}");
}

#[test]
fn a_parquet_file_that_the_store_stops_giving_is_no_corrupt_one() {
    let server = Server::with_bucket(BUCKET);
    let images: Vec<Vec<u8>> = (0..300).map(|row| vec![row as u8; 100_000]).collect();
    put(&server, "x.parquet", parquet_of(&images, 300));
    let folder = pipeline(
        &server,
        &format!("  rows: {{kind: source.parquet, with: {{path: 's3://bucket/x.parquet', {{store}}}}}}\n{SLOW}{OUT}"),
    );
    let yaml = folder.read("p.yaml").replace("commit_every: 10ms", "commit_every: 10ms, queue_memory: 1MiB");
    folder.write("p.yaml", &yaml);
    let under_way = start(&folder, &RUN);
    wait_for("rows to be committed", || (committed(&folder) >= 5).then_some(()));
    server.fault(json!({"on": "get", "do": "status", "status": 403, "times": 99}));
    let done = under_way.end();
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(rejects(&folder).iter().map(|(_, code)| code.as_str()).collect::<Vec<_>>(), ["permission_denied"]);
}

/// Pictures in a bucket and tables that name them, by URL or by path.
fn with_pictures(n: usize) -> Server {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "in/", ".jpg", n, &pictures());
    server
}

#[test]
fn pictures_that_tables_name_are_read_from_where_they_are() {
    let n_rows = 120;
    let server = with_pictures(n_rows);
    let local = Folder::new();
    local_pictures(&local, n_rows);
    let names = || (0..n_rows).map(|number| format!("in/{number:06}.jpg"));
    let sources = [
        (
            "jsonl",
            names().map(|name| format!("{{\"photo\": \"s3://bucket/{name}\", \"n\": 1}}\n")).collect::<String>(),
            "source.jsonl, with: {path: 's3://bucket/t.jsonl', column: photo, types: {n: int}, {store}}",
        ),
        (
            "csv",
            format!("photo,n\n{}", names().map(|name| format!("{name},1\n")).collect::<String>()),
            "source.csv, with: {path: 's3://bucket/t.csv', column: photo, base: 's3://bucket/', types: {n: int}, {store}}",
        ),
        (
            "csv",
            format!(
                "photo,n\n{}",
                names().map(|name| format!("{}/bucket/{name},1\n", server.url())).collect::<String>()
            ),
            "source.csv, with: {path: t.csv, column: photo, types: {n: int}}",
        ),
    ];
    local.write("t.csv", &format!("photo,n\n{}", names().map(|name| format!("{name},1\n")).collect::<String>()));
    let nodes = |source: &str| format!("  rows: {{kind: {source}}}\n{SIZES}{OUT}");
    local.write(
        "p.yaml",
        &format!("name: p\nnodes:\n{}", nodes("source.csv, with: {path: t.csv, column: photo, types: {n: int}}")),
    );
    let sizes = |text: &str| -> Vec<serde_json::Value> {
        crate::program::rows(text).iter().map(|row| json!([row["width"], row["height"], row["n"]])).collect()
    };
    let expected = sizes(&lines(&local));
    assert_eq!(expected.len(), n_rows);
    for (ending, table, source) in sources {
        let key = format!("t.{ending}");
        put(&server, &key, &table);
        let folder = pipeline(&server, &nodes(source));
        folder.write(&key, &table);
        assert_eq!(sizes(&lines(&folder)), expected, "{source}");
    }
}

#[test]
fn a_manifest_may_be_a_url_and_name_urls() {
    let server = with_pictures(50);
    let expected = {
        let nodes = format!(
            "  photos: {{kind: source.files, with: {{path: 's3://bucket/in/*.jpg', {{store}}}}}}\n{SIZES}{OUT}"
        );
        lines(&pipeline(&server, &nodes))
    };
    let list: String = (0..50).map(|number| format!("s3://bucket/in/{number:06}.jpg\n")).collect();
    // Everybody may read them, as a web server is asked without credentials.
    let files = Folder::new();
    files.write("list.txt", &list);
    fs::write(files.path("list.txt.gz"), gzipped(list.as_bytes())).expect("a file");
    for name in ["list.txt", "list.txt.gz"] {
        server.put(BUCKET, name, &files.path(name));
    }
    let web = format!("{}/bucket/list.txt", server.url());
    for manifest in ["s3://bucket/list.txt", "s3://bucket/list.txt.gz", &web, "list.txt"] {
        let nodes = format!("  photos: {{kind: source.files, with: {{manifest: '{manifest}', {{store}}}}}}\n{SIZES}");
        let folder = pipeline(&server, &format!("{nodes}{OUT}"));
        folder.write("list.txt", &list);
        assert_eq!(lines(&folder), expected, "{manifest}");
        let folder = pipeline(&server, &format!("{nodes}{SLOW}{OUT}"));
        folder.write("list.txt", &list);
        let at = kill_at(&folder, 10);
        assert!((10..50).contains(&at), "{at}");
        assert_eq!(lines(&folder), expected, "{manifest} after a kill");
        assert_eq!(figure(&folder, "resumed_at"), at);
    }
}
