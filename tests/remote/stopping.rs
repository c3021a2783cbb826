//! Runs that are asked to stop while a store has asked them to wait.

use rustix::process::Signal;
use serde_json::json;

use crate::program::{Folder, wait_for};
use crate::scene::{BUCKET, RUN, SUMS, committed, figure, lines, pictures, pipeline, run, start};
use crate::server::Server;

const SOURCE: &str = "  photos: {kind: source.files, with: {path: 's3://bucket/in/*.jpg', {store}}}\n";

/// A pause that no test waits for.
const LONG: &str = "300";

fn server() -> Server {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "in/", ".jpg", 40, &pictures());
    server
}

/// Runs until something has come, and interrupts that.
fn interrupt(folder: &Folder, grace: &str, what: &str, has_come: impl Fn() -> bool) {
    let under_way = start(folder, &[&RUN[..], &["--grace", grace]].concat());
    wait_for(what, || has_come().then_some(()));
    under_way.signal(Signal::INT);
    let done = under_way.end();
    assert_eq!(done.code, 130, "{done:?}");
}

#[test]
fn a_run_that_reads_ends_with_its_grace_and_what_was_not_read_is_read_by_the_next() {
    let server = server();
    let nodes = format!("{SOURCE}{SUMS}");
    let expected = lines(&pipeline(&server, &nodes));
    let folder = pipeline(&server, &nodes);
    server.forget();
    server.fault(json!({"on": "get", "key": "000030", "do": "status", "status": 503, "retry_after": LONG, "times": 1}));
    interrupt(&folder, "2s", "the pause", || server.count_for("get", "000030") == 1);
    assert!(!folder.path("p.rejects.jsonl").exists(), "what was not waited for is no reject");
    let at = committed(&folder);
    assert!(at <= 30, "{at}");
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(figure(&folder, "resumed_at"), at);
    assert_eq!(folder.read("out.jsonl"), expected);
}

#[test]
fn a_run_that_lists_ends_at_once() {
    let server = server();
    let folder = pipeline(&server, &format!("{SOURCE}{SUMS}"));
    server.fault(json!({"on": "list", "do": "status", "status": 503, "retry_after": LONG, "times": 1}));
    // An hour of grace: it does not end because that is over.
    interrupt(&folder, "1h", "the pause", || server.count("list") == 1);
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.rows("out.jsonl").len(), 40);
}

#[test]
fn a_run_that_gets_no_answer_ends_with_its_grace() {
    let server = server();
    let folder = pipeline(&server, &format!("{SOURCE}{SUMS}"));
    server.fault(json!({"on": "get", "key": "000030", "do": "hang", "times": 1}));
    interrupt(&folder, "2s", "the request", || server.count_for("get", "000030") == 1);
    assert!(!folder.path("p.rejects.jsonl").exists());
    assert_eq!(run(&folder, &RUN).code, 0);
    assert_eq!(folder.rows("out.jsonl").len(), 40);
}

#[test]
fn rows_that_are_run_again_are_not_waited_for_either() {
    let server = server();
    let nodes = format!("  photos: {{kind: source.rejects, with: {{path: again.jsonl, {{store}}}}}}\n{SUMS}");
    let folder = pipeline(&server, &nodes);
    let line = |number: u32| {
        let uri = format!("s3://bucket/in/{number:06}.jpg");
        json!({"id": uri, "uri": uri, "node": "photos", "code": "io", "message": "it broke"}).to_string() + "\n"
    };
    folder.write("again.jsonl", &(0..40).map(line).collect::<String>());
    server.fault(json!({"on": "get", "key": "000030", "do": "status", "status": 503, "retry_after": LONG, "times": 1}));
    interrupt(&folder, "2s", "the pause", || server.count_for("get", "000030") == 1);
    assert!(!folder.path("p.rejects.jsonl").exists(), "what was not waited for is no reject");
    assert_eq!(run(&folder, &RUN).code, 0);
    assert_eq!(folder.rows("out.jsonl").len(), 40);
}
