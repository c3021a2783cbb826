//! graph: every rendering of every example, and figures of a run.

use serde_json::Value as Json;

use crate::program::{Done, Folder, SHIPPED, done, examples};

fn graph(folder: &Folder, args: &[&str]) -> Done {
    let args: Vec<_> = ["graph"].iter().chain(args).copied().collect();
    done(folder.command(SHIPPED, &args).output().expect("the program starts"))
}

#[test]
fn every_example_has_every_rendering() {
    let folder = Folder::new();
    for file in examples() {
        let file = file.to_str().expect("UTF-8");
        let plain = graph(&folder, &[file]);
        assert_eq!(plain.code, 0, "{plain:?}");
        assert_eq!(graph(&folder, &[file, "--format", "text"]).stdout, plain.stdout);
        let begins =
            [("dot", "digraph"), ("mermaid", "flowchart"), ("svg", "<svg"), ("html", "<!doctype html"), ("json", "{")];
        for (format, begin) in begins {
            let shown = graph(&folder, &[file, "--format", format]);
            assert_eq!(shown.code, 0, "{shown:?}");
            let text = shown.stdout.to_ascii_lowercase();
            assert!(text.contains(begin), "{format} of {file} begins {:?}", text.get(..80));
            let output = format!("graph.{format}");
            assert_eq!(graph(&folder, &[file, "-o", &output]).code, 0);
            assert_eq!(folder.read(&output), shown.stdout, "the ending chooses the form");
        }
        let json = folder.json("graph.json");
        for node in json["nodes"].as_array().expect("nodes") {
            assert!(plain.stdout.contains(node["name"].as_str().expect("a name")), "{node}");
        }
    }
}

#[test]
fn an_unknown_form_lists_those_that_there_are() {
    let folder = Folder::new();
    for args in [&["p.yaml", "--format", "png"][..], &["p.yaml", "-o", "p.png"]] {
        let done = graph(&folder, args);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains("text, dot, mermaid, json, svg, html"), "{done:?}");
    }
}

#[test]
fn a_report_puts_figures_on_the_nodes() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 500}}}\n  some: {kind: transform.test_reject, with: {rows: [3, 7]}}\n  slow: {kind: transform.test_spin, with: {micros: 500}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n",
    );
    assert_eq!(folder.run(&["run", "p.yaml", "--report", "r.json"]).code, 3);
    let shown = folder.run(&["graph", "p.yaml", "--report", "r.json", "--format", "json"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let (picture, report): (Json, _) = (serde_json::from_str(&shown.stdout).expect("JSON"), folder.json("r.json"));
    for (drawn, told) in
        picture["nodes"].as_array().expect("nodes").iter().zip(report["nodes"].as_array().expect("nodes"))
    {
        assert_eq!(drawn["name"], told["name"]);
        for (figure, same) in
            [("rows_per_s", "rows_per_second"), ("busy", "busy"), ("starved", "starved"), ("rejects", "rejects")]
        {
            assert_eq!(drawn["live"][figure], told[same], "{figure} of {}", drawn["name"]);
        }
        assert_eq!(drawn["live"]["limits_run"], drawn["name"] == report["bottleneck"]["node"]);
    }
    assert_eq!(report["bottleneck"]["node"], "slow");
    let text = folder.run(&["graph", "p.yaml", "--report", "r.json"]);
    assert_ne!(text.stdout, folder.run(&["graph", "p.yaml"]).stdout);
}

#[test]
fn a_file_that_is_no_report_is_refused() {
    let folder = Folder::with_nodes(
        "  rows: {kind: source.synthetic, with: {rows: {count: 5}}}\n  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n",
    );
    folder.write("no.json", "{\"a\": 1}");
    folder.write("other.json", "{\"name\": \"other\", \"nodes\": [], \"bottleneck\": null}");
    for (report, part) in [("no.json", "is no report"), ("other.json", "`other`"), ("none.json", "none.json")] {
        let done = folder.run(&["graph", "p.yaml", "--report", report]);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains(part), "{done:?}");
    }
}
