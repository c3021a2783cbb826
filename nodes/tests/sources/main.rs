//! Tars and Parquet files that the libraries write which people use, read by the sources here: equal keys, bytes, labels,
//! captions and order. The libraries are installed where nobody else sees them, by `scripts/python_env.py`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::data::Column;
use engine::node::NodeKind;
use engine::node::harness::Harness;
use nodes::source::parquet::Parquet;
use nodes::source::webdataset::Webdataset;
use serde_json::Value;

/// A folder with all files, and what is in them.
fn written() -> (tempfile::TempDir, Value) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources");
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/python_env.py");
    let made = Command::new("python3").arg(environment).arg(here.join("requirements.txt")).output().expect("python3");
    assert!(
        made.status.success(),
        "{}{}",
        String::from_utf8_lossy(&made.stdout),
        String::from_utf8_lossy(&made.stderr)
    );
    let python = PathBuf::from(String::from_utf8(made.stdout).expect("a path").trim());
    let folder = tempfile::tempdir().expect("a folder");
    let home = tempfile::tempdir().expect("a folder");
    let run = Command::new(python)
        .arg(here.join("make.py"))
        .arg(folder.path())
        .env("HF_HOME", home.path())
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("the interpreter");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let expected = fs::read(folder.path().join("expected.json")).expect("what is expected");
    (folder, serde_json::from_slice(&expected).expect("JSON"))
}

/// What a source makes of a file: rows as `make.py` notes them, but for their bytes, which are given as they are.
fn rows<K: NodeKind>(base: &Path, with: &str) -> Vec<(String, Vec<u8>, i64, String)> {
    let source = Harness::new::<K>(with, vec![]).in_folder(base);
    let names: Vec<_> = source.spec().expect("a spec").outputs.iter().map(|output| output.field.name.clone()).collect();
    let place = |name: &str| names.iter().position(|found| **found == *name).expect("a column");
    let mut rows = Vec::new();
    for (number, item) in source.items(10).expect("items").iter().enumerate() {
        let mapped = source.unpack(number as u64, item, 0);
        assert!(mapped.rejects.is_empty(), "{with}: {:?}", mapped.rejects);
        let [ids, bytes, labels, captions] =
            ["id", "bytes", "label", "caption"].map(|name| &mapped.columns[place(name)]);
        let (Column::Text(ids), Column::Bytes(bytes)) = (ids, bytes) else { panic!("other types") };
        let (Column::Int(labels), Column::Text(captions)) = (labels, captions) else { panic!("other types") };
        rows.extend((0..mapped.passed.len()).map(|row| {
            let (id, caption) = (ids.get(row).to_owned(), captions.get(row).to_owned());
            (id, bytes.values()[row].to_vec(), labels.values()[row], caption)
        }));
    }
    rows
}

#[test]
fn what_people_s_libraries_write_is_read_as_it_was_meant() {
    let (folder, expected) = written();
    let files = expected.as_object().expect("files");
    assert_eq!(files.len(), 12, "{:?}", files.keys());
    for (name, expected) in files {
        let found = if name.ends_with(".parquet") {
            rows::<Parquet>(folder.path(), &format!("{{path: {name}, carry: [label, caption]}}"))
        } else {
            let carry = "carry: {label: cls, caption: caption.txt}";
            rows::<Webdataset>(folder.path(), &format!("{{path: {name}, {carry}}}"))
        };
        let expected = expected.as_array().expect("rows");
        assert_eq!(found.len(), expected.len(), "{name}");
        for ((id, bytes, label, caption), expected) in found.iter().zip(expected) {
            assert_eq!((&expected["id"], &expected["label"]), (&id.as_str().into(), &(*label).into()), "{name}");
            assert_eq!(expected["caption"], caption.as_str(), "{name}");
            assert_eq!(expected["bytes"], hex(bytes), "{name}: {id}");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
