//! Servers that refuse and break off: how often they are asked, and what is told.

use serde_json::json;

use crate::program::Done;
use crate::scene::{BUCKET, RUN, SUMS, lines, pictures, pipeline, rejects, run};
use crate::server::Server;

const SOURCE: &str = "  photos: {kind: source.files, with: {path: 's3://bucket/in/*.jpg', {store}}}\n";

fn server() -> Server {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "in/", ".jpg", 20, &pictures());
    server
}

fn nodes() -> String {
    format!("{SOURCE}{SUMS}")
}

/// What a run gives that nothing happens to.
fn undisturbed() -> String {
    lines(&pipeline(&server(), &nodes()))
}

#[test]
fn slow_down_three_times_and_then_an_answer_costs_nothing_but_time() {
    let server = server();
    server.fault(json!({"on": "get", "key": "000007", "do": "status", "status": 503, "times": 3}));
    assert_eq!(lines(&pipeline(&server, &nodes())), undisturbed());
    assert_eq!(server.count_for("get", "000007"), 4);
}

#[test]
fn slow_down_with_a_time_is_waited_for() {
    let server = server();
    server.fault(json!({"on": "get", "key": "000007", "do": "status", "status": 503, "retry_after": "1", "times": 1}));
    assert_eq!(lines(&pipeline(&server, &nodes())), undisturbed());
    assert_eq!(server.count_for("get", "000007"), 2);
}

#[test]
fn what_stays_unavailable_is_a_reject_after_all_attempts() {
    let server = server();
    server.fault(json!({"on": "get", "key": "000007", "do": "status", "status": 503, "retry_after": "0", "times": 99}));
    let folder = pipeline(&server, &nodes().replace("region: us-east-1", "region: us-east-1, attempts: 3"));
    let yaml = folder.read("p.yaml").replace("region: us-east-1", "region: us-east-1, attempts: 3");
    folder.write("p.yaml", &yaml);
    assert_eq!(run(&folder, &RUN).code, 3);
    assert_eq!(rejects(&folder), [("s3://bucket/in/000007.jpg".to_owned(), "io".to_owned())]);
    assert_eq!(server.count_for("get", "000007"), 3);
    assert_eq!(folder.rows("out.jsonl").len(), 19);
}

#[test]
fn forbidden_and_not_there_are_rejects_after_three_tries_and_one() {
    let server = server();
    server.fault(json!({"on": "get", "key": "000003", "do": "status", "status": 403, "times": 99}));
    server.fault(json!({"on": "get", "key": "000005", "do": "status", "status": 404, "times": 99}));
    let folder = pipeline(&server, &nodes());
    assert_eq!(run(&folder, &RUN).code, 3);
    assert_eq!(
        rejects(&folder),
        [("s3://bucket/in/000003.jpg", "permission_denied"), ("s3://bucket/in/000005.jpg", "not_found")]
            .map(|(uri, code)| (uri.to_owned(), code.to_owned()))
    );
    assert_eq!((server.count_for("get", "000003"), server.count_for("get", "000005")), (3, 1));
    let messages: Vec<_> =
        folder.rows("p.rejects.jsonl").iter().map(|row| row["message"].as_str().expect("a text").to_owned()).collect();
    assert_eq!(
        messages,
        [
            "no permission to read `s3://bucket/in/000003.jpg`: the store answered 403 (forbidden): AccessDenied: \
             As told. (asked with the credentials in `AWS_ACCESS_KEY_ID`, tried 3 times)",
            "`s3://bucket/in/000005.jpg` does not exist",
        ]
    );
    assert_eq!(folder.rows("out.jsonl").len(), 18);
}

#[test]
fn a_body_that_is_cut_in_the_middle_is_read_on() {
    let server = server();
    server.fault(json!({"on": "get", "key": "000004", "do": "cut", "after": 500, "times": 2}));
    server.fault(json!({"on": "get", "key": "000009", "do": "reset", "times": 2}));
    // What came wrong would be another checksum in the row, or a reject.
    assert_eq!(lines(&pipeline(&server, &nodes())), undisturbed());
    assert_eq!((server.count_for("get", "000004"), server.count_for("get", "000009")), (3, 3));
}

/// A run that cannot begin, because of the store.
#[track_caller]
fn refused(server: &Server, change: impl Fn(String) -> String, code: i32, parts: &[&str]) -> Done {
    let folder = pipeline(server, &nodes());
    folder.write("p.yaml", &change(folder.read("p.yaml")));
    let done = run(&folder, &RUN);
    assert_eq!(done.code, code, "{done:?}");
    assert!(parts.iter().all(|part| done.stderr.contains(part)), "{parts:?} in {done:?}");
    done
}

#[test]
fn what_keeps_a_bucket_from_being_listed_ends_the_run_with_what_to_do() {
    let server = server();
    let same = |yaml: String| yaml;
    server.fault(json!({"on": "list", "do": "status", "status": 403, "times": 3}));
    let parts = [
        "no permission to list `s3://bucket/in/`: the store answered 403 (forbidden)",
        "asked with the credentials in `AWS_ACCESS_KEY_ID`",
        "anonymous: true",
    ];
    refused(&server, same, 2, &parts);
    assert_eq!(server.count("list"), 3);
    server.fault(json!({"on": "list", "do": "status", "status": 301, "times": 1}));
    refused(&server, same, 2, &["`s3://bucket/in/`", "301", "set `region:` under `store:`"]);
    refused(
        &server,
        |yaml| yaml.replace("s3://bucket/", "s3://nowhere/"),
        2,
        &["cannot list `s3://nowhere/in/`", "the bucket does not exist"],
    );
    refused(
        &server,
        |yaml| yaml.replace("/*.jpg", "/*.gif"),
        2,
        &["`s3://bucket/in/*.gif` matches no object", "what begins with `s3://bucket/in/` was listed"],
    );
    let few = |yaml: String, endpoint: &str| {
        yaml.replace(&server.url(), endpoint).replace("region: us-east-1", "region: us-east-1, attempts: 2")
    };
    refused(&server, |yaml| few(yaml, "http://no-such-host.invalid"), 1, &["`s3://bucket/in/`", "tried 2 times"]);
    refused(&server, |yaml| few(yaml, "http://127.0.0.1:1"), 1, &["connection refused (tried 2 times)"]);
    // A server that speaks no TLS.
    let secure = server.url().replace("http://", "https://");
    refused(&server, |yaml| few(yaml, &secure), 1, &["cannot list `s3://bucket/in/`: "]);
}
