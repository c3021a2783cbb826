//! Which failures are tried again, how often, and that all callers of a bucket do it together.

use engine::node::{Fault, FaultKind};
use nodes::store::{Environment, ErrorKind, StoreError, StoreOptions, Stores};
use serde_json::json;

use crate::scene::{BUCKET, object, stores, stores_with};
use crate::server::Server;

fn server() -> Server {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k/", 100, 100);
    server
}

fn read(stores: &Stores) -> Result<usize, StoreError> {
    stores.read(&object("k/000007"), 1000).map(|(bytes, _)| bytes.len())
}

#[test]
fn slow_down_three_times_and_then_an_answer_is_success() {
    let server = server();
    server.fault(json!({"on": "get", "do": "status", "status": 503, "times": 3}));
    let stores = stores(&server);
    assert_eq!(read(&stores), Ok(100));
    assert_eq!(server.count("get"), 4);
    let standing = stores.standing(&object("k/")).unwrap();
    assert_eq!(standing.n_pauses, 3);
    assert!((32..64).contains(&standing.permits), "{standing:?}");
}

#[test]
fn a_server_that_never_recovers_is_an_error_after_all_attempts() {
    let server = server();
    server.fault(json!({"on": "get", "do": "status", "status": 503, "retry_after": "0", "times": 100}));
    let error = read(&stores_with(&server, "attempts: 3")).unwrap_err();
    assert_eq!((error.kind(), server.count("get")), (ErrorKind::Throttled, 3));
    assert_eq!(
        error.to_string(),
        "cannot read `s3://photos/k/000007`: the store answered 503 (slow down): SlowDown: As told. (tried 3 times)"
    );
    assert_eq!(Fault::from(error).kind, FaultKind::Transient);
}

#[test]
fn other_failures_of_the_server_and_broken_connections_are_tried_again_too() {
    let server = server();
    for fault in [
        json!({"do": "status", "status": 500, "times": 1}),
        json!({"do": "status", "status": 429, "retry_after": "0", "times": 1}),
        json!({"do": "reset", "times": 1}),
    ] {
        server.fault(fault);
    }
    assert_eq!(read(&stores(&server)), Ok(100));
    assert_eq!(server.count("get"), 4);
}

#[test]
fn no_permission_is_an_error_after_three_tries_and_not_there_after_one() {
    let server = server();
    server.fault(json!({"on": "get", "do": "status", "status": 403, "times": 100}));
    let stores = stores(&server);
    let error = read(&stores).unwrap_err();
    assert_eq!((error.kind(), server.count("get")), (ErrorKind::PermissionDenied, 3));
    assert!(error.to_string().contains("AccessDenied") && error.to_string().contains("tried 3 times"), "{error}");
    server.forget();
    let error = stores.read(&object("k/none"), 1000).unwrap_err();
    assert_eq!((error.kind(), server.count("get")), (ErrorKind::NotFound, 1));
    assert_eq!(error.to_string(), "`s3://photos/k/none` does not exist");
    // Neither says anything about how much the store bears.
    assert_eq!(stores.standing(&object("k/")).unwrap().n_pauses, 0);
}

#[test]
fn permission_that_comes_late_is_success() {
    let server = server();
    server.fault(json!({"on": "get", "do": "status", "status": 403, "times": 2}));
    assert_eq!(read(&stores(&server)), Ok(100));
}

#[test]
fn no_answer_in_time_is_tried_again_and_then_an_error() {
    let server = server();
    server.fault(json!({"on": "get", "do": "hang", "times": 3}));
    let stores = stores_with(&server, "{timeout: 300ms, attempts: 2}");
    let error = read(&stores).unwrap_err();
    assert_eq!((error.kind(), server.count("get")), (ErrorKind::Timeout, 2));
    assert_eq!(read(&stores), Ok(100));
}

#[test]
fn nobody_there_is_an_error_that_says_so() {
    let url = server().url();
    let options = StoreOptions { endpoint: Some(url), attempts: 2.try_into().unwrap(), ..StoreOptions::default() };
    let error = read(&Stores::with_environment(options, Environment::of(crate::scene::KEYS))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert_eq!(error.to_string(), "cannot read `s3://photos/k/000007`: connection refused (tried 2 times)");
}

#[test]
fn all_callers_of_a_bucket_back_off_together() {
    let server = server();
    // Every one of the callers meets a refusal: one by one these would be forty halvings, down to a single request.
    server.fault(json!({"on": "get", "do": "status", "status": 503, "times": 40}));
    server.delay(50);
    let stores = stores(&server);
    std::thread::scope(|scope| {
        for key in 0..40 {
            let stores = &stores;
            scope.spawn(move || stores.read(&object(&format!("k/{key:06}")), 1000).unwrap());
        }
    });
    assert_eq!(server.count("get"), 80);
    let standing = stores.standing(&object("k/")).unwrap();
    assert_eq!(standing.in_flight, 0);
    assert!((1..8).contains(&standing.n_pauses), "{standing:?}");
}

#[test]
fn public_objects_need_no_credentials_and_private_ones_do() {
    let server = server();
    stores(&server).write(&object("private"), "content".into()).unwrap();
    let options = StoreOptions { endpoint: Some(server.url()), anonymous: true, ..StoreOptions::default() };
    let stores = Stores::with_environment(options, Environment::default());
    assert_eq!(read(&stores), Ok(100));
    let error = stores.read(&object("private"), 1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn no_secret_comes_out_in_errors() {
    let server = server();
    for status in [400, 403, 404, 500] {
        server.forget();
        server.fault(json!({"do": "status", "status": status, "times": 9}));
        let stores = stores_with(&server, "attempts: 1");
        let texts = [
            format!("{:?}", read(&stores).unwrap_err()),
            format!("{:?}", stores.list(&object("k/S3CRET-no")).unwrap().next().unwrap().unwrap_err()),
            format!("{stores:?}"),
        ];
        for text in texts {
            assert!(!text.contains("S3CRETKEY") && !text.contains("AKIATEST"), "{text}");
            assert!(!text.contains("list-type"), "{text}");
        }
    }
}
