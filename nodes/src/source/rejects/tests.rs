//! What is listed for a reject file, and what comes of it.

use std::fs;
use std::path::Path;

use engine::data::{Column, code};
use engine::node::harness::Harness;

use super::*;
use crate::testing::{parquet_of, tar_of};

fn source(base: &Path, with: &str) -> Harness {
    Harness::new::<Rejects>(with, vec![]).in_folder(base)
}

fn reject(id: &str, uri: &str) -> String {
    format!("{{\"id\": \"{id}\", \"uri\": \"{uri}\", \"node\": \"n\", \"code\": \"corrupt\", \"message\": \"m\"}}\n")
}

/// The rows of all items as `uri|id|bytes`, and the rejects as `code`.
fn rows(source: &Harness) -> (Vec<String>, Vec<&'static str>) {
    let (mut rows, mut codes) = (Vec::new(), Vec::new());
    for (index, item) in source.items(3).unwrap().iter().enumerate() {
        let mapped = source.unpack(index as u64, item, 0);
        let [Column::Text(ids), Column::Text(uris), Column::Bytes(bytes)] = &mapped.columns[..] else { panic!() };
        for row_idx in 0..mapped.passed.len() {
            let text = String::from_utf8_lossy(&bytes.values()[row_idx]).into_owned();
            rows.push(format!("{}|{}|{text}", uris.get(row_idx), ids.get(row_idx)));
        }
        codes.extend(mapped.rejects.iter().map(|(_, reject)| reject.code));
    }
    (rows, codes)
}

#[test]
fn rows_come_from_wherever_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.jpg"), "A").unwrap();
    fs::write(path("b.jpg"), "B").unwrap();
    fs::write(path("x.tar"), tar_of([("k1.jpg", &b"1"[..]), ("k2.jpg", b"2"), ("k3.jpg", b"3")])).unwrap();
    fs::write(path("x.parquet"), parquet_of(&["p0", "p1", "p2", "p3", "p4"].map(|text| text.into()), 2)).unwrap();
    fs::write(path("t.jsonl"), "{\"image\": \"a.jpg\"}\n\n{\"image\": \"b.jpg\"}\n").unwrap();
    let lines = [
        reject("a.jpg", "a.jpg"),
        reject("gone.jpg", "gone.jpg"),
        reject("k3", "x.tar#k3"),
        reject("k9", "x.tar#k9"),
        reject("k1", "x.tar#k1"),
        reject("k1", "x.tar#k1"),
        reject("x.parquet#4", "x.parquet#4"),
        reject("mine", "x.parquet#1"),
        reject("x.parquet#5", "x.parquet#5"),
        reject("t.jsonl#3", "t.jsonl#3"),
        reject("t.jsonl#2", "t.jsonl#2"),
        "no reject\n".to_owned(),
        reject("b.jpg", "b.jpg"),
    ];
    fs::write(path("r.jsonl"), lines.concat()).unwrap();
    let source = source(folder.path(), "{path: r.jsonl, column: image}");
    let (rows, codes) = rows(&source);
    let expected = [
        "a.jpg|a.jpg|A",
        "x.tar#k1|k1|1",
        "x.tar#k3|k3|3",
        "x.parquet#1|mine|p1",
        "x.parquet#4|x.parquet#4|p4",
        "t.jsonl#3|t.jsonl#3|B",
        "b.jpg|b.jpg|B",
    ];
    assert_eq!(rows, expected);
    assert_eq!(codes, [code::NOT_FOUND, code::NOT_FOUND, code::NOT_FOUND, code::NOT_FOUND, code::CORRUPT]);
    // From any row of an item on, the rest is the same.
    for item in source.items(99).unwrap() {
        let all = source.unpack(0, &item, 0);
        let n_rows = all.passed.len() + all.rejects.len();
        for skip in 1..=n_rows {
            let rest = source.unpack(0, &item, skip as u32);
            assert_eq!(rest.passed.len() + rest.rejects.len(), n_rows - skip, "{}", item.uri);
            let moved: Vec<_> = all.passed.iter().filter_map(|row_idx| row_idx.checked_sub(skip)).collect();
            assert_eq!(rest.passed, moved);
        }
    }
}

