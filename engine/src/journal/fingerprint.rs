//! What decides the results of a run, so that one that goes on does so with the same.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::Port;
use crate::graph::Graph;
use crate::node::Fault;

/// The nodes with the options that matter and the revision of their kinds, and the content of the files that they read
/// beside the data. How it is run (threads, queues, batch sizes, devices, workers) is not in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Map<String, Value>);

impl Fingerprint {
    /// Of a graph. Reads the files that nodes read beside the data, such as weights.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn of(graph: &Graph) -> Result<Fingerprint, Fault> {
        let (mut nodes, mut files) = (Map::new(), Map::new());
        for (node_idx, node) in graph.nodes.iter().enumerate() {
            nodes.insert(node.name.clone(), Self::of_node(graph, node_idx));
            let read = node.spec.files.iter().chain(node.spec.need.iter().flat_map(|need| &need.files));
            for file in read {
                let name = file.path.strip_prefix(&graph.base).unwrap_or(&file.path).display().to_string();
                if !files.contains_key(&name) {
                    files.insert(name, content(&file.path)?);
                }
            }
        }
        let mut all = Map::new();
        all.insert("nodes".into(), nodes.into());
        all.insert("files".into(), files.into());
        Ok(Fingerprint(all))
    }

    /// Of a graph, but for the content of files: for where these need not be.
    pub fn of_nodes(graph: &Graph) -> Fingerprint {
        let nodes = graph.nodes.iter().enumerate();
        let nodes: Map<_, _> =
            nodes.map(|(node_idx, node)| (node.name.clone(), Self::of_node(graph, node_idx))).collect();
        Fingerprint([("nodes".to_owned(), Value::Object(nodes))].into_iter().collect())
    }

    /// The same but for the content of files.
    pub fn without_files(&self) -> Fingerprint {
        let mut all = self.0.clone();
        all.remove("files");
        Fingerprint(all)
    }

    /// What decides the results of one node, but for the content of files.
    pub(super) fn of_node(graph: &Graph, node_idx: usize) -> Value {
        let node = &graph.nodes[node_idx];
        let mut with = serde_json::to_value(&node.with).unwrap_or_default();
        if let Some(options) = with.as_object_mut() {
            node.kind.incidental().iter().for_each(|option| forget(options, option));
        }
        hide(&mut with);
        let from = node.inputs.iter().map(|edge| match edge.port {
            Port::Rows => graph.nodes[edge.from].name.clone(),
            Port::Rejects => format!("{}.rejects", graph.nodes[edge.from].name),
        });
        let advice = node.advice.as_ref().map(|advice| advice.value.clone()).unwrap_or_default();
        let mut told = json!({
            "kind": node.kind.name(),
            "revision": node.kind.revision(),
            "from": from.collect::<Vec<_>>(),
            "with": with,
            "advice": advice,
        });
        // Secrets are not written down; that one has changed is no other pipeline.
        redact(graph, &mut told);
        told
    }

    /// What is other now than it was, one line each; nothing if both are the same.
    pub fn changes(&self, now: &Fingerprint) -> Vec<String> {
        let mut found = Vec::new();
        compare(&mut Vec::new(), &Value::Object(self.0.clone()), &Value::Object(now.0.clone()), &mut found);
        found
    }
}

/// Hides secrets in all texts of a value. The words of this module have none in them.
fn redact(graph: &Graph, value: &mut Value) {
    match value {
        Value::String(text) => *text = graph.redact(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(graph, item)),
        Value::Object(entries) => {
            let redacted = std::mem::take(entries).into_iter().map(|(key, mut value)| {
                redact(graph, &mut value);
                (graph.redact(&key), value)
            });
            *entries = redacted.collect();
        }
        _ => {}
    }
}

/// Takes out the option `path`, with dots where it lies in others. Those that have nothing else in them go too.
fn forget(options: &mut Map<String, Value>, path: &str) {
    let Some((first, rest)) = path.split_once('.') else {
        options.remove(path);
        return;
    };
    if let Some(Value::Object(inner)) = options.get_mut(first) {
        forget(inner, rest);
        if inner.is_empty() {
            options.remove(first);
        }
    }
}

/// Takes user and query string out of the URLs of web servers: they are secret, and what was signed anew is the same.
fn hide(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("http://") || text.starts_with("https://") => {
            let shown = text.split(['?', '#']).next().unwrap_or_default();
            let (scheme, rest) = shown.split_once("://").unwrap_or_default();
            let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = host.rsplit('@').next().unwrap_or_default();
            *text = path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"));
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Object(values) => values.values_mut().for_each(hide),
        _ => {}
    }
}

