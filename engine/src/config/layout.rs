//! The keys of a pipeline file, each with what it is for: for checking, and for the schema that editors read.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use super::RunOptions;

/// The whole file. What is below `run` and `nodes` has schemas of its own.
pub(super) static FILE: LazyLock<Json> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Names the pipeline, and each run of it."},
            "vars": {
                "type": ["object", "null"],
                "description": "Values to refer to as `${name}`; `--set name=value` puts others in their place.",
            },
            "run": {"type": ["object", "null"], "description": "How the pipeline is run."},
            "nodes": {"type": "object", "minProperties": 1, "description": "The nodes by name, in their order."},
        },
        "required": ["name", "nodes"],
        "additionalProperties": false,
    })
});

/// What may stand beside a node's name.
pub(super) static NODE: LazyLock<Json> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "kind": {"type": "string", "description": "What the node does, such as `decode.image`."},
            "from": {
                "anyOf": [
                    {"type": "string", "title": "a node's name"},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1, "title": "a list of names"},
                ],
                "description": "The node or nodes that it reads, `name.rejects` for a node's rejects; \
                    left out, the node written just above.",
            },
            "with": {"type": ["object", "null"], "description": "The options of the kind."},
            "on_error": {
                "enum": ["reject", "fail"],
                "description": "Whether a row that cannot be handled leaves as a reject, or ends the run.",
                "default": "reject",
            },
            "ordered": {
                "type": "boolean",
                "description": "Whether rows leave in the order in which they came.",
                "default": true,
            },
            "queue": {
                "type": "integer",
                "minimum": 1,
                "maximum": 65536,
                "description": "How many batches may wait before the node.",
            },
        },
        "required": ["kind"],
        "additionalProperties": false,
    })
});

/// What may stand in `run`.
pub(super) static RUN: LazyLock<Json> = LazyLock::new(|| schemars::schema_for!(RunOptions).to_value());

/// Names of pipelines, as a pattern.
pub(super) const PIPELINE_NAME: &str = "^[a-z0-9-]{1,64}$";

/// Names of nodes, as a pattern.
pub(super) const NODE_NAME: &str = "^[a-z0-9_-]{1,64}$";
