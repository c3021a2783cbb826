//! `source.rejects`: exactly the rows that were rejected, in their order, as an undisturbed run gives them.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::program::Folder;
use crate::scene::{as_files, as_parquet, as_tar, is_large, lines, pipeline, rejects, run, uri};

const ALL: u32 = 1_000_000;

/// Rejects what is large, runs that again with a higher limit, and compares with a run that had it from the start.
fn only_what_was_rejected_comes(source: &str, with: &str, prepare: impl Fn(&Folder)) {
    let folder = Folder::new();
    prepare(&folder);
    let done = run(&folder, "first", source, 100);
    assert_eq!(done.code, 3, "{done:?}");
    let done = run(&folder, "whole", source, ALL);
    assert_eq!(done.code, 0, "{done:?}");
    let again = format!("source.rejects, with: {{path: out/first.rejects.jsonl{with}}}");
    let done = run(&folder, "again", &again, ALL);
    assert_eq!(done.code, 0, "{done:?}");
    let rejected: Vec<_> = rejects(&folder, "first").into_iter().map(|(uri, _)| uri).collect();
    assert_eq!(rejected.len(), 4);
    let whole = lines(&folder, "whole");
    let expected: Vec<_> = whole.into_iter().filter(|line| rejected.contains(&uri(line))).collect();
    assert_eq!(lines(&folder, "again"), expected, "{source}");
    // What was right the first time and what came now are all.
    assert_eq!(lines(&folder, "first").len() + expected.len(), 12);
    assert!(!folder.path("out/again.rejects.jsonl").exists());
}

#[test]
fn files_come_again() {
    only_what_was_rejected_comes("source.files, with: {path: photos/*.png}", "", as_files);
}

#[test]
fn samples_of_a_tar_come_again() {
    only_what_was_rejected_comes("source.webdataset, with: {path: x.tar}", "", |folder| {
        fs::write(folder.path("x.tar"), as_tar()).expect("a file");
    });
}

#[test]
fn samples_of_a_packed_tar_come_again() {
    only_what_was_rejected_comes("source.webdataset, with: {path: x.tar.zst}", "", |folder| {
        fs::write(folder.path("x.tar.zst"), zstd::encode_all(&as_tar()[..], 1).expect("memory")).expect("a file");
    });
}

#[test]
fn rows_of_a_parquet_file_come_again() {
    only_what_was_rejected_comes("source.parquet, with: {path: x.parquet, carry: none}", "", |folder| {
        fs::write(folder.path("x.parquet"), as_parquet()).expect("a file");
    });
}

#[test]
fn rows_of_tables_come_again() {
    let table = |folder: &Folder, name: &str, row: fn(u8) -> String| {
        as_files(folder);
        folder.write(name, &(0..12).map(row).collect::<String>());
    };
    let jsonl = "source.jsonl, with: {path: rows.txt, column: file, base: photos, carry: none, id_column: key}";
    only_what_was_rejected_comes(jsonl, ", column: file, base: photos", |folder| {
        table(folder, "rows.txt", |number| format!("{{\"file\": \"{number:02}.png\", \"key\": \"k{number}\"}}\n\n"));
    });
    let csv = "source.csv, with: {path: t.csv, column: file, columns: [n, file], delimiter: ';', carry: none}";
    only_what_was_rejected_comes(csv, ", column: file, columns: [n, file], delimiter: ';'", |folder| {
        table(folder, "t.csv", |number| format!("{number};photos/{number:02}.png\n"));
    });
}

#[test]
fn several_sources_and_reasons_come_in_the_order_of_the_rejects() {
    let folder = Folder::new();
    as_files(&folder);
    fs::write(folder.path("x.tar"), as_tar()).expect("a file");
    let whole = fs::read(folder.path("photos/05.png")).expect("a picture");
    fs::write(folder.path("photos/05.png"), &whole[..40]).expect("a file");
    fs::remove_file(folder.path("photos/06.png")).expect("it is there");
    folder.write("list.txt", &(0..12).map(|number| format!("photos/{number:02}.png\n")).collect::<String>());
    let nodes = "name: first\nnodes:\n  files: {kind: source.files, with: {manifest: list.txt}}\n  tar: {kind: source.webdataset, \
                 with: {path: x.tar}}\n  both: {kind: transform.select, from: [files, tar], with: {keep: [id, uri, bytes]}}\n  \
                 pixels: {kind: decode.image, with: {resize: [4, 4], max_pixels: 100}}\n  out: {kind: sink.jsonl, with: \
                 {path: out/first.jsonl, columns: [id, uri]}}\n";
    folder.write("first.yaml", nodes);
    let done = folder.run(&["run", "first.yaml"]);
    assert_eq!(done.code, 3, "{done:?}");
    let first = rejects(&folder, "first");
    let of_code = |code: &str| -> Vec<String> {
        first.iter().filter(|(_, other)| other == code).map(|(uri, _)| uri.clone()).collect()
    };
    assert_eq!((of_code("too_large").len(), of_code("not_found")), (8, vec!["photos/06.png".to_owned()]));
    assert_eq!(first.len(), 10, "{first:?}");
    let again = |name: &str, with: &str| {
        let source = format!("source.rejects, with: {{path: out/first.rejects.jsonl{with}}}");
        let done = run(&folder, name, &source, 1_000_000);
        let uris: Vec<_> = lines(&folder, name).iter().map(|line| uri(line)).collect();
        (done.code, uris)
    };
    // Nothing was repaired: those two are rejected again.
    assert_eq!(again("large", ", codes: too_large"), (0, of_code("too_large")));
    assert_eq!(again("files", ", nodes: [files]"), (3, vec![]));
    fs::write(folder.path("photos/05.png"), &whole).expect("a file");
    as_files(&folder);
    let all: Vec<_> = first.iter().map(|(uri, _)| uri.clone()).collect();
    assert_eq!(again("all", ""), (0, all));
}

