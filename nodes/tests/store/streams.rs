//! Reading objects from front to back without holding them.

use std::io::Read;

use nodes::store::{ErrorKind, Location, StoreError, Stores};
use serde_json::json;

use crate::scene::{BUCKET, child, noise, object, stores, stores_with, variable};
use crate::server::Server;

const MIB: usize = 1 << 20;

fn put_large(stores: &Stores, key: &str, n_bytes: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let content = noise(n_bytes);
    std::fs::write(folder.path().join("large"), &content).unwrap();
    stores.upload(&folder.path().join("large"), &object(key), &folder.path().join("record")).unwrap();
    content
}

fn read_all(stores: &Stores, location: &Location, from: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    stores.open(location, from)?.read_to_end(&mut bytes).map_err(|error| StoreError::of_io(location, &error))?;
    Ok(bytes)
}

#[test]
fn a_large_object_is_streamed_whole_from_any_byte_on() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    let content = put_large(&stores, "large", 50 * MIB + 12_345);
    server.forget();
    let mut reader = stores.open(&object("large"), 0).unwrap();
    assert_eq!(reader.meta().unwrap().size, content.len() as u64);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert!(bytes == content);
    assert_eq!((server.count("head"), server.count("get")), (1, 13));
    let from = content.len() - 1000;
    assert!(read_all(&stores, &object("large"), from as u64).unwrap() == content[from..]);
    for beyond in [content.len() as u64, u64::MAX] {
        assert!(read_all(&stores, &object("large"), beyond).unwrap().is_empty());
    }
}

#[test]
fn what_fails_or_breaks_in_the_middle_is_asked_for_again() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    let content = put_large(&stores, "large", 20 * MIB);
    for fault in [
        json!({"on": "get", "do": "cut", "after": 3 * MIB, "times": 1}),
        json!({"on": "get", "do": "status", "status": 503, "times": 2}),
        json!({"on": "get", "do": "reset", "times": 1}),
    ] {
        server.fault(fault);
    }
    assert!(read_all(&stores, &object("large"), 0).unwrap() == content);
}

#[test]
fn an_object_that_is_replaced_during_a_stream_is_an_error() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    let content = put_large(&stores, "large", 50 * MIB);
    let location = object("large");
    let mut reader = stores.open(&location, 0).unwrap();
    let mut start = vec![0; MIB];
    reader.read_exact(&mut start).unwrap();
    assert!(start == content[..MIB]);
    put_large(&stores, "large", 50 * MIB + 1);
    let mut rest = Vec::new();
    let error = StoreError::of_io(&location, &reader.read_to_end(&mut rest).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    // What came before is of the old object, and after an error comes nothing else.
    assert!(content[MIB..].starts_with(&rest));
    let again = reader.read(&mut start).unwrap_err();
    assert_eq!(StoreError::of_io(&location, &again).kind(), ErrorKind::Changed);
}

#[test]
fn a_server_that_knows_no_ranges_is_streamed_by_one_request() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k", 1, 3 * MIB);
    let location = Location::parse(&format!("{}/photos/k000000", server.url()), std::path::Path::new("/")).unwrap();
    let stores = stores_with(&server, "{}");
    let (content, _) = stores.read(&location, 100 * MIB as u64).unwrap();
    for from in [0, 2 * MIB as u64, 3 * MIB as u64, 4 * MIB as u64] {
        server.forget();
        server.fault(json!({"on": "get", "do": "whole", "times": 1}));
        server.fault(json!({"on": "get", "do": "whole", "after": MIB, "times": 1}));
        server.fault(json!({"on": "get", "do": "whole", "times": 9}));
        let bytes = read_all(&stores, &location, from).unwrap();
        assert!(bytes == content[(from as usize).min(content.len())..], "{from}");
    }
}

#[test]
fn a_stream_may_be_left_in_the_middle() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    put_large(&stores, "large", 50 * MIB);
    for _ in 0..3 {
        let mut start = [0; 100];
        stores.open(&object("large"), 0).unwrap().read_exact(&mut start).unwrap();
    }
    assert!(read_all(&stores, &object("large"), 49 * MIB as u64).is_ok());
}

/// The largest that this process was, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn a_stream_holds_little_of_a_large_object() {
    let server = Server::with_bucket(BUCKET);
    put_large(&stores(&server), "large", 120 * MIB);
    let url = server.url();
    let child = child("streams::streams_for_a_parent_that_watches_its_memory", &[("STORE_SERVER", &url)]).output();
    let child = child.unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

#[test]
#[ignore = "run by another test"]
fn streams_for_a_parent_that_watches_its_memory() {
    let options = nodes::store::StoreOptions { endpoint: Some(variable("STORE_SERVER")), ..Default::default() };
    let stores = Stores::with_environment(options, nodes::store::Environment::of(crate::scene::KEYS));
    let mut reader = stores.open(&object("large"), 0).unwrap();
    let before = peak_memory();
    let mut n_bytes = 0;
    let mut buffer = vec![0; 64 << 10];
    while let n_read @ 1.. = reader.read(&mut buffer).unwrap() {
        n_bytes += n_read;
    }
    assert_eq!(n_bytes, 120 * MIB);
    let grown = peak_memory() - before;
    assert!(grown < 60 * MIB, "{grown}");
}
