//! Folders without weights, with too many, and indexes that name what they should not.

use std::fs;

use nodes::weights::open;

use crate::made::committed;

fn folder_of(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn folder_refused(files: &[(&str, &[u8])], expected: &str) {
    let folder = folder_of(files);
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}\nlacks: {expected}");
}

#[test]
fn a_folder_without_weights_lists_what_was_looked_for() {
    folder_refused(
        &[("config.json", b"{}"), ("README.md", b"")],
        "has no weight file: looked for `model.safetensors`, `model.safetensors.index.json`, `pytorch_model.bin`, \
         `pytorch_model.bin.index.json`, then for one of `*.safetensors`, `*.pth`, `*.pt`, `*.bin`; found `README.md`, `config.json`",
    );
    folder_refused(
        &[("b.pth", b""), ("a.safetensors", b"")],
        "has several weight files: `a.safetensors`, `b.pth`; name the one you mean",
    );
}

#[test]
fn an_index_may_only_name_files_beside_it() {
    let index = |map: &str| format!(r#"{{"weight_map": {map}}}"#).into_bytes();
    let refused =
        |map: &str, expected: &str| folder_refused(&[("model.safetensors.index.json", &index(map))], expected);
    refused(
        r#"{"w": "../../etc/passwd"}"#,
        "names the file `../../etc/passwd` for tensor `w`; it must lie beside the index",
    );
    refused(r#"{"w": "/etc/passwd"}"#, "it must lie beside the index");
    refused(r#"{"w": ".."}"#, "it must lie beside the index");
    refused(r#"{"w": ""}"#, "it must lie beside the index");
    refused(r#"{"w": "a.safetensors"}"#, "a.safetensors` does not exist");
    refused(r#"{"w": 3}"#, "the index is not valid");
    refused("{}", "holds no tensors");
    let shard = fs::read(committed("weights.safetensors")).unwrap();
    let map = index(r#"{"fc.weight": "a.safetensors", "fc.wieght": "a.safetensors"}"#);
    folder_refused(
        &[("model.safetensors.index.json", &map), ("a.safetensors", &shard)],
        "the index says that tensor `fc.wieght` is in `a.safetensors`, and it is not",
    );
}
