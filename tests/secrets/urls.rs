//! URLs with user info and signed query strings, in the pipeline file itself.

use serde_json::json;

use crate::scene::{SIGNATURE, Scene, USER};
use crate::server::Server;

/// Fails soon: the tests wait for it.
const STORE: &str = "store: {attempts: 2, timeout: 2s}";
/// Nobody listens there.
const NOBODY: &str = "127.0.0.1:1";

fn host(server: &Server) -> String {
    server.url().trim_start_matches("http://").to_owned()
}

fn photos(urls: &[String], more: &str) -> String {
    let urls: Vec<_> = urls.iter().map(|url| format!("\"{url}\"")).collect();
    format!(
        "name: urls\nnodes:\n  photos: {{kind: source.files, with: {{path: [{}], {STORE}}}}}\n{more}  \
         out: {{kind: sink.jsonl, with: {{path: out/rows.jsonl}}}}\n",
        urls.join(", ")
    )
}

#[test]
fn rows_from_signed_urls_have_the_urls_without_what_was_signed() {
    let server = Server::with_bucket("bucket");
    server.preload("bucket", "k", 2, 20);
    let host = host(&server);
    let scene = Scene::new();
    let urls =
        [format!("http://{USER}{host}/bucket/k000000{SIGNATURE}"), format!("http://{host}/bucket/k000001{SIGNATURE}")];
    scene.give("p.yaml", photos(&urls, ""));
    scene.everything("p.yaml").expect(0);
    let uris: Vec<_> = scene.place.rows("out/rows.jsonl").iter().map(|row| row["uri"].clone()).collect();
    assert_eq!(uris, [0, 1].map(|number| json!(format!("http://{host}/bucket/k00000{number}"))));
    // What is there is no picture, and is a panic too.
    for node in ["{kind: decode.image}", "{kind: transform.test_panic, with: {rows: [0, 1]}}"] {
        scene.give("p.yaml", photos(&urls, &format!("  breaks: {node}\n")));
        scene.flowgpu_test(&["run", "p.yaml", "--fresh", "--report", "report.json", "--trace", "trace.json"]).expect(3);
        assert_eq!(scene.place.rows("out/urls.rejects.jsonl").len(), 2);
    }
}

#[test]
fn what_fails_does_not_say_what_was_signed() {
    let server = Server::with_bucket("bucket");
    server.preload("bucket", "k", 1, 20);
    let host = host(&server);
    let scene = Scene::new();
    let urls = [
        format!("http://{USER}{host}/bucket/none{SIGNATURE}"),
        format!("http://{USER}{NOBODY}/bucket/k000000{SIGNATURE}"),
        format!("http://{USER}no-such-host.invalid/k000000{SIGNATURE}"),
        format!("s3://{USER}bucket/none{SIGNATURE}"),
        format!("http://{USER}{host}/bucket/k000000{SIGNATURE}"),
    ];
    scene.give("p.yaml", photos(&urls, ""));
    scene.everything("p.yaml");
    let faults = [
        json!({"times": 9, "do": "status", "status": 403}),
        json!({"times": 9, "do": "status", "status": 503, "retry_after": "0"}),
        json!({"times": 9, "do": "cut", "after": 3, "on": "get", "key": "k000000"}),
        json!({"times": 9, "do": "reset"}),
        json!({"times": 9, "do": "redirect", "to": format!("http://{USER}{NOBODY}/x{SIGNATURE}")}),
        json!({"times": 2, "do": "hang"}),
    ];
    scene.give("p.yaml", photos(&urls[4..], ""));
    for fault in faults {
        server.forget();
        server.fault(fault.clone());
        let ended = scene.flowgpu(&["run", "p.yaml", "--fresh", "--report", "report.json"]);
        assert_ne!(ended.code(), Some(0), "{fault}");
        assert_ne!(ended.code(), None, "{fault}");
    }
}

#[test]
fn urls_that_are_none_are_told_without_what_is_secret_in_them() {
    let scene = Scene::new();
    for url in [
        format!("http://{USER}host:port/x{SIGNATURE}"),
        format!("http://{USER}/x{SIGNATURE}"),
        format!("s4://{USER}bucket/x{SIGNATURE}"),
        format!("file://{USER}host/x{SIGNATURE}"),
        format!("az://{USER}bucket/x/*.jpg{SIGNATURE}"),
        format!("https://{USER}host/*.jpg{SIGNATURE}"),
        format!("http://{USER}[::1/x{SIGNATURE}"),
        "http://user:S3CRETp/a?s#s@host/x.jpg".to_owned(),
    ] {
        scene.give("p.yaml", photos(&[url], ""));
        scene.everything("p.yaml");
    }
    // A store's address is no place for them either.
    for endpoint in [format!("http://{USER}{NOBODY}"), format!("http://{NOBODY}/{SIGNATURE}")] {
        let store = format!("store: {{endpoint: \"{endpoint}\"}}");
        scene.give("p.yaml", photos(&["s3://bucket/x".to_owned()], "").replace(STORE, &store));
        scene.flowgpu(&["validate", "p.yaml"]).expect(2);
        scene.everything("p.yaml").expect(2);
    }
}

#[test]
fn signed_urls_of_archives_and_tables_are_not_told() {
    let server = Server::with_bucket("bucket");
    server.preload("bucket", "k", 1, 20);
    let host = host(&server);
    let scene = Scene::new();
    for kind in ["webdataset", "parquet", "csv", "jsonl"] {
        for key in ["k000000", "none"] {
            let path = format!("http://{USER}{host}/bucket/{key}{SIGNATURE}");
            let carry = if kind == "webdataset" { "" } else { ", carry: none" };
            scene.give(
                "p.yaml",
                format!(
                    "name: archives\nnodes:\n  rows: {{kind: source.{kind}, with: {{path: \"{path}\"{carry}, {STORE}}}}}\n  \
                     out: {{kind: sink.jsonl, with: {{path: out/rows.jsonl}}}}\n"
                ),
            );
            scene.everything("p.yaml");
        }
    }
}

#[test]
fn outputs_in_stores_do_not_tell_their_keys() {
    let server = Server::with_bucket("bucket");
    let scene = Scene::new();
    let outputs = [
        (format!("http://{NOBODY}"), "s3://bucket/out.jsonl".to_owned()),
        (server.url(), "s3://none/out.jsonl".to_owned()),
        (server.url(), format!("s3://{USER}bucket/out.jsonl{SIGNATURE}")),
        (server.url(), "s3://bucket/out.jsonl".to_owned()),
    ];
    let mut codes = Vec::new();
    for (number, (endpoint, path)) in outputs.into_iter().enumerate() {
        scene.give(
            "p.yaml",
            format!(
                "name: outputs-{number}\nnodes:\n  rows: {{kind: source.synthetic, with: {{rows: {{count: 3}}}}}}\n  out: {{kind: sink.jsonl, \
                 with: {{path: \"{path}\", store: {{endpoint: \"{endpoint}\", attempts: 2, timeout: 2s}}}}}}\n"
            ),
        );
        codes.push(scene.everything("p.yaml").code());
    }
    assert_eq!(codes[3], Some(0), "{codes:?}");
    assert!(codes[..2].iter().all(|code| *code == Some(1) || *code == Some(2)), "{codes:?}");
}