#[test]
fn a_file_that_was_rejected_as_a_whole_gives_all_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("x.tar"), tar_of([("k1.jpg", &b"1"[..]), ("k2.jpg", b"2")])).unwrap();
    fs::write(path("x.parquet"), parquet_of(&["p0", "p1", "p2", "p3", "p4"].map(|text| text.into()), 2)).unwrap();
    fs::write(path("r.jsonl"), [reject("", "x.tar"), reject("", "x.parquet#group-1"), reject("", "x.csv")].concat())
        .unwrap();
    let (rows, codes) = rows(&source(folder.path(), "{path: r.jsonl}"));
    let expected = ["x.tar#k1|k1|1", "x.tar#k2|k2|2", "x.parquet#2|x.parquet#2|p2", "x.parquet#3|x.parquet#3|p3"];
    assert_eq!(rows, expected);
    assert_eq!(codes, [code::NOT_FOUND], "a table is one only where a column is named");
}

#[test]
fn rows_of_a_file_that_cannot_be_opened_are_a_reject_each() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cut.tar"), &tar_of([("a.jpg", &[7; 2000][..]), ("b.jpg", b"b")])[..1000]).unwrap();
    let lines = ["gone.tar#a", "gone.tar#b", "cut.tar#a", "cut.tar#b", "t.csv#2"].map(|uri| reject(uri, uri));
    fs::write(folder.path().join("r.jsonl"), lines.concat()).unwrap();
    fs::write(folder.path().join("t.csv"), "file\na.jpg\n").unwrap();
    let source = source(folder.path(), "{path: r.jsonl}");
    let items = source.items(9).unwrap();
    let mapped: Vec<_> = items.iter().map(|item| source.unpack(0, item, 0).rejects).collect();
    let codes: Vec<Vec<_>> =
        mapped.iter().map(|rejects| rejects.iter().map(|(_, reject)| reject.code).collect()).collect();
    assert_eq!(codes, [vec![code::NOT_FOUND; 2], vec![code::TRUNCATED; 2], vec![code::UNSUPPORTED]]);
    assert!(mapped[2][0].1.message.contains("`column`"), "{}", mapped[2][0].1.message);
}

#[test]
fn only_chosen_codes_and_nodes_are_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let line = |uri: &str, node: &str, code: &str| {
        format!("{{\"uri\": \"{uri}\", \"node\": \"{node}\", \"code\": \"{code}\"}}\n")
    };
    let lines = [line("a", "x", "corrupt"), line("b", "y", "too_large"), line("c", "x", "too_large")];
    fs::write(folder.path().join("r.jsonl"), lines.concat()).unwrap();
    for (with, expected) in [
        ("", vec!["a", "b", "c"]),
        (", codes: too_large", vec!["b", "c"]),
        (", nodes: [x]", vec!["a", "c"]),
        (", nodes: x, codes: [too_large, io]", vec!["c"]),
    ] {
        let items = source(folder.path(), &format!("{{path: r.jsonl{with}}}")).items(9).unwrap();
        let (_, Wanted::Files(rows)) = Wanted::of(&items[0]).unwrap() else { panic!() };
        assert_eq!(rows.iter().map(|row| &*row.name).collect::<Vec<_>>(), expected, "{with}");
    }
    let error = source(folder.path(), "{path: r.jsonl, codes: [io, to_large]}").spec().unwrap_err();
    assert_eq!(
        (error.option, error.label.as_deref()),
        (vec!["codes".into(), "1".into()], Some("did you mean `too_large`?"))
    );
}

#[test]
fn a_listing_is_the_same_from_any_item_on_and_its_items_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let key = "k".repeat(1000);
    let tar = |row: usize| reject("", &format!("x.tar#{key}{row}"));
    let lines: Vec<_> = (0..100).map(|row| reject("", &format!("{row}.jpg"))).chain((0..600).map(tar)).collect();
    fs::write(folder.path().join("r.jsonl"), lines.concat()).unwrap();
    let source = source(folder.path(), "{path: r.jsonl}");
    let items = source.items(2).unwrap();
    assert_eq!(items.len(), 4 + 3);
    let uris: std::collections::HashSet<_> = items.iter().map(|item| &item.uri).collect();
    assert_eq!(uris.len(), items.len(), "listings are compared by names");
    assert!(items.iter().all(|item| item.locator.len() < 300 << 10));
    let stage = source.source().unwrap();
    assert_eq!(stage.count.unwrap()(&Counting::default()), Some(700));
    let mut list = stage.list;
    let mut rest = Vec::new();
    list.seek(3).unwrap();
    while rest.len() < 4 {
        list.next_items(99, &mut rest).unwrap();
    }
    assert_eq!(rest, items[3..]);
}

#[test]
fn a_reject_file_that_is_not_there_is_a_fault_that_says_why_it_may_not_be() {
    let folder = tempfile::tempdir().unwrap();
    let fault = source(folder.path(), "{path: none.jsonl}").source().map(drop).unwrap_err();
    assert!(fault.help.unwrap().starts_with("a run that rejects nothing leaves no such file"), "{}", fault.message);
}