#[test]
fn a_row_that_several_lines_name_comes_once() {
    let folder = Folder::new();
    as_files(&folder);
    fs::write(folder.path("x.tar"), as_tar()).expect("a file");
    for source in ["source.files, with: {path: photos/*.png}", "source.webdataset, with: {path: x.tar}"] {
        assert_eq!(run(&folder, "first", source, 100).code, 3);
        let rejected = folder.read("out/first.rejects.jsonl");
        folder.write("twice.jsonl", &rejected.repeat(2));
        let mut gzip = Command::new("gzip");
        let mut packed = gzip.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip is there");
        packed.stdin.take().expect("a pipe").write_all(rejected.as_bytes()).expect("it reads");
        let packed = packed.wait_with_output().expect("it ends").stdout;
        fs::write(folder.path("copy.jsonl.gz"), packed).expect("a file");
        let again = "source.rejects, with: {path: [twice.jsonl, \"c*.gz\", out/first.rejects.jsonl]}";
        assert_eq!(run(&folder, "again", again, 1_000_000).code, 0);
        let uris: Vec<_> = lines(&folder, "again").iter().map(|line| uri(line)).collect();
        let expected: Vec<_> = rejects(&folder, "first").into_iter().map(|(uri, _)| uri).collect();
        assert_eq!(uris, expected);
        fs::remove_dir_all(folder.path("out")).expect("it is there");
        fs::remove_dir_all(folder.path(".flowgpu")).expect("it is there");
    }
}

#[test]
fn what_is_not_there_any_more_is_rejected_and_can_be_run_again() {
    let folder = Folder::new();
    fs::write(folder.path("x.tar"), as_tar()).expect("a file");
    assert_eq!(run(&folder, "first", "source.webdataset, with: {path: x.tar}", 100).code, 3);
    let whole = fs::read(folder.path("x.tar")).expect("a tar");
    // Of the four, two are left, and then none.
    fs::write(
        folder.path("x.tar"),
        nodes::testing::tar_of([("d/01.png", &crate::scene::picture(1)[..]), ("d/07.png", b"x")]),
    )
    .expect("a file");
    let again = |name: &str, path: &str| {
        run(&folder, name, &format!("source.rejects, with: {{path: out/{path}.rejects.jsonl}}"), 1_000_000).code
    };
    assert_eq!(again("second", "first"), 3);
    let told = rejects(&folder, "second");
    let expected = [("x.tar#d/07", "unsupported"), ("x.tar#d/04", "not_found"), ("x.tar#d/10", "not_found")];
    assert_eq!(told, expected.map(|(uri, code)| (uri.to_owned(), code.to_owned())));
    fs::remove_file(folder.path("x.tar")).expect("it is there");
    assert_eq!(again("third", "second"), 3);
    assert_eq!(rejects(&folder, "third").len(), 3, "a tar that is gone is a reject for each row");
    fs::write(folder.path("x.tar"), whole).expect("a file");
    assert_eq!(again("fourth", "third"), 0);
    let uris: Vec<_> = lines(&folder, "fourth").iter().map(|line| uri(line)).collect();
    assert_eq!(uris, ["x.tar#d/04", "x.tar#d/07", "x.tar#d/10"], "in the order of the tar");
}

#[test]
fn the_reject_file_that_a_run_writes_is_not_read_by_it() {
    let folder = Folder::new();
    as_files(&folder);
    assert_eq!(run(&folder, "first", "source.files, with: {path: photos/*.png}", 100).code, 3);
    let before = folder.read("out/first.rejects.jsonl");
    for path in ["out/first.rejects.jsonl", "\"out/*.rejects.jsonl\"", "out/../out/first.rejects.jsonl"] {
        let done = run(&folder, "first", &format!("source.rejects, with: {{path: {path}}}"), 1_000_000);
        assert_eq!(done.code, 2, "{path}: {done:?}");
        assert!(done.stderr.contains("reads the file of rejected rows, `out/first.rejects.jsonl`"), "{}", done.stderr);
        let free = if path.contains('*') { "out/again/first.rejects.jsonl" } else { "out/first-again.rejects.jsonl" };
        assert!(done.stderr.contains(&format!("`run: {{rejects: {free}}}`")), "{}", done.stderr);
    }
    assert_eq!(folder.read("out/first.rejects.jsonl"), before);
    // What is said to be done is enough.
    pipeline(&folder, "first", "source.rejects, with: {path: out/first.rejects.jsonl}", 1_000_000);
    let text = folder.read("first.yaml").replace("out/first.jsonl", "out/again.jsonl");
    folder.write(
        "first.yaml",
        &text.replace("nodes:", "run: {rejects: out/first-again.rejects.jsonl, state: other}\nnodes:"),
    );
    let done = folder.run(&["run", "first.yaml"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(lines(&folder, "again").len(), (0..12).filter(|&number| is_large(number)).count());
}
