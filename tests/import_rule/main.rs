//! The import rule of ARCHITECTURE.md, held by reading the sources: `cli → nodes → engine`; inside the engine each module
//! names only those before it; candle and image only in `nodes`; petgraph only in `engine/src/graph`; clap only in `cli`;
//! `unsafe` only in listed files; no `unwrap()` outside of tests.

mod rules;
mod source;
mod tokens;

use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("the checkout can be listed").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_source_file_keeps_the_rules() {
    let mut files = Vec::new();
    for folder in ["cli", "engine", "nodes", "tests", "benches"] {
        rust_files(&root().join(folder), &mut files);
    }
    files.sort();
    assert!(files.len() > 10, "the sources were not found: {files:?}");
    let mut breaches = Vec::new();
    for path in &files {
        let file = path.strip_prefix(root()).expect("found under the root").to_str().expect("our names are UTF-8");
        let text = fs::read_to_string(path).expect("our sources are UTF-8");
        breaches.extend(rules::breaches(&Source::new(file, &text)));
    }
    assert!(breaches.is_empty(), "{} breaches:\n{}", breaches.len(), breaches.join("\n"));
}

#[test]
fn every_manifest_keeps_the_rules() {
    for (file, _) in rules::FORBIDDEN_PACKAGES {
        let text = fs::read_to_string(root().join(file)).expect("the manifest is there");
        let breaches = rules::manifest_breaches(file, &text);
        assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    }
}

/// The lines at which `text`, put at `file`, breaks a rule.
fn check(file: &str, text: &str, expected: &[&str]) {
    let found = rules::breaches(&Source::new(file, text));
    let expected: Vec<String> = expected.iter().map(|rest| format!("{file}:{rest}")).collect();
    assert_eq!(found, expected, "\nin:\n{text}");
}

#[test]
fn a_module_may_not_name_a_later_one() {
    let later = "`data` names `graph`, which comes after it";
    check("engine/src/data/batch.rs", "use crate::graph::Graph;", &[&format!("1: {later}")]);
    check("engine/src/data/batch.rs", "\nuse super::super::graph::Graph;", &[&format!("2: {later}")]);
    check("engine/src/data/mod.rs", "use super::graph;", &[&format!("1: {later}")]);
    check(
        "engine/src/data/mod.rs",
        "use crate::{data::Batch, graph::{Graph, Edge}};",
        &[&format!("1: {later}"), &format!("1: {later}")],
    );
    check("engine/src/data/mod.rs", "fn f() -> crate::graph::Graph { g() }", &[&format!("1: {later}")]);
    check("engine/src/data/mod.rs", "mod tests { use super::super::graph::Graph; }", &[&format!("1: {later}")]);
    check(
        "engine/src/worker/link.rs",
        "use crate::runtime as r;",
        &["1: `worker` names `runtime`, which comes after it"],
    );
}

#[test]
fn a_module_may_name_itself_and_earlier_ones() {
    check(
        "engine/src/graph/node.rs",
        "use crate::data::Batch; use super::edge; use crate::graph::x; use crate::config;",
        &[],
    );
    check("engine/src/data/mod.rs", "mod tests { use super::graph; } // use crate::graph", &[]);
    check(
        "engine/src/data/mod.rs",
        "const S: &str = \"use crate::graph::x\"; const T: &str = r#\"crate::graph::\"x\"#;",
        &[],
    );
    check("engine/src/lib.rs", "pub mod runtime; pub use crate::runtime::Running;", &[]);
    check("engine/src/data/mod.rs", "/* crate::graph::X /* nested */ */ fn f<'a>(x: &'a str) -> char { '\"' }", &[]);
}

