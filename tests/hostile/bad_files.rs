//! Files that are no pictures, cannot be read, or break the decoder: a reject each, and nothing else changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::workplace::{PIPELINES, Workplace};
use crate::{bomb, run_unprivileged, told, unprivileged};

const CLASSIFY: &str = r#"
name: hostile
nodes:
  photos: {kind: source.files, with: {path: "in/*"}}
  pixels: {kind: decode.image, with: {preset: model}}
  scores: {kind: infer, with: {model: models/efficientnet_lite0, batch: 3}}
  labels: {kind: transform.topk, with: {k: 5}}
  out: {kind: sink.jsonl, with: {path: out/labels.jsonl}}
"#;

fn given(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("nodes/tests/images/given").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn photograph(name: &str) -> Vec<u8> {
    fs::read(Path::new(PIPELINES).join("photos").join(name)).expect("a photograph")
}

/// Photographs, and files that are odd and yet pictures. Their names put them between the bad ones.
fn write_good(workplace: &Workplace) {
    workplace.write("in/a-chelsea.png", photograph("chelsea.png"));
    workplace.write("in/d-rocket.jpg", photograph("rocket.jpg"));
    workplace.write("in/f-png-named.jpg", photograph("coffee.png"));
    for name in
        ["exif-broken-offset.jpg", "exif-cut.jpg", "exif-noise.jpg", "exif-rational-by-zero.jpg", "xmp-not-utf8.jpg"]
    {
        workplace.write(&format!("in/h-{name}"), given(name));
    }
    workplace.write("in/p-coffee.png", photograph("coffee.png"));
    workplace.write("in/z-camera.png", photograph("camera.png"));
}

/// Each with what is said of it: the node, and the code. The pattern has no extension, so that all names are seen.
const BAD: [(&str, &str, &str); 12] = [
    ("b-cut-at-half.jpg", "pixels", "truncated"),
    ("b-cut-at-the-end.jpg", "pixels", "truncated"),
    ("b-cut.png", "pixels", "truncated"),
    ("c-empty.jpg", "pixels", "empty"),
    ("c-nothing-but-a-marker.jpg", "pixels", "truncated"),
    ("e-text.jpg", "pixels", "unsupported"),
    ("e-web-page.jpg", "pixels", "unsupported"),
    ("g-bomb.png", "pixels", "too_large"),
    ("i-link.jpg", "photos", "not_found"),
    ("j-noise.jpg", "pixels", "unsupported"),
    ("k-secret.jpg", "photos", "permission_denied"),
    ("l-pipe.jpg", "photos", "unsupported"),
];

fn write_bad(workplace: &Workplace) {
    let rocket = photograph("rocket.jpg");
    let chelsea = photograph("chelsea.png");
    workplace.write("in/b-cut-at-half.jpg", &rocket[..rocket.len() / 2]);
    workplace.write("in/b-cut-at-the-end.jpg", &rocket[..rocket.len() * 999 / 1000]);
    workplace.write("in/b-cut.png", &chelsea[..chelsea.len() / 3]);
    workplace.write("in/c-empty.jpg", "");
    workplace.write("in/c-nothing-but-a-marker.jpg", b"\xff\xd8\xff");
    workplace.write("in/e-text.jpg", "This is not a picture at all.\n");
    workplace.write("in/e-web-page.jpg", "<!DOCTYPE html>\n<html><title>404 Not Found</title></html>\n");
    workplace.write("in/g-bomb.png", bomb::png());
    symlink("nowhere.jpg", workplace.path("in/i-link.jpg")).expect("a link");
    workplace.write("in/j-noise.jpg", given("noise.jpg"));
    workplace.write("in/k-secret.jpg", &rocket);
    fs::set_permissions(workplace.path("in/k-secret.jpg"), Permissions::from_mode(0o000)).expect("a file of one's own");
    workplace.command(&["mkfifo"], &["in/l-pipe.jpg"]).expect(0);
}

/// A folder into which any user may write.
fn open_folder(workplace: &Workplace, name: &str) {
    fs::create_dir_all(workplace.path(name)).expect("a folder");
    fs::set_permissions(workplace.path(name), Permissions::from_mode(0o777)).expect("a folder of one's own");
}

#[test]
fn each_bad_file_is_one_reject_and_all_other_rows_are_what_they_would_be_without() {
    let workplace = Workplace::new();
    workplace.write("p.yaml", CLASSIFY);
    write_good(&workplace);
    open_folder(&workplace, "out");
    workplace.run(&["p.yaml"]).expect(0);
    let alone = workplace.read("out/labels.jsonl");
    assert_eq!(alone.iter().filter(|&&byte| byte == b'\n').count(), 10);
    fs::remove_file(workplace.path("out/labels.jsonl")).expect("an output");

    write_bad(&workplace);
    let reading: Vec<_> = unprivileged().iter().copied().chain(["cat", "in/k-secret.jpg"]).collect();
    workplace.command(&reading, &[]).expect(1);
    let said = run_unprivileged(&workplace, &["p.yaml", "--state", "out/state"]).expect(3);
    assert!(workplace.read("out/labels.jsonl") == alone, "the good rows differ");
    let rejects = workplace.rows("out/hostile.rejects.jsonl");
    let expected: Vec<_> =
        BAD.iter().map(|(name, node, code)| [format!("in/{name}"), (*node).to_owned(), (*code).to_owned()]).collect();
    assert_eq!(rejects.iter().map(told).collect::<Vec<_>>(), expected);
    for reject in &rejects {
        let (uri, message) = (reject["uri"].as_str().expect("a uri"), reject["message"].as_str().expect("a message"));
        assert!(message.contains(&format!("`{uri}`")), "{message}");
        assert!(!message.contains("os error"), "{message}");
    }
    for word in ["10 rows", "12 rejects", "out/hostile.rejects.jsonl"] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
}

#[test]
fn a_folder_is_a_reject_where_files_of_its_extension_are_asked_for_and_else_passed_over() {
    let workplace = Workplace::new();
    write_good(&workplace);
    workplace.write("in/m-folder.jpg/inside.txt", "not asked for");
    workplace.write("p.yaml", CLASSIFY);
    workplace.run(&["p.yaml"]).expect(0);
    workplace.write("p.yaml", CLASSIFY.replace("in/*", "in/*.jpg"));
    workplace.run(&["p.yaml"]).expect(3);
    let rejects = workplace.rows("out/hostile.rejects.jsonl");
    assert_eq!(rejects.iter().map(told).collect::<Vec<_>>(), [["in/m-folder.jpg", "photos", "is_directory"]]);
    assert_eq!(workplace.rows("out/labels.jsonl").len(), 7);
}

#[test]
fn a_decoder_that_panics_costs_its_row_alone() {
    let workplace = Workplace::new();
    write_good(&workplace);
    let pipeline = |breaks: &str| {
        let yaml = CLASSIFY.replace("  scores:", &format!("{breaks}  scores:"));
        workplace.write("p.yaml", yaml);
    };
    pipeline("");
    workplace.run(&["p.yaml"]).expect(0);
    let all = workplace.rows("out/labels.jsonl");
    pipeline("  breaks: {kind: transform.test_panic, with: {rows: [0, 4, 9]}}\n");
    let said = workplace.command(&[env!("CARGO_BIN_EXE_flowgpu-test"), "run"], &["p.yaml"]).expect(3);
    let expected: Vec<_> =
        all.iter().enumerate().filter(|(index, _)| ![0, 4, 9].contains(index)).map(|(_, row)| row.clone()).collect();
    assert_eq!(workplace.rows("out/labels.jsonl"), expected);
    let rejects = workplace.rows("out/hostile.rejects.jsonl");
    let broken = [0, 4, 9].map(|index: usize| [all[index]["uri"].as_str().expect("a uri"), "breaks", "panic"]);
    assert_eq!(rejects.iter().map(told).collect::<Vec<_>>(), broken);
    for reject in &rejects {
        assert!(
            reject["message"].as_str().expect("a message").contains(reject["uri"].as_str().expect("a uri")),
            "{reject}"
        );
    }
    assert!(!said.contains("RUST_BACKTRACE"), "{said}");
}

#[test]
fn a_run_of_bad_files_alone_ends_with_rejects_and_an_empty_output() {
    let workplace = Workplace::new();
    write_bad(&workplace);
    fs::remove_file(workplace.path("in/k-secret.jpg")).expect("a file");
    workplace.write("p.yaml", CLASSIFY);
    workplace.run(&["p.yaml"]).expect(3);
    assert_eq!(workplace.read("out/labels.jsonl"), b"");
    assert_eq!(workplace.rows("out/hostile.rejects.jsonl").len(), BAD.len() - 1);
}

#[test]
fn outputs_and_rejects_may_lie_in_the_current_folder() {
    let workplace = Workplace::new();
    workplace.write("good.png", photograph("chelsea.png"));
    workplace.write("text.png", "no picture");
    let nodes = r#"
  photos: {kind: source.files, with: {path: "*.png"}}
  pixels: {kind: decode.image}
  out: {kind: sink.jsonl, with: {path: rows.jsonl, columns: [uri, width]}}
"#;
    workplace.write("p.yaml", format!("name: here\nnodes:{nodes}"));
    workplace.run(&["p.yaml"]).expect(3);
    assert_eq!(workplace.rows("rows.jsonl"), [serde_json::json!({"uri": "good.png", "width": 451})]);
    assert_eq!(
        workplace.rows("here.rejects.jsonl").iter().map(told).collect::<Vec<_>>(),
        [["text.png", "pixels", "unsupported"]]
    );
    // Without rejects the file of an earlier run goes.
    workplace.write("text.png", photograph("coffee.png"));
    workplace.run(&["p.yaml", "--fresh"]).expect(0);
    assert_eq!(workplace.names("").iter().filter(|name| name.contains("rejects")).count(), 0);
}

#[test]
fn more_rejects_than_allowed_end_the_run_without_an_output() {
    let workplace = Workplace::new();
    write_good(&workplace);
    write_bad(&workplace);
    workplace.write("p.yaml", CLASSIFY);
    for limit in ["3", "10%"] {
        let said = workplace.run(&["p.yaml", "--max-rejects", limit]).expect(2);
        assert!(said.contains("max_rejects") && said.contains(limit), "{said}");
        assert!(!workplace.path("out/labels.jsonl").exists() && !workplace.path("out/hostile.rejects.jsonl").exists());
    }
    workplace.run(&["p.yaml", "--max-rejects", "60%"]).expect(3);
    assert_eq!(workplace.names("out"), ["hostile.rejects.jsonl", "labels.jsonl"]);
}
