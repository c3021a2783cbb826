//! Web servers, which answer GET and list nothing.

use serde_json::json;

use crate::scene::{BUCKET, RUN, SUMS, figure, kill_at, lines, pictures, pipeline, rejects, run};
use crate::server::Server;

#[test]
fn files_of_a_web_server_are_rows_and_what_is_secret_in_a_url_is_not() {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "in/", ".jpg", 40, &pictures());
    let by_glob =
        format!("  photos: {{kind: source.files, with: {{path: 's3://bucket/in/*.jpg', {{store}}}}}}\n{SUMS}");
    let expected = lines(&pipeline(&server, &by_glob)).replace("s3://", &format!("{}/", server.url()));
    let slow = SUMS.replace("  out:", "  slow: {kind: transform.test_delay, with: {micros: 20000, seed: 1}}\n  out:");
    let signed = format!("{}/bucket/in/{{000000..000039}}.jpg?X-Amz-Signature=S3CRET", server.url());
    let nodes = format!("  photos: {{kind: source.files, with: {{path: '{signed}'}}}}\n{slow}");
    let folder = pipeline(&server, &nodes);
    let at = kill_at(&folder, 10);
    assert!((10..40).contains(&at), "{at}");
    server.forget();
    assert_eq!(lines(&folder), expected);
    assert_eq!(figure(&folder, "resumed_at"), at);
    // A web server is asked for nothing else: URLs are signed for GET alone.
    assert_eq!((server.count("head"), server.count("list")), (0, 0));
    for name in ["out.jsonl", "r.json", ".flowgpu/p/journal"] {
        assert!(!folder.read(name).contains("S3CRET"), "{name}");
    }
}

#[test]
fn what_a_web_server_refuses_is_a_reject() {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "in/", ".jpg", 5, &pictures());
    server.fault(json!({"on": "get", "key": "000001", "do": "status", "status": 403, "times": 99}));
    server.fault(json!({"on": "get", "key": "000002", "do": "status", "status": 503, "retry_after": "0", "times": 3}));
    server.fault(json!({"on": "get", "key": "000003", "do": "cut", "after": 500, "times": 1}));
    let path = format!("{}/bucket/in/{{000000..000005}}.jpg", server.url());
    let folder = pipeline(&server, &format!("  photos: {{kind: source.files, with: {{path: '{path}'}}}}\n{SUMS}"));
    assert_eq!(run(&folder, &RUN).code, 3);
    let uri = |number: u32| format!("{}/bucket/in/{number:06}.jpg", server.url());
    assert_eq!(rejects(&folder), [(uri(1), "permission_denied".to_owned()), (uri(5), "not_found".to_owned())]);
    assert_eq!(folder.rows("out.jsonl").len(), 4);
    assert_eq!(["000001", "000002", "000003", "000005"].map(|key| server.count_for("get", key)), [3, 4, 2, 1]);
}

#[test]
fn a_glob_over_a_web_server_is_refused_with_what_to_do() {
    let server = Server::start();
    let path = format!("{}/d/*.jpg", server.url());
    let folder = pipeline(&server, &format!("  photos: {{kind: source.files, with: {{path: '{path}'}}}}\n{SUMS}"));
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("a web server has no listing") && done.stderr.contains("{000..099}"), "{done:?}");
}
