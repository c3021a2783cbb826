//! `flowgpu rejects`: by code and node, with examples, and what to do next.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::program::{Done, Folder, SHIPPED, done};
use crate::scene::{as_files, run};

fn reject(uri: &str, node: &str, code: &str) -> String {
    format!(
        "{{\"id\": \"{uri}\", \"uri\": \"{uri}\", \"node\": \"{node}\", \"code\": \"{code}\", \"message\": \"`{uri}` is bad\"}}\n"
    )
}

fn told(folder: &Folder, args: &[&str]) -> Done {
    let args: Vec<_> = ["rejects"].iter().chain(args).copied().collect();
    done(folder.command(SHIPPED, &args).output().expect("the program starts"))
}

fn folder() -> Folder {
    let folder = Folder::new();
    let lines: Vec<_> = (0..1500)
        .map(|number| match number {
            0 => "{\"uri\": \"cut".to_owned() + "\n",
            1..=3 => reject(&format!("{number}.jpg"), "photos", "not_found"),
            4..=10 => reject(&format!("{number}.jpg"), "scores", "too_large"),
            _ => reject(&format!("{number}.jpg"), "pixels", "too_large"),
        })
        .collect();
    folder.write("out/p.rejects.jsonl", &lines.concat());
    folder
}

const TEXT: &str = "\
1,499 rejects in out/p.rejects.jsonl
  too_large        1,496   99 %
    in pixels      1,489   99 %
      `11.jpg` is bad
      `12.jpg` is bad
      `13.jpg` is bad
    in scores          7    1 %
      `4.jpg` is bad
      `5.jpg` is bad
      `6.jpg` is bad
  not_found            3    1 %
    in photos          3    1 %
      `1.jpg` is bad
      `2.jpg` is bad
      `3.jpg` is bad
  1 line is no reject
    out/p.rejects.jsonl, line 1: EOF while parsing a string at column 12
to run them again, put this in the place of the source, in a pipeline file with another `name` beside the first one:
  again: {kind: source.rejects, with: {path: out/p.rejects.jsonl, codes: [too_large]}}
";

#[test]
fn rejects_are_summed_up_most_frequent_first() {
    let folder = folder();
    let done = told(&folder, &["out/p.rejects.jsonl"]);
    assert_eq!((done.code, &*done.stdout, &*done.stderr), (0, TEXT, ""));
}

#[test]
fn packed_files_several_files_and_standard_input_are_read() {
    let folder = folder();
    let whole = folder.read("out/p.rejects.jsonl");
    fs::write(folder.path("b.zst"), zstd::encode_all(whole.as_bytes(), 1).expect("memory")).expect("a file");
    let mut child = folder.command(SHIPPED, &["rejects", "out/p.rejects.jsonl", "b.zst", "-", "--format", "json"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(reject("x.jpg", "new", "io").as_bytes()).expect("it reads");
    let told = done(child.wait_with_output().expect("it ends"));
    assert_eq!(told.code, 0, "{told:?}");
    let told: serde_json::Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_eq!(told["files"], serde_json::json!(["out/p.rejects.jsonl", "b.zst", "standard input"]));
    assert_eq!((told["total"].as_u64(), told["damaged"]["total"].as_u64()), (Some(2999), Some(2)));
    assert_eq!(told["damaged"]["first"][1]["file"], "b.zst");
    let codes: Vec<_> = told["codes"].as_array().expect("codes").iter().map(|code| &code["code"]).collect();
    assert_eq!(codes, ["too_large", "not_found", "io"]);
    assert_eq!(told["codes"][2]["nodes"][0]["examples"][0]["message"], "`x.jpg` is bad");
    let share = told["codes"][0]["share"].as_f64().expect("a number");
    assert!((share - 2992.0 / 2999.0).abs() < 1e-9);
}

#[test]
fn a_pipeline_names_its_reject_file_and_the_line_to_paste_works() {
    let folder = Folder::new();
    as_files(&folder);
    let source = "source.files, with: {path: photos/*.png}";
    assert_eq!(run(&folder, "first", source, 100).code, 3);
    let above = folder.path(".").join("..");
    let file = folder.path("first.yaml");
    let args = ["rejects", file.to_str().expect("UTF-8")];
    let told = done(folder.command(SHIPPED, &args).current_dir(above).output().expect("the program starts"));
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stdout.starts_with("4 rejects in "), "{}", told.stdout);
    let again = told.stdout.lines().last().expect("lines").trim();
    assert_eq!(again, "again: {kind: source.rejects, with: {path: out/first.rejects.jsonl}}");
    let again = again.strip_prefix("again: {kind: ").and_then(|rest| rest.strip_suffix('}')).expect("a node");
    assert_eq!(run(&folder, "again", again, 1_000_000).code, 0);
    let told = crate::command::told(&folder, &["again.yaml"]);
    assert_eq!((told.code, &*told.stdout), (0, "no rejects in out/again.rejects.jsonl\n"));
}

#[test]
fn the_rejects_of_shards_are_taken_together() {
    let folder = Folder::new();
    as_files(&folder);
    crate::scene::pipeline(&folder, "first", "source.files, with: {path: photos/*.png}", 100);
    for shard in ["0", "1"] {
        let done = folder.run(&["run", "first.yaml", "--shards", "2", "--shard", shard]);
        assert_eq!(done.code, 3, "{done:?}");
    }
    let told = told(&folder, &["first.yaml"]);
    assert!(told.stdout.starts_with("4 rejects in 2 files\n"), "{told:?}");
    assert!(told.stdout.lines().last().expect("lines").contains("path: [out/"), "{}", told.stdout);
}

#[test]
fn a_file_that_is_not_there_gets_the_nearest_name() {
    let folder = folder();
    let done = told(&folder, &["out/p.reject.jsonl"]);
    assert_eq!(done.code, 2);
    let expected = "error: `out/p.reject.jsonl` does not exist\n  help: did you mean `out/p.rejects.jsonl`?\n";
    assert_eq!((&*done.stdout, &*done.stderr), ("", expected));
    assert_eq!(told(&folder, &["out"]).code, 2);
}

#[test]
fn a_file_that_ends_early_is_summed_up_as_far_as_it_goes() {
    let folder = folder();
    let packed = zstd::encode_all(folder.read("out/p.rejects.jsonl").as_bytes(), 1).expect("memory");
    fs::write(folder.path("cut.zst"), &packed[..packed.len() - 20]).expect("a file");
    let done = told(&folder, &["cut.zst"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("nothing can be read from here on"), "{}", done.stdout);
}
