//! The names of classes: those that ship with the program, or those of a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine::node::SpecError;
use serde_json::Value;

/// The first name of each class of ImageNet-1k, in order, one a line.
const IMAGENET1K: &str = include_str!("labels/imagenet1k.txt");

/// The word for [`IMAGENET1K`].
pub(super) const IMAGENET1K_NAME: &str = "imagenet1k";

/// The largest file of labels that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The names that `labels` stands for: `imagenet1k`, or the file at `path`.
pub(super) fn read(labels: &str, path: &Path) -> Result<Vec<Arc<str>>, SpecError> {
    if labels == IMAGENET1K_NAME {
        return Ok(IMAGENET1K.lines().map(Arc::from).collect());
    }
    let text = read_text(path).map_err(|reason| {
        SpecError::new(format!("cannot read the labels `{}`: {reason}", path.display()))
            .note(format!("write `{IMAGENET1K_NAME}`, or a file with a name a line or JSON"))
    })?;
    let names = match path.extension().is_some_and(|extension| extension == "json") {
        true => from_json(&text),
        false => from_lines(&text),
    };
    names.map_err(|reason| SpecError::new(format!("the labels `{}`: {reason}", path.display())))
}

fn read_text(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => error.to_string(),
    })?;
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!("{} bytes are no list of names", metadata.len()));
    }
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    })
}

fn from_lines(text: &str) -> Result<Vec<Arc<str>>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let names: Vec<Arc<str>> = text.trim_end().lines().map(|line| line.trim().into()).collect();
    match names.iter().position(|name| name.is_empty()) {
        Some(line_idx) => Err(format!("line {} is empty", line_idx + 1)),
        None => Ok(names),
    }
}

/// A list of names, an object from index to name, or an object that has one under `id2label`, as models' `config.json`.
fn from_json(text: &str) -> Result<Vec<Arc<str>>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let value = match &value {
        Value::Object(object) => object.get("id2label").unwrap_or(&value),
        _ => &value,
    };
    let name = |value: &Value, index: usize| match value {
        Value::String(name) => Ok(Arc::from(name.as_str())),
        _ => Err(format!("the name of class {index} is no text")),
    };
    match value {
        Value::Array(names) => names.iter().enumerate().map(|(index, value)| name(value, index)).collect(),
        Value::Object(object) => {
            let mut by_index = BTreeMap::new();
            for (key, value) in object {
                let index: usize = key.parse().map_err(|_| format!("the key `{key}` is no index of a class"))?;
                if by_index.insert(index, name(value, index)?).is_some() {
                    return Err(format!("class {index} has two names"));
                }
            }
            match by_index.keys().enumerate().find(|(expected, index)| expected != *index) {
                Some((missing, _)) => Err(format!("class {missing} has no name")),
                None => Ok(by_index.into_values().collect()),
            }
        }
        _ => Err("it is neither a list of names nor an object from index to name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file_name: &str, content: &str, expected: Result<&[&str], &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file_name);
        std::fs::write(&path, content).unwrap();
        match (read(file_name, &path), expected) {
            (Ok(names), Ok(expected)) => assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), expected),
            (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{error}"),
            (got, expected) => panic!("{content}: {got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn every_form_gives_the_names_in_the_order_of_the_classes() {
        check("l.txt", "cat\nbig dog\n", Ok(&["cat", "big dog"]));
        check("l.txt", "\u{feff}cat\r\nbig dog\r\n\r\n", Ok(&["cat", "big dog"]));
        check("l.json", r#"["cat", "dog"]"#, Ok(&["cat", "dog"]));
        check(
            "l.json",
            r#"{"1": "dog", "0": "cat", "10": "k", "2": "c", "3": "d", "4": "e", "5": "f", "6": "g", "7": "h", "8": "i", "9": "j"}"#,
            Ok(&["cat", "dog", "c", "d", "e", "f", "g", "h", "i", "j", "k"]),
        );
        check("config.json", r#"{"architectures": ["X"], "id2label": {"0": "cat", "1": "dog"}}"#, Ok(&["cat", "dog"]));
    }

    #[test]
    fn what_is_no_list_of_names_is_refused_with_a_reason() {
        check("l.txt", "cat\n\ndog\n", Err("line 2 is empty"));
        check("l.json", r#"{"0": "cat", "2": "dog"}"#, Err("class 1 has no name"));
        check("l.json", r#"{"0": "cat", "00": "dog"}"#, Err("class 0 has two names"));
        check("l.json", r#"{"cat": 0}"#, Err("`cat` is no index"));
        check("l.json", r#"[1]"#, Err("class 0 is no text"));
        check("l.json", "3", Err("neither"));
        check("l.json", "{", Err("no JSON"));
    }

    #[test]
    fn a_file_that_is_not_there_says_so() {
        let error = read("nothing.txt", Path::new("/nowhere/nothing.txt")).unwrap_err();
        assert_eq!(error.message, "cannot read the labels `/nowhere/nothing.txt`: no such file");
    }

    #[test]
    fn imagenet_has_a_thousand_names() {
        let names = read(IMAGENET1K_NAME, Path::new("")).unwrap();
        assert_eq!(names.len(), 1000);
        assert_eq!((&*names[0], &*names[282], &*names[999]), ("tench", "tiger cat", "toilet tissue"));
    }
}
