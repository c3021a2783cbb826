//! Reading outputs again.

use std::fs;
use std::io::Read;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value as Json;

use crate::case::{Form, Output};

/// The rows of a file of JSON lines; none if there is no such file.
pub fn lines(path: &Path) -> Vec<Json> {
    rows(&fs::read_to_string(path).unwrap_or_default())
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
            let ids = lines(&folder.join(&output.files(folder)[1]));
            let ids: Vec<_> = ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect();
            assert_eq!(npy_rows(&fs::read(&path).expect("an array")), ids.len(), "rows of the array `{}`", output.path);
            ids
        }
        Form::Packed => {
            let rows =
                output.files(folder).into_iter().flat_map(|part| match content(output.form, &folder.join(part)) {
                    Content::Bytes(text) => rows(&String::from_utf8(text).expect("text")),
                    Content::Table(_) => panic!("lines are no table"),
                });
            rows.map(|row| text(&row, "uri")).collect()
        }
        Form::Parquet => {
            let tables =
                output.files(folder).into_iter().flat_map(|part| match content(output.form, &folder.join(part)) {
                    Content::Table(table) => table,
                    Content::Bytes(_) => panic!("a table is no bytes"),
                });
            let of_table = |table: RecordBatch| {
                let uris = table.column_by_name("uri").expect("a column of uris").as_string::<i32>().iter();
                uris.map(|uri| uri.expect("a uri").to_owned()).collect::<Vec<_>>()
            };
            tables.flat_map(of_table).collect()
        }
        Form::Archives => output.files(folder).into_iter().flat_map(|archive| samples(&folder.join(archive))).collect(),
    }
}

/// What is in a file, the same whenever it was written.
#[derive(PartialEq)]
pub enum Content {
    Bytes(Vec<u8>),
    Table(Vec<RecordBatch>),
}

impl Content {
    /// Its bytes, where it is made of such.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Content::Bytes(bytes) => bytes,
            Content::Table(_) => &[],
        }
    }
}

/// What is in a file of an output of this form.
pub fn content(form: Form, path: &Path) -> Content {
    match form {
        Form::Packed => {
            let packed = fs::File::open(path).expect("a part");
            Content::Bytes(zstd::stream::decode_all(packed).expect("whole frames"))
        }
        Form::Parquet => {
            let file = fs::File::open(path).expect("a part");
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a file of Parquet");
            let reader = reader.with_batch_size(1 << 20).build().expect("rows");
            Content::Table(reader.map(|rows| rows.expect("rows")).collect())
        }
        Form::Jsonl | Form::Csv | Form::Npy | Form::Archives => Content::Bytes(fs::read(path).expect("an output")),
    }
}

/// The uri of each sample, which has an array beside it.
fn samples(archive: &Path) -> Vec<String> {
    let mut archive = tar::Archive::new(fs::File::open(archive).expect("an archive"));
    let mut members = Vec::new();
    for member in archive.entries().expect("members") {
        let mut member = member.expect("a member");
        let name = String::from_utf8(member.path_bytes().into_owned()).expect("a name");
        let mut content = Vec::new();
        member.read_to_end(&mut content).expect("a member");
        members.push((name, content));
    }
    let pairs = members.chunks(2).map(|pair| {
        let [(json, uri), (npy, array)] = pair else { panic!("a sample has two members") };
        assert_eq!(json.strip_suffix(".json"), npy.strip_suffix(".npy"), "members of one sample");
        assert!(array.starts_with(b"\x93NUMPY"), "`{npy}` is an array");
        serde_json::from_slice(uri).expect("a uri as JSON")
    });
    pairs.collect()
}

fn rows(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
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
