//! Tables of both forms, through the kinds that read them.

use std::fs;
use std::io::Write;
use std::path::Path;

use engine::data::{Column, code};
use engine::node::NodeKind;
use engine::node::harness::{Harness, Mapped};

use crate::source::csv::Csv;
use crate::source::jsonl::Jsonl;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn read<K: NodeKind>(base: &Path, with: &str, skip: u32) -> (Vec<String>, Mapped) {
    let source = Harness::new::<K>(with, vec![]).in_folder(base);
    let names = source.spec().unwrap().outputs.iter().map(|output| output.field.name.to_string()).collect();
    let items = source.items(10).unwrap();
    (names, source.unpack(0, &items[0], skip))
}

fn texts(mapped: &Mapped, column: usize) -> Vec<String> {
    let Column::Text(text) = &mapped.columns[column] else { panic!("column {column} is no text") };
    (0..mapped.passed.len()).map(|row_idx| text.get(row_idx).to_owned()).collect()
}

fn bytes(mapped: &Mapped, column: usize) -> Vec<Vec<u8>> {
    let Column::Bytes(bytes) = &mapped.columns[column] else { panic!("column {column} is no bytes") };
    bytes.values().iter().map(|bytes| bytes.to_vec()).collect()
}

const FILES: [(&str, &str); 2] = [("photos/a.jpg", "AAA"), ("photos/b c.jpg", "BBB")];

#[test]
fn rows_of_json_bring_their_file_and_their_other_columns() {
    let lines = concat!(
        "{\"image\": \"a.jpg\", \"label\": 3, \"tags\": [1, {\"x\": null}], \"id\": \"one\"}\r\n",
        "\n",
        "{\"label\": \"-4\", \"image\": \"b c.jpg\", \"more\": 1, \"tags\": null}\n",
    );
    let folder = folder(&[FILES[0], FILES[1], ("t.jsonl", lines)]);
    let with = "{path: t.jsonl, column: image, base: photos, types: {label: int}, id_column: id}";
    let (names, mapped) = read::<Jsonl>(folder.path(), with, 0);
    assert_eq!(names, ["id", "uri", "bytes", "image", "label", "tags"]);
    assert_eq!(mapped.rejects, []);
    assert_eq!(texts(&mapped, 0), ["one", "t.jsonl#3"]);
    assert_eq!(texts(&mapped, 1), ["t.jsonl#1", "t.jsonl#3"]);
    assert_eq!(bytes(&mapped, 2), [b"AAA", b"BBB"]);
    assert_eq!(texts(&mapped, 3), ["a.jpg", "b c.jpg"]);
    let Column::Int(labels) = &mapped.columns[4] else { panic!() };
    assert_eq!(labels.values(), [3, -4]);
    assert_eq!(texts(&mapped, 5), ["[1,{\"x\":null}]", ""]);
}

#[test]
fn a_bad_line_costs_that_line_and_names_it() {
    let lines = "{\"image\":\"a.jpg\",\"n\":1}\n{\"image\": \n[1]\n{\"image\":\"no.jpg\",\"n\":1}\n{\"n\":1}\n\
                 {\"image\":\"a.jpg\",\"n\":\"x\"}\n{\"image\":\"a.jpg\",\"n\":2}";
    let long = format!("{lines}\n{{\"image\":\"{}\"}}\n{{\"image\":\"a.jpg\",\"n\":3}}\n", "y".repeat(300));
    let folder = folder(&[FILES[0], ("t.jsonl", &long)]);
    let with = "{path: t.jsonl, column: image, base: photos, carry: [n], types: {n: int}, max_line_bytes: 200}";
    let (_, mapped) = read::<Jsonl>(folder.path(), with, 0);
    assert_eq!(texts(&mapped, 1), ["t.jsonl#1", "t.jsonl#7", "t.jsonl#9"]);
    let codes: Vec<_> = mapped.rejects.iter().map(|(row, reject)| (*row, reject.code)).collect();
    let expected = [
        (1, code::CORRUPT),
        (2, code::CORRUPT),
        (3, code::NOT_FOUND),
        (4, code::NOT_FOUND),
        (5, code::CORRUPT),
        (7, code::TOO_LARGE),
    ];
    assert_eq!(codes, expected);
    for (row, what) in [(0, "`t.jsonl`, line 2"), (1, "line 3"), (2, "`t.jsonl#4`"), (4, "`n` is `x`"), (5, "line 8")] {
        let message = &mapped.rejects[row].1.message;
        assert!(message.contains(what), "{message}");
    }
    let (_, rest) = read::<Jsonl>(folder.path(), with, 5);
    assert_eq!(texts(&rest, 1), ["t.jsonl#7", "t.jsonl#9"]);
    assert_eq!(rest.rejects[0].1, mapped.rejects[4].1);
    assert!(read::<Jsonl>(folder.path(), with, 10).1.passed.is_empty());
}

