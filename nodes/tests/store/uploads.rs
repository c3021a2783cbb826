//! Writing objects, and what is left of uploads that do not end.

use std::fs;
use std::path::{Path, PathBuf};

use nodes::store::{Environment, ErrorKind, StoreOptions, Stores};
use serde_json::json;
use tempfile::TempDir;

use crate::scene::{BUCKET, KEYS, child, noise, object, stores, stores_with, variable, wait_until};
use crate::server::Server;

const MIB: usize = 1 << 20;

struct Scene {
    server: Server,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Scene { server: Server::with_bucket(BUCKET), folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self, n_bytes: usize) -> (PathBuf, Vec<u8>) {
        let (path, content) = (self.folder.path().join("file"), noise(n_bytes));
        fs::write(&path, &content).unwrap();
        (path, content)
    }

    fn record(&self) -> PathBuf {
        self.folder.path().join("state/upload.json")
    }
}

#[test]
fn files_of_any_size_arrive_whole() {
    let scene = Scene::new();
    let stores = stores(&scene.server);
    for (n_bytes, n_parts) in [(0, 0), (1, 0), (16 * MIB, 0), (16 * MIB + 1, 3), (40 * MIB, 5)] {
        scene.server.forget();
        let (path, content) = scene.file(n_bytes);
        stores.upload(&path, &object("sub/file"), &scene.record()).unwrap();
        assert_eq!(scene.server.count("part"), n_parts, "{n_bytes}");
        assert_eq!(scene.server.count("put"), u64::from(n_parts == 0));
        let (bytes, _) = stores.read(&object("sub/file"), 100 * MIB as u64).unwrap();
        assert!(bytes == content, "{n_bytes}");
        assert!(!scene.record().exists());
        assert!(scene.server.uploads(BUCKET).is_empty());
    }
}

#[test]
fn requests_that_fail_are_sent_again() {
    let scene = Scene::new();
    for (kind, fault) in [("create", "status"), ("part", "status"), ("part", "reset"), ("complete", "status")] {
        scene.server.fault(json!({"on": kind, "do": fault, "status": 503, "times": 1}));
    }
    let (path, content) = scene.file(30 * MIB);
    let stores = stores(&scene.server);
    stores.upload(&path, &object("file"), &scene.record()).unwrap();
    assert!(stores.read(&object("file"), 100 * MIB as u64).unwrap().0 == content);
    assert!(scene.server.uploads(BUCKET).is_empty());
}

#[test]
fn an_upload_whose_last_answer_got_lost_is_complete() {
    let scene = Scene::new();
    scene.server.fault(json!({"on": "complete", "do": "lost", "times": 1}));
    let (path, content) = scene.file(20 * MIB);
    let stores = stores(&scene.server);
    stores.upload(&path, &object("file"), &scene.record()).unwrap();
    assert!(stores.read(&object("file"), 100 * MIB as u64).unwrap().0 == content);
    assert!(!scene.record().exists());
}

#[test]
fn an_upload_that_fails_is_aborted_and_what_was_there_stays() {
    let scene = Scene::new();
    let stores = stores_with(&scene.server, "attempts: 1");
    stores.write(&object("file"), "before".into()).unwrap();
    let (path, _) = scene.file(30 * MIB);
    scene.server.fault(json!({"on": "part", "do": "status", "status": 500, "times": 1}));
    let error = stores.upload(&path, &object("file"), &scene.record()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(scene.server.count("abort"), 1);
    assert!(scene.server.uploads(BUCKET).is_empty());
    assert!(!scene.record().exists());
    assert_eq!(stores.read(&object("file"), 100).unwrap().0, "before");
}

#[test]
fn an_upload_that_could_not_be_aborted_is_aborted_by_the_next_run() {
    let scene = Scene::new();
    let (path, _) = scene.file(30 * MIB);
    scene.server.fault(json!({"on": "part", "do": "status", "status": 403, "times": 99}));
    scene.server.fault(json!({"on": "abort", "do": "status", "status": 403, "times": 3}));
    let stores = stores(&scene.server);
    let error = stores.upload(&path, &object("file"), &scene.record()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(scene.server.uploads(BUCKET), ["file"]);
    stores.abort_leftover(&scene.record()).unwrap();
    assert!(scene.server.uploads(BUCKET).is_empty());
    assert!(!scene.record().exists());
    // Once more there is nothing to do.
    stores.abort_leftover(&scene.record()).unwrap();
}

/// Kills an upload when `is_time`, and sees that the next run aborts it.
fn kill_when(fault: serde_json::Value, is_time: impl Fn(&Scene) -> bool) {
    let scene = Scene::new();
    let (path, _) = scene.file(30 * MIB);
    scene.server.fault(fault);
    let (url, record) = (scene.server.url(), scene.record());
    let variables = [
        ("STORE_SERVER", url.as_str()),
        ("STORE_FILE", path.to_str().unwrap()),
        ("STORE_RECORD", record.to_str().unwrap()),
    ];
    let mut child = child("uploads::uploads_for_a_parent_that_kills_it", &variables).spawn().unwrap();
    wait_until("the upload is under way", || is_time(&scene));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(scene.server.uploads(BUCKET), ["file"]);
    // Somebody else's upload to the same bucket is left alone.
    scene.server.begin_upload(BUCKET, "file2");
    stores(&scene.server).abort_leftover(&record).unwrap();
    assert_eq!(scene.server.uploads(BUCKET), ["file2"]);
    assert!(!record.exists());
    assert_eq!(stores(&scene.server).stat(&object("file")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn an_upload_killed_between_parts_is_aborted_by_the_next_run() {
    kill_when(json!({"on": "part", "do": "hang", "times": 99}), |scene| scene.server.count("part") > 0);
}

#[test]
fn an_upload_killed_before_its_name_was_known_is_aborted_by_the_next_run() {
    let is_time = |scene: &Scene| !scene.server.uploads(BUCKET).is_empty();
    kill_when(json!({"on": "create", "do": "lost_hang", "times": 1}), is_time);
}

#[test]
#[ignore = "run by another test"]
fn uploads_for_a_parent_that_kills_it() {
    let options = StoreOptions { endpoint: Some(variable("STORE_SERVER")), ..StoreOptions::default() };
    let stores = Stores::with_environment(options, Environment::of(KEYS));
    let (file, record) = (variable("STORE_FILE"), variable("STORE_RECORD"));
    stores.upload(Path::new(&file), &object("file"), Path::new(&record)).unwrap();
}

#[test]
fn a_record_that_is_damaged_is_an_error_that_names_it() {
    let scene = Scene::new();
    let record = scene.folder.path().join("record");
    for text in ["", "{}", r#"{"to": "/local", "upload": "x"}"#, r#"{"to": "s3://b", "upload": "x"}"#, "\u{fffd}"] {
        fs::write(&record, text).unwrap();
        let error = stores(&scene.server).abort_leftover(&record).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Config | ErrorKind::IsDirectory), "{error}");
    }
}
