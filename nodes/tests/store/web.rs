//! Web servers.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nodes::store::{Environment, ErrorKind, Location, StoreOptions, Stores};
use serde_json::json;

use crate::scene::{BUCKET, KEYS, child, noise, object, variable};
use crate::server::Server;

/// Python's own web server, which knows no ranges.
struct PlainServer {
    child: Child,
    url: String,
}

impl PlainServer {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new("python3");
        command.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]).current_dir(folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("port ").nth(1).unwrap().split_whitespace().next().unwrap();
        PlainServer { url: format!("http://127.0.0.1:{port}"), child }
    }
}

impl Drop for PlainServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stores() -> Stores {
    Stores::with_environment(StoreOptions::default(), Environment::default())
}

fn at(url: String) -> Location {
    Location::parse(&url, Path::new("/")).unwrap()
}

#[test]
fn files_of_a_plain_web_server_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let content = noise(9_000_000);
    std::fs::write(folder.path().join("a b.bin"), &content).unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    let server = PlainServer::start(folder.path());
    let (stores, location) = (stores(), at(format!("{}/a%20b.bin", server.url)));
    let (bytes, meta) = stores.read(&location, 10_000_000).unwrap();
    assert!(bytes == content);
    assert_eq!(meta.size, 9_000_000);
    assert_eq!(stores.stat(&location).unwrap().stamp(), meta.stamp());
    assert!(stores.read_range(&location, 5_000_000..5_000_100).unwrap() == content[5_000_000..5_000_100]);
    let mut streamed = Vec::new();
    stores.open(&location, 1_000).unwrap().read_to_end(&mut streamed).unwrap();
    assert!(streamed == content[1_000..]);
    assert_eq!(stores.read(&location, 8_999_999).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(stores.read(&at(format!("{}/none", server.url)), 10).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(stores.read(&at(format!("{}/empty", server.url)), 10).unwrap().0, "");
    let error = stores.write(&location, "x".into()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_web_server_with_ranges_is_read_in_parts_and_again_where_it_breaks() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k", 1, 10 << 20);
    let (stores, location) = (stores(), at(format!("{}/photos/k000000", server.url())));
    let (content, meta) = stores.read(&location, 100 << 20).unwrap();
    assert_eq!(meta.size, 10 << 20);
    server.forget();
    server.fault(json!({"on": "get", "do": "status", "status": 503, "retry_after": "0", "times": 1}));
    server.fault(json!({"on": "get", "do": "cut", "after": 0, "times": 1}));
    server.fault(json!({"on": "get", "do": "cut", "after": 1 << 20, "times": 2}));
    let mut streamed = Vec::new();
    stores.open(&location, 5).unwrap().read_to_end(&mut streamed).unwrap();
    assert!(streamed == content[5..]);
    // One was refused, one asked for the size and needed no body, three were for parts and two for the rest of a part.
    assert_eq!(server.count("get"), 7);
    assert_eq!(server.count("head"), 0);
}

#[test]
fn redirects_are_followed_and_not_for_ever() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k", 1, 10);
    let target = format!("{}/photos/k000000", server.url());
    let location = at(format!("{}/photos/old", server.url()));
    server.fault(json!({"key": "/old", "do": "redirect", "to": target, "times": 1}));
    assert_eq!(stores().read(&location, 100).unwrap().0, "0.........");
    server.fault(json!({"key": "/old", "do": "redirect", "to": "/photos/old", "times": 99}));
    let error = stores().read(&location, 100).unwrap_err();
    assert!(error.to_string().contains("redirects too often"), "{error}");
}

#[test]
fn query_strings_and_passwords_are_sent_and_not_shown() {
    let server = Server::with_bucket(BUCKET);
    let host = server.url().replace("http://", "http://user:S3CRET@");
    for status in [403, 404, 500] {
        server.forget();
        server.fault(json!({"do": "status", "status": status, "times": 9}));
        let options = StoreOptions { attempts: 1.try_into().unwrap(), ..StoreOptions::default() };
        let stores = Stores::with_environment(options, Environment::default());
        let location = at(format!("{host}/photos/k?X-Amz-Signature=S3CRET&token=S3CRET"));
        let error = stores.read(&location, 10).unwrap_err();
        assert!(!format!("{error:?} {location:?}").contains("S3CRET"), "{error:?}");
        assert!(error.to_string().contains(&format!("{}/photos/k`", server.url())), "{error}");
    }
}

#[test]
fn plain_http_needs_no_certificates() {
    let server = Server::with_bucket(BUCKET);
    server.preload(BUCKET, "k", 1, 10);
    let url = server.url();
    let variables = [("SSL_CERT_FILE", "/nowhere"), ("SSL_CERT_DIR", "/nowhere"), ("STORE_SERVER", &url)];
    let child = child("web::reads_for_a_parent_that_hides_the_certificates", &variables).output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

#[test]
#[ignore = "run by another test"]
fn reads_for_a_parent_that_hides_the_certificates() {
    let options = StoreOptions { endpoint: Some(variable("STORE_SERVER")), ..StoreOptions::default() };
    let stores = Stores::with_environment(options, Environment::of(KEYS));
    for location in [at(format!("{}/photos/k000000", variable("STORE_SERVER"))), object("k000000")] {
        assert_eq!(stores.read(&location, 100).unwrap().0, "0.........");
    }
    assert!(reqwest::Client::builder().build().is_err(), "the certificates are not hidden");
}
