//! The summary for programs.

use serde_json::{Value as Json, json};

use super::summary::{Code, Summary};

pub(super) fn json(summary: &Summary) -> Json {
    let nodes = |code: &Code| -> Vec<Json> {
        let nodes = code.nodes();
        let nodes = nodes.iter().map(|(name, node)| {
            let examples = node.examples.iter().map(|example| json!({"uri": example.uri, "message": example.message}));
            json!({
                "node": name,
                "rows": node.rows,
                "share": summary.share(node.rows),
                "examples": examples.collect::<Vec<_>>(),
            })
        });
        nodes.collect()
    };
    let codes = summary.codes();
    let codes = codes.iter().map(|(name, code)| {
        json!({"code": name, "rows": code.rows, "share": summary.share(code.rows), "nodes": nodes(code)})
    });
    let damaged = summary.damaged.iter().map(|line| json!({"file": line.file, "line": line.line, "what": line.what}));
    json!({
        "files": summary.files,
        "total": summary.total,
        "codes": codes.collect::<Vec<_>>(),
        "damaged": {"total": summary.n_damaged, "first": damaged.collect::<Vec<_>>()},
        "again": summary.again(),
    })
}