#[test]
fn crates_stay_where_they_belong() {
    check("engine/src/data/mod.rs", "use candle_core::Tensor;", &["1: names the crate `candle_core`"]);
    check("engine/src/node/mod.rs", "fn f(x: image::RgbImage) {}", &["1: names the crate `image`"]);
    check("engine/src/node/mod.rs", "fn f(image: &Pixels) { image.len(); data::image::x() }", &[]);
    check("engine/src/node/mod.rs", "extern crate clap;", &["1: names the crate `clap`"]);
    check(
        "engine/src/schedule/plan.rs",
        "use petgraph::graph::NodeIndex;",
        &["1: names `petgraph` outside of `graph/`"],
    );
    check("nodes/src/sink/csv.rs", "use clap::Parser;", &["1: names the crate `clap`"]);
    check("nodes/src/decode/image.rs", "use image::DynamicImage; use engine::data::Batch;", &[]);
    check("cli/progress.rs", "use image::RgbImage;", &["1: names the crate `image`"]);
}

#[test]
fn petgraph_does_not_leave_the_graph() {
    let imports = "use petgraph::graph::{DiGraph, NodeIndex};\n";
    let leak =
        |rest: &str, expected: &[&str]| check("engine/src/graph/graph.rs", &format!("{imports}{rest}"), expected);
    leak("pub fn index(&self) -> NodeIndex {}", &["2: `NodeIndex` of petgraph in what `graph/` shows to others"]);
    leak(
        "pub struct Graph { pub(crate) dag: DiGraph<Node, Edge> }",
        &["2: `DiGraph` of petgraph in what `graph/` shows to others"],
    );
    leak(
        "pub use petgraph::Direction;",
        &["2: `petgraph` of petgraph in what `graph/` shows to others"]
            .iter()
            .chain(&["2: `Direction` of petgraph in what `graph/` shows to others"])
            .copied()
            .collect::<Vec<_>>(),
    );
    leak(
        "pub struct Graph { dag: DiGraph<Node, Edge> }\nimpl Graph { pub fn len(&self) -> usize { NodeIndex::new(0) } }",
        &[],
    );
    leak("pub struct Graph(DiGraph<Node, Edge>);\npub(super) fn dag(g: &Graph) -> &DiGraph<Node, Edge> {}", &[]);
}

#[test]
fn unsafe_stands_only_in_the_listed_files() {
    let text = "fn f() { unsafe { g() } }";
    check("engine/src/data/mod.rs", text, &["1: `unsafe` in a file that is not on the list"]);
    check("nodes/src/weights/mapped.rs", text, &[]);
    check("nodes/src/weights/pickle.rs", "// unsafe\nconst S: &str = \"unsafe\";", &[]);
}

#[test]
fn unwrap_stands_only_in_tests() {
    let breach = "`unwrap()` outside of tests: return an error, or `expect` with the proof";
    check("cli/main.rs", "fn f() {\n g().unwrap() }", &[&format!("2: {breach}")]);
    check(
        "cli/main.rs",
        "#[cfg(test)]\nmod tests { fn f() { g().unwrap() } }\nfn h() { g().unwrap() }",
        &[&format!("3: {breach}")],
    );
    check("cli/main.rs", "#[cfg(test)]\nuse x::y;\nfn h() { g().unwrap() }", &[&format!("3: {breach}")]);
    check("cli/main.rs", "#[test]\nfn f() { g().unwrap() }", &[]);
    check("cli/main.rs", "#[cfg(not(test))]\nfn f() { g().unwrap() }", &[&format!("2: {breach}")]);
    check("tests/run.rs", "fn f() { g().unwrap() }", &[]);
    check("cli/main.rs", "fn f() { g().unwrap_or(0) }", &[]);
    check("cli/main.rs", "fn f() { const { g().unwrap() } }", &[]);
}

#[test]
fn manifests_may_not_list_what_their_sources_may_not_name() {
    let text = "[package]\nimage = 1\n[dependencies]\nengine.workspace = true\ncandle-core.workspace = true\n[dev-dependencies]\nimage = \"1\"\n";
    assert_eq!(rules::manifest_breaches("engine/Cargo.toml", text), ["engine/Cargo.toml:5: depends on `candle-core`"]);
    assert_eq!(rules::manifest_breaches("nodes/Cargo.toml", text), [""; 0]);
}
