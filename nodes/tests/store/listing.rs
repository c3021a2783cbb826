//! Listing, page by page.

use std::collections::BTreeSet;

use nodes::store::{ErrorKind, Location, Page, StoreError};
use serde_json::json;

use crate::scene::{BUCKET, object, stores};
use crate::server::Server;

fn keys(page: &Page) -> Vec<String> {
    page.iter().map(|(location, _)| location.key().into_owned()).collect()
}

#[test]
fn a_thousand_objects_are_listed_in_order_and_read() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k/", 1000, 100);
    server.preload(BUCKET, "other/", 3, 100);
    let stores = stores(&server);
    let pages: Result<Vec<Page>, StoreError> = stores.list(&object("k/")).unwrap().collect();
    let objects: Page = pages.unwrap().concat();
    let expected: Vec<String> = (0..1000).map(|number| format!("k/{number:06}")).collect();
    assert_eq!(keys(&objects), expected);
    let objects: Vec<_> = objects.into_iter().enumerate().collect();
    std::thread::scope(|scope| {
        for some in objects.chunks(100) {
            let stores = &stores;
            scope.spawn(move || {
                for (number, (location, listed)) in some {
                    let (bytes, meta) = stores.read(location, 1000).unwrap();
                    assert_eq!(bytes, format!("{number:.<100}"));
                    assert_eq!(meta.stamp(), listed.stamp());
                }
            });
        }
    });
    let standing = stores.standing(&object("k/")).unwrap();
    assert_eq!((standing.in_flight, standing.n_pauses), (0, 0));
}

#[test]
fn a_page_is_asked_for_when_it_is_wanted_and_not_before() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k/", 100_000, 10);
    let stores = stores(&server);
    let mut pages = stores.list(&object("k/")).unwrap();
    assert_eq!(server.count("list"), 0);
    let first = pages.next().unwrap().unwrap();
    assert_eq!((first.len(), server.count("list")), (1000, 1));
    assert_eq!(first[999].0, object("k/000999"));
    let second = pages.next().unwrap().unwrap();
    assert_eq!((second[0].0.clone(), server.count("list")), (object("k/001000"), 2));
    let mut later = stores.list_after(&object("k/"), &object("k/099997")).unwrap();
    assert_eq!(keys(&later.next().unwrap().unwrap()), ["k/099998", "k/099999"]);
    assert!(later.next().is_none());
    assert_eq!(server.count("list"), 3);
}

#[test]
fn a_prefix_need_not_end_at_a_slash() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "a/img", 2, 10);
    server.preload(BUCKET, "a/x", 1, 10);
    let stores = stores(&server);
    let listed = |prefix: &str| -> Vec<String> {
        stores.list(&object(prefix)).unwrap().flat_map(|page| keys(&page.unwrap())).collect()
    };
    assert_eq!(listed("a/i"), ["a/img000000", "a/img000001"]);
    assert_eq!(listed(""), ["a/img000000", "a/img000001", "a/x000000"]);
    assert_eq!(listed("b"), Vec::<String>::new());
}

#[test]
fn folders_that_consoles_make_are_no_objects() {
    let server = Server::with_bucket(BUCKET);
    server.empty_object(BUCKET, "a/");
    server.empty_object(BUCKET, "a/b/");
    server.preload(BUCKET, "a/b/", 1, 10);
    server.empty_object(BUCKET, "a/c/");
    server.empty_object(BUCKET, "a/d");
    let pages = stores(&server).list(&object("a/")).unwrap();
    let listed: Vec<String> = pages.flat_map(|page| keys(&page.unwrap())).collect();
    assert_eq!(listed, ["a/b/000000", "a/d"]);
}

#[test]
fn a_listing_that_fails_is_gone_on_with_and_its_pages_are_not_lost() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k/", 2500, 10);
    server.fault(json!({"on": "list", "do": "status", "status": 503, "times": 1}));
    let stores = stores(&server);
    let mut pages = stores.list(&object("k/")).unwrap();
    let mut seen: Vec<String> = keys(&pages.next().unwrap().unwrap());
    server.fault(json!({"on": "list", "do": "reset", "times": 1}));
    seen.extend(pages.flat_map(|page| keys(&page.unwrap())));
    assert_eq!(seen.len(), 2500);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 2500);
    assert_eq!(server.count("list"), 5);
}

#[test]
fn a_bucket_that_does_not_exist_is_an_error_and_then_the_end() {
    let server = Server::start();
    let mut pages = stores(&server).list(&object("k/")).unwrap();
    let error = pages.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        "cannot list `s3://photos/k/`: the bucket does not exist: NoSuchBucket: The specified bucket does not exist"
    );
    assert!(pages.next().is_none());
}

#[test]
fn a_web_server_has_no_listing() {
    let server = Server::start();
    let location = Location::parse("http://127.0.0.1:1/d/?sig=S3CRET", std::path::Path::new("/")).unwrap();
    let error = stores(&server).list(&location).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.to_string(), "`http://127.0.0.1:1/d/` cannot be listed: a web server has no listing");
    assert!(error.what_to_do().is_some_and(|help| help.contains("manifest")));
}
