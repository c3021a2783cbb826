//! Keys that no path has.

use crate::scene::{BUCKET, RUN, pictures, pipeline, rejects, run};
use crate::server::Server;

#[test]
fn a_key_that_cannot_be_named_is_one_reject_that_shows_it() {
    let server = Server::with_bucket(BUCKET);
    server.fill(BUCKET, "in/", ".jpg", 3, &pictures());
    for key in ["in//twice.jpg", "in/../up.jpg", "in/a&b.jpg", "in/000001//x.jpg"] {
        server.put(BUCKET, key, &pictures()[0]);
    }
    let folder = pipeline(
        &server,
        "  photos: {kind: source.files, with: {path: 's3://bucket/in/**', {store}}}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
",
    );
    let done = run(&folder, &RUN);
    assert_eq!(done.code, 3, "{done:?}");
    let unnamed = ["s3://bucket/in/../up.jpg", "s3://bucket/in//twice.jpg", "s3://bucket/in/000001//x.jpg"];
    let expected: Vec<_> = unnamed.iter().map(|uri| ((*uri).to_owned(), "unsupported".to_owned())).collect();
    let mut found = rejects(&folder);
    found.sort();
    let mut sorted = expected.clone();
    sorted.sort();
    assert_eq!(found, sorted);
    let message = folder.rows("p.rejects.jsonl")[0]["message"].as_str().expect("a text").to_owned();
    assert!(message.contains("cannot be named") && message.contains("`s3://bucket/in/"), "{message}");
    let uris: Vec<_> = folder.rows("out.jsonl").iter().map(|row| row["uri"].clone()).collect();
    assert_eq!(
        uris,
        ["000000.jpg", "000001.jpg", "000002.jpg", "a&b.jpg"].map(|name| format!("s3://bucket/in/{name}"))
    );
}
