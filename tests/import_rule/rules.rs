//! The rules: which code may name which, where `unsafe` may stand, and no `unwrap` outside of tests.

use crate::source::Source;

/// The engine's modules; each may name only itself and those before it.
pub const ENGINE_ORDER: [&str; 9] =
    ["data", "node", "durable", "config", "graph", "schedule", "worker", "journal", "runtime"];

/// The only files in which `unsafe` may stand. Each is named in ARCHITECTURE.md.
pub const UNSAFE_FILES: [&str; 14] = [
    "engine/src/worker/arena.rs",
    "nodes/src/cuda/device.rs",
    "nodes/src/cuda/host_memory.rs",
    "nodes/src/cuda/ops.rs",
    "nodes/src/cuda/slot.rs",
    "nodes/src/cuda/streams.rs",
    "nodes/src/decode/codec/jpeg/kernel.rs",
    "nodes/src/decode/resample_kernel.rs",
    "nodes/src/models/layers/kernel.rs",
    "nodes/src/onnx/call.rs",
    "nodes/src/weights/freed.rs",
    "nodes/src/weights/mapped.rs",
    "tests/fuzz/memory.rs",
    "tests/nvml/src/symbols.rs",
];

/// Crate names that the sources under a folder must not name.
pub const FORBIDDEN_CRATES: [(&str, &[&str]); 3] = [
    (
        "engine/src/",
        &[
            "nodes",
            "flowgpu_nodes",
            "flowgpu",
            "candle_core",
            "candle_nn",
            "image",
            "clap",
            "clap_complete",
            "arrow_array",
            "arrow_schema",
            "object_store",
            "ort",
            "parquet",
            "prost",
            "reqwest",
            "tokio",
        ],
    ),
    ("nodes/src/", &["flowgpu", "petgraph", "clap", "clap_complete"]),
    (
        "cli/",
        &[
            "candle_core",
            "candle_nn",
            "image",
            "petgraph",
            "arrow_array",
            "arrow_schema",
            "object_store",
            "ort",
            "parquet",
            "prost",
            "reqwest",
            "tokio",
        ],
    ),
];

/// Packages that a manifest must not list under `[dependencies]`.
pub const FORBIDDEN_PACKAGES: [(&str, &[&str]); 3] = [
    (
        "engine/Cargo.toml",
        &[
            "nodes",
            "candle-core",
            "candle-nn",
            "image",
            "clap",
            "clap_complete",
            "arrow-array",
            "arrow-schema",
            "object-store",
            "parquet",
            "reqwest",
            "tokio",
        ],
    ),
    ("nodes/Cargo.toml", &["petgraph", "clap", "clap_complete"]),
    (
        "Cargo.toml",
        &[
            "candle-core",
            "candle-nn",
            "image",
            "petgraph",
            "arrow-array",
            "arrow-schema",
            "object-store",
            "parquet",
            "reqwest",
            "tokio",
        ],
    ),
];

const GRAPH: &str = "engine/src/graph/";

/// Every breach in one source file, as `file:line: what is wrong`.
pub fn breaches(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut report = |line: usize, what: String| found.push(format!("{}:{line}: {what}", source.file));
    let module = source.module();
    for path in source.paths() {
        let first = path.segments[0].as_str();
        for (_, forbidden) in FORBIDDEN_CRATES.iter().filter(|(folder, _)| source.file.starts_with(folder)) {
            if forbidden.contains(&first) {
                report(path.line, format!("names the crate `{first}`"));
            }
        }
        if first == "petgraph" && source.file.starts_with("engine/src/") && !source.file.starts_with(GRAPH) {
            report(path.line, "names `petgraph` outside of `graph/`".into());
        }
        if first == "crate" && source.file.starts_with("engine/src/") {
            let place =
                |name: Option<&String>| ENGINE_ORDER.iter().position(|known| name.is_some_and(|name| name == known));
            if let (Some(here), Some(there)) = (place(module.first()), place(path.segments.get(1)))
                && there > here
            {
                report(
                    path.line,
                    format!("`{}` names `{}`, which comes after it", ENGINE_ORDER[here], ENGINE_ORDER[there]),
                );
            }
        }
    }
    for line in unsafe_lines(source) {
        report(line, "`unsafe` in a file that is not on the list".into());
    }
    for line in unwrap_lines(source) {
        report(line, "`unwrap()` outside of tests: return an error, or `expect` with the proof".into());
    }
    for (line, name) in leaked_petgraph(source) {
        report(line, format!("`{name}` of petgraph in what `graph/` shows to others"));
    }
    found
}