#[test]
fn rows_of_csv_bring_their_file_and_their_other_columns() {
    let text = "\u{feff}file;score;note\r\na.jpg;0.5;\"x;\"\"y\"\"\nz\"\r\nb c.jpg;1e3\r\n\r\nb c.jpg;-2;last";
    let folder = folder(&[FILES[0], FILES[1], ("t.csv", text)]);
    let with = "{path: t.csv, column: file, base: photos, types: {score: float}, delimiter: ';'}";
    let (names, mapped) = read::<Csv>(folder.path(), with, 0);
    assert_eq!(names, ["id", "uri", "bytes", "file", "score", "note"]);
    assert_eq!(texts(&mapped, 1), ["t.csv#2", "t.csv#6"]);
    assert_eq!(bytes(&mapped, 2), [b"AAA", b"BBB"]);
    let Column::Float(scores) = &mapped.columns[4] else { panic!() };
    assert_eq!(scores.values(), [0.5, -2.0]);
    assert_eq!(texts(&mapped, 5), ["x;\"y\"\nz", "last"]);
    let [(1, reject)] = &mapped.rejects[..] else { panic!("{:?}", mapped.rejects) };
    assert_eq!(reject.code, code::CORRUPT);
    assert!(reject.message.contains("line 4: it has 2 fields, and there are 3 columns"), "{}", reject.message);
    assert_eq!(texts(&read::<Csv>(folder.path(), with, 1).1, 1), ["t.csv#6"]);
}

#[test]
fn a_table_without_a_header_has_the_names_that_are_given() {
    let folder = folder(&[("t.csv", "1,2\n3,4\n")]);
    let (names, mapped) = read::<Csv>(folder.path(), "{path: t.csv, columns: [a, b], carry: [b]}", 0);
    assert_eq!(names, ["id", "uri", "b"]);
    assert_eq!(texts(&mapped, 2), ["2", "4"]);
}

#[test]
fn packed_tables_are_read_and_end_early_with_one_reject() {
    let folder = folder(&[]);
    let lines: Vec<_> = (0..2000u64).map(|n| format!("{{\"n\": \"{}\"}}\n", n * n * 7919 % 100_003)).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(lines.concat().as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    fs::write(folder.path().join("t.jsonl.gz"), &packed).unwrap();
    let (_, whole) = read::<Jsonl>(folder.path(), "path: t.jsonl.gz", 0);
    assert_eq!(whole.passed.len(), 2000);
    fs::write(folder.path().join("t.jsonl.gz"), &packed[..packed.len() - 2000]).unwrap();
    let (_, cut) = read::<Jsonl>(folder.path(), "path: t.jsonl.gz", 0);
    assert!(cut.passed.len() > 100 && cut.passed.len() < 2000);
    let rejects: Vec<_> = cut.rejects.iter().map(|(_, reject)| reject.code).collect();
    assert_eq!(rejects, [code::TRUNCATED]);
    assert_eq!(texts(&cut, 2)[..], texts(&whole, 2)[..cut.passed.len()]);
}

#[test]
fn what_does_not_fit_the_table_is_a_mistake_or_a_reject_that_names_it() {
    let folder = folder(&[("t.csv", "a,b\n1,2\n"), ("u.csv", "b,c\n1,2\n"), ("e.csv", "")]);
    let source = |with: &str| Harness::new::<Csv>(with, vec![]).in_folder(folder.path());
    let mistake = |with: &str| source(with).spec().unwrap_err();
    assert_eq!(mistake("{path: t.csv, types: {c: int}}").option, ["types", "c"]);
    assert_eq!(mistake("{path: t.csv, delimiter: ab}").option, ["delimiter"]);
    assert!(mistake("path: none.csv").message.contains("cannot be seen"));
    assert!(mistake("path: e.csv").message.contains("is empty"));
    let both = source("path: '{t,u}.csv'");
    let items = both.items(9).unwrap();
    let engine::node::Reading::Unpacked(unpack) = both.source().unwrap().reading else { panic!() };
    let reject = unpack.open(1, &items[1], 0).err().unwrap();
    assert!(reject.message.contains("`u.csv` has no column `a`; it has `b`, `c`"), "{}", reject.message);
}

#[test]
fn what_is_secret_in_a_url_is_carried_nowhere() {
    let folder = folder(&[("t.csv", "url,n\nhttps://u:S3CRET@localhost:1/a.jpg?sig=S3CRET,1\n")]);
    let with = "{path: t.csv, column: url, store: {attempts: 1, timeout: 1s}}";
    let (_, mapped) = read::<Csv>(folder.path(), with, 0);
    let [(0, reject)] = &mapped.rejects[..] else { panic!() };
    assert!(!reject.message.contains("S3CRET") && reject.message.contains("https://localhost:1/a.jpg"));
    let (_, mapped) = read::<Csv>(folder.path(), "{path: t.csv, id_column: url, carry: [n]}", 0);
    assert_eq!(texts(&mapped, 0), ["https://localhost:1/a.jpg"]);
}
