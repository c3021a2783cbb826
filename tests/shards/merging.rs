//! When shards are merged, and when not.

use std::fs;
use std::process::Stdio;

use engine::durable::Lock;

use crate::program::TESTING;
use crate::scene::{LINES, Scene, done};

/// A run of four shards, all done.
fn finished() -> Scene {
    let scene = Scene::new(40, LINES);
    scene.run(&["--shards", "4", "--shard", "0-3", "-q"]).expect(3);
    scene
}

#[track_caller]
fn refused(scene: &Scene, args: &[&str], code: i32, parts: &[&str]) {
    let ended = scene.merge(args);
    let told = ended.expect(code);
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    assert!(scene.merged().is_empty(), "nothing has its name");
}

#[test]
fn what_is_merged_already_is_not_merged_again() {
    let scene = finished();
    let first = scene.merge(&[]);
    assert!(first.expect(3).contains("p: 4 shards merged\n"), "{first:?}");
    assert!(first.told.contains("  out/rows.jsonl: 35 rows, "), "{first:?}");
    assert!(first.told.contains("  out/p.rejects.jsonl: 5 rejects\n"), "{first:?}");
    let merged = scene.merged();
    let again = scene.merge(&[]);
    assert!(again.expect(3).contains("4 shards merged already, at 20"), "{again:?}");
    // The parts may go.
    for (name, _) in scene.outputs().iter().filter(|(name, _)| name.contains("-of-")) {
        fs::remove_file(scene.path(&format!("out/{name}"))).expect("it is there");
    }
    scene.merge(&["-q"]).expect(3);
    assert_eq!(scene.merged(), merged);
    // A shard that was run again is merged again.
    scene.shard(2, 4, &["--fresh", "-q"]).expect(3);
    let parts_gone = scene.merge(&[]);
    assert!(parts_gone.expect(1).contains("shard 0 `out/rows-00000-of-00004.jsonl` is gone"), "{parts_gone:?}");
}

#[test]
fn shards_that_are_not_there_are_told_with_what_to_run() {
    let scene = Scene::new(40, LINES);
    refused(&scene, &[], 2, &["no shard of `p` has been run"]);
    scene.shard(1, 4, &[]).expect(3);
    refused(&scene, &[], 1, &["3 of the 4 shards", "shard 0 was not begun", "`--shard 0`, then `--shard 2-3`"]);
    scene.shard(1, 5, &[]).expect(3);
    refused(&scene, &[], 2, &["`p` was divided into 4 and 5 shards", "`--shards N`"]);
}

#[test]
fn a_shard_that_was_limited_is_not_whole() {
    let scene = finished();
    scene.shard(1, 4, &["--fresh", "--limit", "3"]).expect(0);
    refused(&scene, &[], 1, &["shard 1 was ended by a limit on its rows"]);
    // Without the limit it goes on.
    scene.shard(1, 4, &[]).expect(3);
    scene.merge(&[]).expect(3);
}

#[test]
fn an_output_that_is_not_what_was_written_is_not_merged() {
    let scene = finished();
    let path = scene.path("out/table-00002-of-00004.csv");
    let whole = fs::read(&path).expect("it is there");
    fs::write(&path, &whole[..whole.len() - 1]).expect("a file");
    refused(&scene, &[], 1, &["shard 2 `out/table-00002-of-00004.csv` has", "were written", "`--shard 2`"]);
    // As long as it was, but with a line less.
    fs::write(&path, String::from_utf8(whole).expect("text").replacen("photos/p0021.png,", "photos\np0021.png,", 1))
        .expect("a file");
    refused(&scene, &[], 1, &["table-00002-of-00004.csv` is not as its shard has left it", "rows"]);
    fs::remove_file(&path).expect("it is there");
    refused(&scene, &[], 1, &["shard 2 `out/table-00002-of-00004.csv` is gone"]);
    scene.shard(2, 4, &["-q"]).expect(3);
    scene.merge(&[]).expect(3);
}

#[test]
fn shards_of_different_pipelines_do_not_fit_together() {
    let scene = finished();
    let pipeline = scene.read("p.yaml");
    scene.write("p.yaml", &pipeline.replace("decode.image, with: {}", "decode.image, with: {resize: 5}"));
    refused(&scene, &[], 2, &["`p` is another pipeline than the one that its shards were run with", "`resize`"]);
    scene.shard(3, 4, &["-q"]).expect(3);
    scene.write("p.yaml", &pipeline);
    refused(&scene, &[], 1, &["shard 3 was run with another pipeline than the others", "`resize`"]);
}

#[test]
fn shards_that_were_divided_otherwise_do_not_fit_together() {
    let scene = finished();
    fs::remove_dir_all(scene.path(".flowgpu/p/of-00004")).expect("the boundaries");
    scene.photo("photos/q.png", 0);
    scene.shard(1, 4, &["--fresh", "-q"]).expect(3);
    refused(&scene, &[], 1, &["shard 1 was run when its sources were divided otherwise than for the others"]);
    scene.run(&["--shards", "4", "--shard", "0-3", "--fresh", "-q"]).expect(3);
    scene.merge(&[]).expect(3);
    assert_eq!(scene.read("out/rows.jsonl").lines().count(), 36);
}