/// Every forbidden package in one manifest's `[dependencies]`.
pub fn manifest_breaches(file: &str, text: &str) -> Vec<String> {
    let forbidden =
        FORBIDDEN_PACKAGES.iter().find(|(manifest, _)| *manifest == file).map_or(&[][..], |(_, packages)| packages);
    let mut in_dependencies = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(table) = line.trim().strip_prefix('[') {
            let table = table.trim_end_matches(']');
            in_dependencies =
                table == "dependencies" || (table.starts_with("target.") && table.ends_with(".dependencies"));
            continue;
        }
        let package = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if in_dependencies && forbidden.contains(&package) {
            found.push(format!("{file}:{}: depends on `{package}`", index + 1));
        }
    }
    found
}

fn unsafe_lines(source: &Source) -> Vec<usize> {
    if UNSAFE_FILES.contains(&source.file.as_str()) {
        return Vec::new();
    }
    source.tokens.iter().filter(|token| token.text == "unsafe").map(|token| token.line).collect()
}

fn unwrap_lines(source: &Source) -> Vec<usize> {
    let shipped = source.file.contains("/src/") || source.file.starts_with("cli/");
    if !shipped || source.file.ends_with("/tests.rs") || source.file.contains("/tests/") {
        return Vec::new();
    }
    let is_unwrap = |at: usize| source.text(at) == "." && source.text(at + 1) == "unwrap" && source.text(at + 2) == "(";
    let places = source.places.iter().enumerate();
    places
        .filter(|(at, place)| is_unwrap(*at) && !place.is_test && !place.is_const)
        .map(|(at, _)| source.tokens[at].line)
        .collect()
}

/// Names imported from petgraph that stand in a signature or field that code outside of `graph/` can see.
fn leaked_petgraph(source: &Source) -> Vec<(usize, String)> {
    if !source.file.starts_with(GRAPH) {
        return Vec::new();
    }
    let paths = source.paths();
    let imported = paths.iter().filter(|path| path.segments[0] == "petgraph").filter_map(|path| path.segments.last());
    let names: Vec<&str> = imported.map(String::as_str).chain(["petgraph"]).collect();
    let mut found = Vec::new();
    for at in (0..source.tokens.len()).filter(|at| source.text(*at) == "pub") {
        let Some(start) = visible_from(source, at) else {
            continue;
        };
        for token in signature(source, start) {
            if names.contains(&token.text.as_str()) {
                found.push((token.line, token.text.clone()));
            }
        }
    }
    found
}

/// The token behind `pub` or `pub(…)`, unless the visibility ends within `graph/`.
fn visible_from(source: &Source, at: usize) -> Option<usize> {
    if source.text(at + 1) != "(" {
        return Some(at + 1);
    }
    let is_root = source.file == "engine/src/graph/mod.rs";
    match source.text(at + 2) {
        "crate" => Some(at + 4),
        "super" if is_root => Some(at + 4),
        "super" | "self" | "in" => None,
        // `pub (A, B)`: a field of a tuple type.
        _ => Some(at + 1),
    }
}

/// From `start` to the body, the value or the end of the item or field.
fn signature(source: &Source, start: usize) -> &[crate::tokens::Token] {
    let is_type = matches!(source.text(start), "struct" | "enum" | "union" | "trait" | "mod");
    let mut depth = 0usize;
    let mut at = start;
    while at < source.tokens.len() {
        match source.text(at) {
            "(" | "[" if is_type => break,
            "(" | "[" => depth += 1,
            ")" | "]" if depth == 0 => break,
            ")" | "]" => depth -= 1,
            "{" if source.text(start) != "use" => break,
            ";" | "}" => break,
            "," | "=" if depth == 0 && !matches!(source.text(start), "use" | "type" | "fn") => {
                break;
            }
            _ => {}
        }
        at += 1;
    }
    &source.tokens[start..at]
}
