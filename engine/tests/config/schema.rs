//! The JSON Schema of whole files, tried with a validator of its own.

use engine::config::json_schema;
use serde_json::{Value as Json, json};

use super::kinds::Kinds;
use super::parse;

fn accepted(document: &Json) -> Result<(), String> {
    let schema = json_schema(&Kinds::new());
    let validator = jsonschema::draft202012::new(&schema).expect("a valid schema");
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

fn with(kind: &str, options: Json) -> Json {
    json!({"name": "a", "nodes": {"b": {"kind": kind, "with": options}}})
}

#[test]
fn the_schema_follows_its_own_draft() {
    let schema = json_schema(&Kinds::new());
    jsonschema::meta::validate(&schema).expect("a schema by draft 2020-12");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn right_documents_pass() {
    let run = json!({"device": "cuda:0,2", "max_rejects": "5%", "threads": {"io": 2}, "queue_memory": "2GiB"});
    for document in [
        json!({"name": "a", "vars": {"v": [1]}, "run": run, "x-z": 1, "nodes": {"b": {"kind": "batch", "from": ["c", "d"],
            "with": {"size": 3, "max_wait": "50ms"}, "on_error": "fail", "ordered": false, "queue": 2}}}),
        json!({"name": "a", "run": null, "nodes": {"b": {"kind": "decode.image"}, "c": {"kind": "decode.image", "with": null}}}),
        with("batch", json!({"size": "${size}"})),
        with("batch", json!({"size": "${a}", "max_wait": "${b}s"})),
        with("infer", json!({"model": {"arch": "resnet18", "weights": "${w}/x", "seed": "${s}"}})),
        with("infer", json!({"model": "m", "normalize": {"mean": [0, "${m}", 0], "std": "${std}"}})),
        with("decode.image", json!({"resize": [1, "${h}"], "interpolation": "${i}"})),
        with("source.synthetic", json!({"images": {"count": 1, "size": [2, 3]}})),
        with("transform.scale", json!({"by": "range", "low": "${low}", "high": 1})),
        with("transform.topk", json!({"names": "${names}"})),
        json!({"name": "${n}", "nodes": {"b": {"kind": "${k}", "queue": "${q}", "ordered": "${o}", "from": "${f}"}}}),
    ] {
        assert_eq!(accepted(&document), Ok(()), "{document}");
    }
}

#[test]
fn wrong_documents_do_not() {
    for document in [
        json!({"name": "a"}),
        json!({"name": "A", "nodes": {"b": {"kind": "decode.image"}}}),
        json!({"name": "a", "nodes": {}}),
        json!({"name": "a", "nodes": {"b.c": {"kind": "decode.image"}}}),
        json!({"name": "a", "nodez": {}, "nodes": {"b": {"kind": "decode.image"}}}),
        json!({"name": "a", "run": {"devise": "cpu"}, "nodes": {"b": {"kind": "decode.image"}}}),
        json!({"name": "a", "run": {"device": "gpu"}, "nodes": {"b": {"kind": "decode.image"}}}),
        json!({"name": "a", "nodes": {"b": {"kind": "decode.imgae"}}}),
        json!({"name": "a", "nodes": {"b": {"kind": "batch"}}}),
        json!({"name": "a", "nodes": {"b": {"kind": "batch", "from": [], "with": {"size": 1}}}}),
        with("batch", json!({"size": 0})),
        with("batch", json!({"size": "big"})),
        with("batch", json!({"size": 1, "max_wait": "soon"})),
        with("batch", json!({"size": 1, "sise": 1})),
        with("infer", json!({"model": {"arch": "resnet", "weights": "w"}})),
        with("infer", json!({"model": {"arch": "resnet18"}})),
        with("transform.scale", json!({"by": "magic"})),
        with("transform.topk", json!({"k": 1001})),
        with("source.synthetic", json!({"images": {"count": 1, "size": [2, 3]}, "surplus": 1})),
    ] {
        assert!(accepted(&document).is_err(), "{document}");
    }
}

#[test]
fn editors_find_the_texts_of_keys_and_options() {
    let schema = json_schema(&Kinds::new());
    assert_eq!(schema["$defs"]["batch"]["properties"]["size"]["description"], "Rows in a batch.");
    assert!(schema["properties"]["nodes"]["description"].is_string());
    assert!(schema["$defs"]["run"]["properties"]["device"]["description"].is_string());
    assert!(schema["$defs"]["node"]["properties"]["from"]["description"].is_string());
}

/// What the schema refuses for its types, the checker refuses too, and the other way round.
#[test]
fn schema_and_checker_agree() {
    for (options, right) in [
        (json!({"size": 32}), true),
        (json!({"size": 0}), false),
        (json!({"size": 1.5}), false),
        (json!({"size": "x"}), false),
        (json!({"size": 5, "max_wait": "5 parsecs"}), false),
        (json!({"size": 5, "max_wait": "1.5s"}), true),
        (json!({"size": 5, "max_wait": null}), true),
        (json!({"size": null}), false),
        (json!({"size": [1]}), false),
    ] {
        let document = with("batch", options);
        assert_eq!(accepted(&document).is_ok(), right, "{document}");
        assert_eq!(parse(&document.to_string()).is_ok(), right, "{document}");
    }
}
