//! Pictures in a bucket, listed by a glob.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::program::{Folder, ROOT};
use crate::scene::{BUCKET, RUN, SUMS, figure, kill_at, lines, local_pictures, pictures, pipeline, rejects, run};
use crate::server::Server;

const SOURCE: &str = "  photos: {kind: source.files, with: {path: 's3://bucket/photos/**/*.jpg', {store}}}\n";

/// What the pipeline with `nodes` behind the source writes for the same pictures in a folder, with the names they have in
/// the bucket.
fn local(n: usize, nodes: &str) -> String {
    let folder = Folder::with_nodes(&format!("  photos: {{kind: source.files, with: {{path: 'in/*.jpg'}}}}\n{nodes}"));
    local_pictures(&folder, n);
    lines(&folder).replace("\"in/", "\"s3://bucket/photos/")
}

#[test]
fn a_thousand_objects_are_classified_in_the_order_of_their_keys() {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "photos/", ".jpg", 1000, &pictures());
    // Not asked for: another ending, a folder's mark, another prefix.
    server.preload(BUCKET, "photos/x", 2, 10);
    server.empty_object(BUCKET, "photos/d/");
    server.fill(BUCKET, "photos-old/", ".jpg", 2, &pictures());
    let folder = pipeline(&server, &format!("{SOURCE}{SUMS}"));
    let rows = lines(&folder);
    assert_eq!(rows.lines().count(), 1000);
    assert!(rows == local(1000, SUMS), "other rows than those of the same files in a folder");
    // 1,003 objects begin so.
    assert_eq!((server.count("list"), server.count("get")), (2, 1000));
}

#[test]
fn the_quick_start_gives_the_same_labels_for_photographs_in_a_bucket() {
    let server = Server::with_bucket(BUCKET);
    let nodes = |source: &str| {
        format!(
            "  photos: {source}\n  pixels: {{kind: decode.image, with: {{preset: model}}}}\n  \
             scores: {{kind: infer, with: {{model: '{root}/pipelines/models/efficientnet_lite0', batch: 2}}}}\n  \
             labels: {{kind: transform.topk, with: {{k: 1, labels: imagenet1k}}}}\n  \
             out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}\n",
            root = ROOT
        )
    };
    let photos = ["astronaut", "rocket"].map(|name| Path::new(ROOT).join(format!("pipelines/photos/{name}.jpg")));
    server.fill(BUCKET, "photos/", ".jpg", photos.len(), &photos);
    let folder = pipeline(&server, &nodes("{kind: source.files, with: {path: 's3://bucket/photos/*.jpg', {store}}}"));
    let rows = lines(&folder);
    let local = Folder::with_nodes(&nodes("{kind: source.files, with: {path: 'in/*.jpg'}}"));
    fs::create_dir(local.path("in")).expect("a folder");
    for (number, photo) in photos.iter().enumerate() {
        fs::copy(photo, local.path(&format!("in/{number:06}.jpg"))).expect("a copy");
    }
    assert_eq!(rows, lines(&local).replace("\"in/", "\"s3://bucket/photos/"));
}

#[test]
fn a_limit_of_one_row_lists_one_page_of_a_hundred_thousand_keys() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "many/", 100_000, 10);
    let folder = pipeline(
        &server,
        "  all: {kind: source.files, with: {path: 's3://bucket/many/*', {store}}}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
",
    );
    let done = run(&folder, &[&RUN[..], &["--limit", "1"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    let rows = folder.rows("out.jsonl");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["uri"], "s3://bucket/many/000000");
    assert_eq!((server.count("list"), server.count("get")), (1, 1));
}

#[test]
fn a_hundred_objects_are_asked_for_at_the_same_time() {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "photos/", ".jpg", 300, &pictures());
    // None of these is answered before a hundred are there. The first tells how large they are, and counts as well.
    server.fault(json!({"on": "get", "key": "/photos/0001", "do": "gather", "times": 100}));
    let folder = pipeline(&server, &format!("{SOURCE}{SUMS}"));
    assert!(lines(&folder) == local(300, SUMS), "other rows than those of the same files in a folder");
    assert_eq!(server.count("get"), 300, "none had to be asked for again");
}

#[test]
fn an_object_that_is_replaced_between_kill_and_resume_is_noticed() {
    for (on_change, code) in [("keep", 0), ("reprocess", 0), ("fail", 2)] {
        let server = Server::with_bucket(BUCKET);
        server.fill(BUCKET, "photos/", ".jpg", 60, &pictures());
        // The sums tell pictures apart.
        let slow =
            SUMS.replace("  out:", "  slow: {kind: transform.test_delay, with: {micros: 20000, seed: 1}}\n  out:");
        let nodes = format!("{SOURCE}{slow}");
        let folder = pipeline(&server, &nodes);
        crate::scene::write_pipeline(&folder, &server, &format!(", on_change: {on_change}"), &nodes);
        let at = kill_at(&folder, 20);
        assert!((20..60).contains(&at), "{at}");
        // Another picture of the same number of pixels is another version of the same object.
        server.put(BUCKET, "photos/000003.jpg", &pictures()[4]);
        server.forget();
        let done = run(&folder, &RUN);
        assert_eq!(done.code, code, "{on_change}: {done:?}");
        assert!(server.count("head") <= 1, "{} were asked for one by one", server.count("head"));
        assert!(done.stderr.contains("s3://bucket/photos/000003.jpg"), "{on_change}: {done:?}");
        match on_change {
            "keep" => assert_eq!(figure(&folder, "resumed_at"), at),
            "reprocess" => assert!(figure(&folder, "resumed_at") <= 3),
            _ => continue,
        }
        let expected = local(60, &slow);
        assert_eq!(folder.rows("out.jsonl").len(), 60);
        let differ = folder.read("out.jsonl") != expected;
        // What is done stays as it was made, or is made again of what is there now.
        assert_eq!(differ, on_change == "reprocess", "{on_change}");
    }
}

#[test]
fn an_object_that_goes_between_its_listing_and_its_reading_is_a_reject() {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "photos/", ".jpg", 5, &pictures());
    server.fault(json!({"on": "get", "key": "000002", "do": "status", "status": 404, "times": 9}));
    let folder = pipeline(&server, &format!("{SOURCE}{SUMS}"));
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(rejects(&folder), [("s3://bucket/photos/000002.jpg".to_owned(), "not_found".to_owned())]);
    assert_eq!(server.count_for("get", "000002"), 1);
    assert_eq!(folder.rows("out.jsonl").len(), 4);
}
