//! What must hold of outputs, found by reading them again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use crate::case::{Case, Conserved, Form, REJECTS, Truth};
use crate::pipeline::Pipeline;
use crate::reading::{content, lines, text, uris};

/// Fails unless the outputs in `folder` hold each row of the input once per branch, in order, as a result or as a reject.
pub fn conservation(case: &Case, folder: &Path) {
    match &case.truth {
        Truth::Foretold(pipeline) => foretold(pipeline, folder),
        Truth::Conserved(outputs) => {
            let rejects = rejects(folder);
            outputs.iter().for_each(|output| conserved(output, folder, &rejects));
        }
    }
}

fn foretold(pipeline: &Pipeline, folder: &Path) {
    for (name, expected) in &pipeline.sinks {
        let found = lines(&folder.join(format!("{name}.jsonl")));
        assert!(&found == expected, "output `{name}` has {} rows that are others than foretold", found.len());
    }
    for (name, expected) in &pipeline.reject_sinks {
        let mut found = lines(&folder.join(format!("{name}.jsonl")));
        found.iter_mut().for_each(|row| drop(row.as_object_mut().expect("a row").remove("message")));
        assert!(&found == expected, "output `{name}` has {} rejects that are others than foretold", found.len());
    }
    let found = lines(&folder.join(REJECTS));
    let found: Vec<_> = found.iter().map(|row| (text(row, "uri"), text(row, "node"), text(row, "code"))).collect();
    assert!(found == pipeline.rejects, "the reject file has {} rows that are others than foretold", found.len());
}

/// The node that rejected each row.
fn rejects(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut rejects: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in lines(&folder.join(REJECTS)) {
        rejects.entry(text(&row, "uri")).or_default().insert(text(&row, "node"));
    }
    rejects
}

fn conserved(conserved: &Conserved, folder: &Path, rejects: &BTreeMap<String, BTreeSet<String>>) {
    let path = &conserved.output.path;
    let written = uris(folder, &conserved.output);
    let mut rest = &written[..];
    for uri in &conserved.inputs {
        let n_written = rest.iter().take_while(|found| *found == uri).count();
        rest = &rest[n_written..];
        let by = rejects.get(uri);
        if n_written == 0 {
            assert!(by.is_some(), "`{uri}` is neither in `{path}` nor among the rejects");
            continue;
        }
        assert_eq!(n_written, conserved.n_copies, "`{uri}` in `{path}`");
        let rejected = by.and_then(|nodes| nodes.iter().find(|node| conserved.path.contains(*node)));
        // Two sources of the same form name their rows alike.
        let is_one = conserved.inputs.iter().filter(|other| *other == uri).count() == 1;
        assert!(rejected.is_none() || !is_one, "`{uri}` is in `{path}`, and was rejected by {rejected:?}");
    }
    assert!(rest.is_empty(), "`{path}` has {:?}, which is not in order or not in the input", rest[0]);
}

/// Fails unless all outputs of both folders have the same bytes, rejects included; what compression or pages make of them may
/// differ.
pub fn same_bytes(case: &Case, reference: &Path, folder: &Path) {
    for output in &case.outputs {
        let (expected, found) = (output.files(reference), output.files(folder));
        assert_eq!(expected, found, "files of `{}`", output.node);
        found.iter().for_each(|file| same_content(output.form, file, reference, folder));
    }
    match (reference.join(REJECTS).exists(), folder.join(REJECTS).exists()) {
        (true, true) => same_content(Form::Jsonl, REJECTS, reference, folder),
        (expected, found) => assert_eq!(expected, found, "whether there are rejects"),
    }
}

fn same_content(form: Form, file: &str, reference: &Path, folder: &Path) {
    let [expected, found] = [reference, folder].map(|folder| content(form, &folder.join(file)));
    if expected == found {
        return;
    }
    let (expected, found) = (expected.bytes(), found.bytes());
    let at = expected.iter().zip(found).take_while(|(expected, found)| expected == found).count();
    let line = expected[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
    panic!(
        "`{file}` has {} bytes, and undisturbed {}; they differ from byte {at} on, in line {line}",
        found.len(),
        expected.len()
    );
}

/// Fails if something lies in the folder of a finished run that does not belong there.
pub fn nothing_left(case: &Case, folder: &Path) {
    let mut expected: BTreeSet<String> = case.outputs.iter().flat_map(|output| output.files(folder)).collect();
    expected.extend(["p.yaml".to_owned()]);
    if folder.join(REJECTS).exists() {
        expected.insert(REJECTS.to_owned());
    }
    let mut found = BTreeSet::new();
    walk(folder, folder, &mut found);
    assert_eq!(found, expected, "files of a finished run");
    let mut state = BTreeSet::new();
    if folder.join(".flowgpu").exists() {
        walk(folder, &folder.join(".flowgpu"), &mut state);
    }
    assert!(!state.iter().any(|name| name.contains("/spool/")), "{state:?}");
}

/// All files below a folder but input and state.
fn walk(base: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = path.strip_prefix(base).expect("it is below").display().to_string();
        match name.as_str() {
            ".flowgpu" | "in" => {}
            _ if path.is_dir() => walk(base, &path, found),
            _ => drop(found.insert(name)),
        }
    }
}

/// What changes when an output is written again.
pub fn marks(case: &Case, folder: &Path) -> Vec<(u64, SystemTime)> {
    let mark = |file: String| {
        let metadata = fs::metadata(folder.join(file)).expect("an output");
        (metadata.ino(), metadata.modified().expect("a time"))
    };
    case.outputs.iter().flat_map(|output| output.files(folder)).map(mark).collect()
}