#[test]
fn two_merges_do_not_collide() {
    let scene = finished();
    let lock = Lock::take(&scene.path(".flowgpu/p/lock"), "a test").expect("a file").expect("nobody has it");
    let me = format!("`p` is being merged or run already, by pid {}", std::process::id());
    refused(&scene, &[], 1, &[&me]);
    drop(lock);
    scene.merge(&[]).expect(3);
}

#[test]
fn a_merge_that_dies_anywhere_is_done_again() {
    let scene = Scene::new(40, LINES);
    let expected = scene.undivided();
    scene.run(&["--shards", "4", "--shard", "0-3", "-q"]).expect(3);
    let points =
        ["write:before:1", "write:after:1", "sync:before:2", "rename:before:1", "rename:after:1", "rename:after:2"];
    for point in points.into_iter().chain(["rename:before:4", "rename:after:4"]) {
        for (name, bytes) in &expected {
            fs::write(scene.path(&format!("out/{name}")), [bytes, &b"older"[..]].concat()).expect("a file");
        }
        // As if nothing had been merged before.
        let _ = fs::remove_file(scene.path(".flowgpu/p/of-00004/merged"));
        let mut command = scene.command(TESTING, &["merge", "p.yaml"]);
        let ended = done(command.env("FLOWGPU_FAULT", format!("{point}:kill")).output().expect("it starts"));
        assert_eq!(ended.code, None, "{point}: it was not killed");
        for (name, bytes) in &expected {
            let found = fs::read(scene.path(&format!("out/{name}"))).expect("the output");
            assert!(found == *bytes || found.ends_with(b"older"), "{point}: {name} is neither the old nor the new one");
        }
        scene.merge(&[]).expect(3);
        assert_eq!(scene.merged(), expected, "{point}");
    }
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let scene = finished();
    scene.write("out/rows.jsonl", "old\n");
    let mut command = scene.command(TESTING, &["merge", "p.yaml"]);
    let ended = done(command.env("FLOWGPU_FAULT", "write:before:2:enospc").output().expect("it starts"));
    assert!(ended.expect(1).contains("no space left on the device"), "{ended:?}");
    assert_eq!(scene.read("out/rows.jsonl"), "old\n");
    scene.merge(&[]).expect(3);
}

#[test]
fn an_undivided_run_that_was_stopped_does_not_lose_what_it_has() {
    let scene = Scene::new(100, LINES);
    let expected = scene.undivided();
    let mut command = scene.command(TESTING, &["run", "p.yaml", "--set", "micros=60000"]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
    scene.wait_for_cut_at(".flowgpu/p");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    scene.run(&["--shards", "4", "--shard", "0-3", "-q"]).expect(3);
    let refused = scene.merge(&[]);
    assert!(refused.expect(2).contains("an undivided run of `p` is not done"), "{refused:?}");
    let resumed = scene.run(&[]);
    assert!(resumed.expect(3).contains("resuming at "), "{resumed:?}");
    scene.merge(&[]).expect(3);
    assert_eq!(scene.merged(), expected);
}

#[test]
fn what_an_earlier_run_left_goes_when_the_merged_has_its_name() {
    let scene = Scene::new(6, LINES);
    scene.write("out/rows.jsonl", "old\n");
    scene.write("out/p.rejects.jsonl", "old\n");
    scene.run(&["--shards", "2", "--shard", "0-1"]).expect(0);
    assert_eq!(scene.read("out/rows.jsonl"), "old\n");
    scene.merge(&[]).expect(0);
    assert_eq!(scene.read("out/rows.jsonl").lines().count(), 6);
    assert!(!scene.path("out/p.rejects.jsonl").exists(), "there are no rejects");
}

#[test]
fn arrays_stay_apart_beside_a_list_of_them() {
    let nodes = r#"
  rows: {kind: source.synthetic, with: {images: {count: 10, size: [9, 7]}}}
  pixels: {kind: decode.image, with: {resize: [4, 2]}}
  out: {kind: sink.npy, with: {path: out/pixels.npy}}
"#;
    let scene = Scene::new(1, nodes);
    scene.run(&["--shards", "3", "--shard", "0-2"]).expect(0);
    let told = scene.merge(&[]);
    assert!(told.expect(0).contains("  out/pixels.manifest.json: a list of 3 parts, 10 rows\n"), "{told:?}");
    let manifest: serde_json::Value = serde_json::from_str(&scene.read("out/pixels.manifest.json")).expect("JSON");
    let parts = manifest["parts"].as_array().expect("parts");
    let rows: Vec<_> = parts.iter().map(|part| part["rows"].as_u64().expect("rows")).collect();
    assert_eq!(rows, [3, 3, 4]);
    let mut ids = String::new();
    for (index, part) in parts.iter().enumerate() {
        let path = part["path"].as_str().expect("a path");
        assert_eq!(path, format!("out/pixels-{index:05}-of-00003.npy"));
        let array = fs::read(scene.path(path)).expect("the part");
        assert_eq!(array.len() as u64, part["bytes"].as_u64().expect("bytes"));
        assert!(array.starts_with(b"\x93NUMPY"));
        ids += &scene.read(part["beside"][0]["path"].as_str().expect("a path"));
    }
    assert_eq!(ids, (0..10).map(|number| format!("\"synthetic/{number}\"\n")).collect::<String>());
}
