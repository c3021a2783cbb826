//! Input files that are edited, added and removed between two sessions of a run.

use std::fs;

use image::{ImageFormat, RgbImage};
use serde_json::{Value as Json, json};

use crate::program::{Done, Folder};
use crate::scene::{RUN, kill_at, rows_out, write_pipeline};

/// The run hangs on this row, so all before it is done.
const HANGS_AT: u64 = 6;

fn nodes() -> String {
    format!(
        "  files: {{kind: source.files, with: {{path: \"in/*.png\"}}}}
  pixels: {{kind: decode.image}}
  sizes: {{kind: transform.select, with: {{keep: [uri, width]}}}}
  tensor: {{kind: transform.test_tensor, with: {{shape: [1], numbered: true}}}}
  sums: {{kind: infer.test, with: {{n: 1, batch: 1, hang: {{rows: [{HANGS_AT}], once: hung}}}}}}
  out: {{kind: sink.jsonl, with: {{path: out.jsonl, columns: [uri, width]}}}}
"
    )
}

/// Makes or overwrites a picture of this width.
fn picture(folder: &Folder, name: &str, width: u32) {
    fs::create_dir_all(folder.path("in")).expect("a folder");
    RgbImage::new(width, 2).save_with_format(folder.path(&format!("in/{name}.png")), ImageFormat::Png).expect("a file");
}

/// A run over `b`, `d`, `f` … `t`, ten pictures of width 1 to 10, that was killed when the first six were done.
fn killed(on_change: &str) -> Folder {
    let folder = Folder::new();
    write_pipeline(&folder, &format!(", on_change: {on_change}"), &nodes());
    for (number, name) in (b'b'..=b't').step_by(2).enumerate() {
        picture(&folder, &char::from(name).to_string(), number as u32 + 1);
    }
    assert_eq!(kill_at(&folder, &RUN, HANGS_AT), HANGS_AT);
    folder
}

/// Name and width of each row of the output.
fn rows(folder: &Folder) -> Vec<(String, u64)> {
    let row = |row: &Json| {
        let name = row["uri"].as_str().expect("a text").trim_start_matches("in/").trim_end_matches(".png").to_owned();
        (name, row["width"].as_u64().expect("a number"))
    };
    folder.rows("out.jsonl").iter().map(row).collect()
}

fn named(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(name, width)| ((*name).to_owned(), *width)).collect()
}

/// Everything that can happen to files: one that is done is edited, one that is not; one of each is removed; two are
/// added, one where it would have come first.
fn meddle(folder: &Folder) {
    picture(folder, "d", 50);
    picture(folder, "p", 60);
    fs::remove_file(folder.path("in/f.png")).expect("a file");
    fs::remove_file(folder.path("in/r.png")).expect("a file");
    picture(folder, "a", 70);
    picture(folder, "s", 80);
}

fn rejected(folder: &Folder) -> Vec<Json> {
    folder.rows("p.rejects.jsonl").iter().map(|row| json!([row["uri"], row["code"]])).collect()
}

#[test]
fn by_default_what_is_done_stays_and_what_is_new_comes_last() {
    let folder = killed("keep");
    meddle(&folder);
    let done = folder.run(&RUN);
    assert_eq!(done.code, 3, "{done:?}");
    let expected = [
        ("b", 1),
        ("d", 2),
        ("f", 3),
        ("h", 4),
        ("j", 5),
        ("l", 6), // done before
        ("n", 7),
        ("p", 60),
        ("t", 10), // as they are now; `r` is gone
        ("a", 70),
        ("s", 80), // new
    ];
    assert_eq!(rows(&folder), named(&expected));
    assert_eq!(rejected(&folder), [json!(["in/r.png", "not_found"])]);
    assert_eq!(rows_out(&folder, "files"), 5);
    assert!(done.stderr.contains("1 file that is done has changed since (`in/d.png`)"), "{done:?}");
    assert!(done.stderr.contains("1 file that is done has gone since (`in/f.png`)"), "{done:?}");
}

#[test]
fn reprocessing_goes_back_to_the_first_that_has_changed() {
    let folder = killed("reprocess");
    meddle(&folder);
    let done = folder.run(&RUN);
    assert_eq!(done.code, 3, "{done:?}");
    let found = rows(&folder);
    // Commits come where they come: what is before the edited file is kept, or done again with the same result. The file
    // that is gone is behind it, so it is read again, in vain.
    let expected =
        [("b", 1), ("d", 50), ("h", 4), ("j", 5), ("l", 6), ("n", 7), ("p", 60), ("t", 10), ("a", 70), ("s", 80)];
    assert_eq!(found, named(&expected));
    assert_eq!(rejected(&folder), [json!(["in/f.png", "not_found"]), json!(["in/r.png", "not_found"])]);
    assert!(done.stderr.contains("(`in/d.png`)"), "{done:?}");
}

fn refused(folder: &Folder, told: &str) -> Done {
    let done = folder.run(&RUN);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains(told) && done.stderr.contains("on_change"), "{told}: {done:?}");
    done
}

#[test]
fn a_run_may_be_kept_from_going_on_by_any_change() {
    let folder = killed("fail");
    picture(&folder, "d", 50);
    refused(&folder, "in/d.png");
    // What was written again counts as changed, whatever is in it.
    picture(&folder, "d", 2);
    fs::remove_file(folder.path("in/f.png")).expect("a file");
    refused(&folder, "in/f.png");
}

#[test]
fn new_files_may_keep_a_run_from_going_on_too() {
    let folder = killed("fail");
    picture(&folder, "s", 80);
    refused(&folder, "in/s.png");
    fs::remove_file(folder.path("in/s.png")).expect("a file");
    let done = folder.run(&RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(rows(&folder).len(), 10);
}

#[test]
fn files_that_are_not_touched_are_no_change() {
    for on_change in ["keep", "reprocess", "fail"] {
        let folder = killed(on_change);
        let done = folder.run(&RUN);
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(rows_out(&folder, "files"), 10 - HANGS_AT);
        assert_eq!(
            rows(&folder),
            (0..10).map(|n| (char::from(b'b' + 2 * n).to_string(), u64::from(n) + 1)).collect::<Vec<_>>()
        );
    }
}
