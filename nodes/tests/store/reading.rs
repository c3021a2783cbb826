//! Reading whole objects and ranges of them.

use nodes::store::{ErrorKind, Location};
use serde_json::json;

use crate::scene::{BUCKET, noise, object, stores};
use crate::server::Server;

#[test]
fn a_body_that_breaks_is_gone_on_with_where_it_broke() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    let content = noise(1_000_000);
    stores.write(&object("a"), content.clone().into()).unwrap();
    server.fault(json!({"on": "get", "do": "cut", "after": 300_000, "times": 2}));
    let (bytes, _) = stores.read(&object("a"), 1_000_000).unwrap();
    assert!(bytes == content);
    assert_eq!(server.count("get"), 3);
    server.fault(json!({"on": "get", "do": "cut", "after": 1, "times": 1}));
    assert!(stores.read_range(&object("a"), 500_000..900_000).unwrap() == content[500_000..900_000]);
}

#[test]
fn an_object_that_is_replaced_while_its_body_breaks_is_an_error() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    stores.write(&object("a"), noise(1_000_000).into()).unwrap();
    server.fault(json!({"on": "get", "do": "cut", "after": 300_000, "times": 1}));
    // The second answer comes from a redirect to another object of the same size.
    stores.write(&object("b"), vec![7; 1_000_000].into()).unwrap();
    server.fault(json!({"on": "get", "key": "/a", "do": "as", "to": "/photos/b", "times": 1}));
    let error = stores.read(&object("a"), 1_000_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
}

#[test]
fn too_large_an_object_is_refused_before_its_body_is_read() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k", 1, 1001);
    let error = stores(&server).read(&object("k000000"), 1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(error.to_string(), "cannot read `s3://photos/k000000`: it has 1001 bytes, more than the limit 1000");
    assert_eq!(server.count("get"), 1);
}

#[test]
fn ranges_are_read_exactly_or_not_at_all() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    stores.write(&object("a"), "0123456789".into()).unwrap();
    stores.write(&object("empty"), "".into()).unwrap();
    for (range, expected) in [(0..10, "0123456789"), (3..5, "34"), (9..10, "9"), (4..4, "")] {
        assert_eq!(stores.read_range(&object("a"), range).unwrap(), expected);
    }
    for range in [5..11, 10..11, 100..200] {
        assert_eq!(stores.read_range(&object("a"), range.clone()).unwrap_err().kind(), ErrorKind::Other, "{range:?}");
    }
    assert_eq!(stores.read(&object("empty"), 10).unwrap().0, "");
    assert_eq!(stores.stat(&object("empty")).unwrap().size, 0);
}

#[test]
fn keys_with_any_letters_are_written_listed_and_read() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    let mut keys = ["a b.jpg", "ü/ñ.jpg", "100%.jpg", "%20.jpg", "a+b&c=d.jpg", "q?x#y.jpg", "[1]{2}~.jpg", "a@2x.jpg"];
    for key in keys {
        stores.write(&object(key), key.into()).unwrap();
    }
    keys.sort_unstable();
    let page = stores.list(&object("")).unwrap().next().unwrap().unwrap();
    let listed: Vec<_> = page.iter().map(|(location, _)| location.key().into_owned()).collect();
    assert_eq!(listed, keys);
    for (location, meta) in page {
        let (bytes, read) = stores.read(&location, 100).unwrap();
        assert_eq!(bytes, location.key().as_bytes());
        assert_eq!(read.stamp(), meta.stamp());
        assert_eq!(stores.stat(&location).unwrap().stamp(), meta.stamp());
        // As it is shown, it can be written into a pipeline again.
        assert_eq!(Location::parse(&location.to_string(), std::path::Path::new("/")).unwrap(), location);
    }
}

#[test]
fn a_stamp_is_another_when_the_object_is() {
    let server = Server::with_bucket(BUCKET);
    let stores = stores(&server);
    stores.write(&object("a"), "one".into()).unwrap();
    let before = stores.stat(&object("a")).unwrap().stamp();
    stores.write(&object("a"), "two".into()).unwrap();
    assert_ne!(stores.stat(&object("a")).unwrap().stamp(), before);
    stores.remove(&object("a")).unwrap();
    stores.remove(&object("a")).unwrap();
    assert_eq!(stores.stat(&object("a")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn buckets_and_folders_are_no_objects() {
    let server = Server::with_bucket(BUCKET);
    for key in ["", "a/"] {
        let error = stores(&server).read(&object(key), 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsDirectory);
    }
    assert_eq!(server.count("get"), 0);
}