/// The length of a file and the checksum of all of it.
fn content(path: &Path) -> Result<Value, Fault> {
    let read = || -> io::Result<Value> {
        let (mut file, mut hasher, mut n_bytes) = (File::open(path)?, crc32fast::Hasher::new(), 0);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(json!({"bytes": n_bytes, "crc32": format!("{:08x}", hasher.finalize())})),
                n => {
                    hasher.update(&buffer[..n]);
                    n_bytes += n as u64;
                }
            }
        }
    };
    read().map_err(|error| Fault::io("read", path, &error))
}

fn compare(path: &mut Vec<String>, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (old, new) if old == new => {}
        // The content of a file is one thing.
        (Value::Object(old), Value::Object(new)) if !is_file(path) => {
            let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
            for key in keys {
                path.push(key.clone());
                let of = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
                compare(path, &of(old), &of(new), found);
                path.pop();
            }
        }
        (old, new) => found.push(change(path, old, new)),
    }
}

fn is_file(path: &[String]) -> bool {
    path.len() == 2 && path[0] == "files"
}

fn change(path: &[String], old: &Value, new: &Value) -> String {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match (&words[..], old, new) {
        (["files", file], Value::Null, _) => format!("`{file}` is read now"),
        (["files", file], _, Value::Null) => format!("`{file}` is not read any more"),
        (["files", file], ..) => format!("the content of `{file}` has changed"),
        (["nodes", node], Value::Null, _) => format!("node `{node}` is new"),
        (["nodes", node], _, Value::Null) => format!("node `{node}` is gone"),
        (["nodes", node, "kind"], ..) => format!("`{node}`: the kind was {old} and is {new}"),
        (["nodes", node, "revision"], ..) => format!("`{node}`: this version of flowgpu gives other results for it"),
        (["nodes", node, "from"], ..) => format!("`{node}`: `from` was {old} and is {new}"),
        (["nodes", node, "advice", ..], ..) => format!("`{node}`: what the model wants was {old} and is {new}"),
        (["nodes", node, "with", option @ ..], Value::Null, _) => {
            format!("`{node}`: `{}` is new: {new}", option.join("."))
        }
        (["nodes", node, "with", option @ ..], _, Value::Null) => {
            format!("`{node}`: `{}` was {old} and is left out", option.join("."))
        }
        (["nodes", node, "with", option @ ..], ..) => {
            format!("`{node}`: `{}` was {old} and is {new}", option.join("."))
        }
        _ => format!("{} was {old} and is {new}", words.join(".")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_and_hidden_leaves_nothing_behind() {
        let mut options = json!({"path": "x", "store": {"timeout": "5s", "attempts": 3}, "batch": 4});
        let map = options.as_object_mut().expect("options");
        for path in ["batch", "store.timeout", "store.none", "none.timeout", "path.x"] {
            forget(map, path);
        }
        assert_eq!(options, json!({"path": "x", "store": {"attempts": 3}}));
        forget(options.as_object_mut().expect("options"), "store.attempts");
        assert_eq!(options, json!({"path": "x"}));
        let mut urls =
            json!(["https://u:S3CRET@h/a/b.jpg?sig=S3CRET#x", {"at": "http://h?S3CRET"}, "s3://b/a?.jpg", "a?b"]);
        hide(&mut urls);
        assert_eq!(urls, json!(["https://h/a/b.jpg", {"at": "http://h"}, "s3://b/a?.jpg", "a?b"]));
    }

    fn of(value: Value) -> Fingerprint {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn each_change_is_one_line_that_names_node_and_option() {
        let old = of(json!({
            "nodes": {
                "pixels": {"kind": "decode.image", "revision": 1, "from": ["photos"], "with": {"resize": 256, "crop": 224}},
                "gone": {"kind": "x"},
            },
            "files": {"w.safetensors": {"bytes": 3, "crc32": "1"}, "labels.txt": {"bytes": 1, "crc32": "2"}},
        }));
        let new = of(json!({
            "nodes": {
                "pixels": {"kind": "decode.image", "revision": 2, "from": ["other"], "with": {"resize": 224, "alpha": "drop"}},
                "fresh": {"kind": "y"},
            },
            "files": {"w.safetensors": {"bytes": 3, "crc32": "7"}},
        }));
        assert_eq!(old.changes(&old), [] as [&str; 0]);
        let expected = [
            "`pixels`: this version of flowgpu gives other results for it",
            "`pixels`: `from` was [\"photos\"] and is [\"other\"]",
            "`pixels`: `resize` was 256 and is 224",
            "`pixels`: `crop` was 224 and is left out",
            "`pixels`: `alpha` is new: \"drop\"",
            "node `gone` is gone",
            "node `fresh` is new",
            "the content of `w.safetensors` has changed",
            "`labels.txt` is not read any more",
        ];
        assert_eq!(old.changes(&new), expected);
    }
}
