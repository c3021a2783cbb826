//! Signed URLs in lists, tables and Parquet files.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::scene::{SIGNATURE, Scene, USER};
use crate::server::Server;

const STORE: &str = "store: {attempts: 2, timeout: 2s}";

/// URLs of which the first two are there, and some that are none.
fn urls(server: &Server) -> Vec<String> {
    server.preload("bucket", "k", 2, 20);
    let host = server.url().trim_start_matches("http://").to_owned();
    vec![
        format!("http://{USER}{host}/bucket/k000000{SIGNATURE}"),
        format!("http://{host}/bucket/k000001{SIGNATURE}"),
        format!("http://{USER}{host}/bucket/none{SIGNATURE}"),
        format!("http://{USER}127.0.0.1:1/x{SIGNATURE}"),
        format!("s3://{USER}bucket/none{SIGNATURE}"),
        format!("s4://{USER}bucket/x{SIGNATURE}"),
        format!("http://{USER}host:port/x{SIGNATURE}"),
        format!("http://{USER}[/x{SIGNATURE}"),
    ]
}

fn pipeline(source: &str) -> String {
    format!(
        "name: lists\nnodes:\n  photos: {{{source}}}\n  out: {{kind: sink.jsonl, with: {{path: out/rows.jsonl}}}}\n  \
         table: {{kind: sink.csv, from: photos, with: {{path: out/rows.csv}}}}\n"
    )
}

/// The two that are there are rows, the others rejects.
fn two_rows(scene: &Scene, server: &Server) {
    let rows = scene.place.rows("out/rows.jsonl");
    assert_eq!(rows.len(), 2, "{rows:?}");
    let text = Value::from(rows).to_string();
    for number in 0..2 {
        let url = format!("{}/bucket/k00000{number}", server.url());
        assert!(text.contains(&url), "no `{url}` in {text}");
    }
    assert_eq!(scene.place.rows("out/lists.rejects.jsonl").len(), 6);
}

#[test]
fn signed_urls_of_a_list_of_files() {
    let server = Server::with_bucket("bucket");
    let urls = urls(&server);
    let scene = Scene::new();
    scene.give("list.txt", urls.join("\n"));
    scene.give("p.yaml", pipeline(&format!("kind: source.files, with: {{manifest: list.txt, {STORE}}}")));
    scene.everything("p.yaml").expect(3);
    two_rows(&scene, &server);
    // A list that is packed cannot have them, one that is changed has others, and one that is signed itself.
    scene.give("list.txt", urls[1..].join("\n"));
    scene.flowgpu(&["run", "p.yaml"]);
    let signed = format!("{}/bucket/k000000{SIGNATURE}", server.url().replace("http://", &format!("http://{USER}")));
    scene.give("p.yaml", pipeline(&format!("kind: source.files, with: {{manifest: \"{signed}\", {STORE}}}")));
    scene.everything("p.yaml");
}

#[test]
fn signed_urls_in_tables_of_text() {
    let server = Server::with_bucket("bucket");
    let urls = urls(&server);
    let scene = Scene::new();
    let lines: Vec<_> = urls.iter().map(|url| json!({"file": url, "label": 1}).to_string()).collect();
    scene.give("t.jsonl", lines.join("\n"));
    let lines: Vec<_> = urls.iter().map(|url| format!("{url},1")).collect();
    scene.give("t.csv", format!("file,label\n{}\n", lines.join("\n")));
    for form in ["jsonl", "csv"] {
        let source = format!("kind: source.{form}, with: {{path: t.{form}, column: file, id_column: file, {STORE}}}");
        scene.give("p.yaml", pipeline(&source));
        scene.everything("p.yaml").expect(3);
        two_rows(&scene, &server);
        // Where a number is expected, and where no column is.
        let typed = source.replace("column: file, id_column: file", "types: {file: int}, carry: [file]");
        scene.give("p.yaml", pipeline(&typed));
        scene.everything("p.yaml").expect(3);
        scene.give("p.yaml", pipeline(&source.replace("column: file,", "column: nothing, carry: [none],")));
        scene.everything("p.yaml");
    }
    // Without a header the first row is taken for one; a line of JSON that is a text; a line that is too long.
    scene.give("t.csv", urls.join("\n"));
    scene.give("t.jsonl", format!("{}\n{{\"{}\": 1}}\n", json!(urls[0]), urls[0]));
    for form in ["jsonl", "csv"] {
        // What a column holds that is carried along is its owner's own: that is not looked at here.
        for options in [", column: file", ", carry: [label]", ", carry: none, max_line_bytes: 10B", ", carry: none"] {
            let source = format!("kind: source.{form}, with: {{path: t.{form}{options}, {STORE}}}");
            scene.give("p.yaml", pipeline(&source));
            scene.everything("p.yaml");
        }
    }
}

#[test]
fn signed_urls_in_parquet() {
    let server = Server::with_bucket("bucket");
    let urls = urls(&server);
    let scene = Scene::new();
    let numbers = Int64Array::from_iter_values(0..urls.len() as i64);
    let columns: [(&str, ArrayRef); 2] = [("uri", Arc::new(StringArray::from(urls))), ("number", Arc::new(numbers))];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    scene.give("t.parquet", "");
    let file = File::create(scene.place.path("t.parquet")).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a schema");
    writer.write(&batch).expect("a file");
    writer.close().expect("a file");
    let source = format!("kind: source.parquet, with: {{path: t.parquet, column: uri, carry: [number], {STORE}}}");
    scene.give("p.yaml", pipeline(&source));
    scene.everything("p.yaml").expect(3);
    let rows = scene.place.rows("out/rows.jsonl");
    assert_eq!(rows.len(), 2, "{rows:?}");
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row["id"], format!("{}/bucket/k00000{number}", server.url()));
    }
    assert_eq!(scene.place.rows("out/lists.rejects.jsonl").len(), 6);
    scene.give("p.yaml", pipeline(&source.replace("number]", "none]")));
    scene.everything("p.yaml").expect(2);
}
