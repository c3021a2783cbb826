//! Reading outputs again.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::case::{Form, Output};

/// The rows of a file of JSON lines; none if there is no such file.
pub fn lines(path: &Path) -> Vec<Json> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The uris of the rows in an output, in order.
pub fn uris(folder: &Path, output: &Output) -> Vec<String> {
    let path = folder.join(&output.path);
    match output.form {
        Form::Jsonl => lines(&path).iter().map(|row| text(row, "uri")).collect(),
        Form::Csv => {
            let table = fs::read_to_string(&path).expect("a table");
            let mut rows = table.lines();
            let header = rows.next().expect("a table has a header");
            let column = header.split(',').position(|name| name == "uri").expect("a column of uris");
            // No cell before it has a comma.
            rows.map(|row| row.split(',').nth(column).expect("a cell").to_owned()).collect()
        }
        Form::Npy => {
            let ids = lines(&folder.join(&output.files()[1]));
            let ids: Vec<_> = ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect();
            assert_eq!(npy_rows(&fs::read(&path).expect("an array")), ids.len(), "rows of the array `{}`", output.path);
            ids
        }
    }
}

/// A text of a row.
pub fn text(row: &Json, key: &str) -> String {
    row[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {row}")).to_owned()
}

/// The rows that an array has by its length, which must be those that its header tells.
fn npy_rows(bytes: &[u8]) -> usize {
    let header_bytes = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(&bytes[10..10 + header_bytes]).into_owned();
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')')).expect("a shape").0;
    let dims: Vec<usize> = shape.split(',').filter_map(|dim| dim.trim().parse().ok()).collect();
    let element_bytes = if header.contains("|u1") { 1 } else { 4 };
    let row_bytes = dims[1..].iter().product::<usize>() * element_bytes;
    let n_rows = (bytes.len() - 10 - header_bytes) / row_bytes;
    assert_eq!(n_rows * row_bytes + 10 + header_bytes, bytes.len(), "an array ends with a row");
    assert_eq!(n_rows, dims[0], "rows by the header {header}");
    n_rows
}
