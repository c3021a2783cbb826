//! Which rows a shard reads.

use std::collections::BTreeSet;

use crate::program::TESTING;
use crate::scene::{LINES, Scene, done};

fn uris(scene: &Scene, name: &str) -> Vec<String> {
    let row = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("a row");
    scene.read(name).lines().map(|line| row(line)["uri"].as_str().expect("a uri").to_owned()).collect()
}

#[test]
fn files_added_between_shards_belong_to_one_of_them() {
    let scene = Scene::new(40, LINES);
    for index in [0, 1] {
        scene.shard(index, 4, &[]).expect(3);
    }
    // Into slices that are done, and into slices that are not, one at their very end.
    for name in ["a", "p0005x", "p0019x", "p0025x", "z"] {
        scene.photo(&format!("photos/{name}.png"), 0);
    }
    for index in [2, 3] {
        scene.shard(index, 4, &[]).expect(3);
    }
    scene.merge(&[]).expect(3);
    let found: Vec<_> = [uris(&scene, "out/rows.jsonl"), uris(&scene, "out/p.rejects.jsonl")].concat();
    let distinct: BTreeSet<_> = found.iter().cloned().collect();
    assert_eq!(found.len(), distinct.len(), "none twice");
    let mut expected: BTreeSet<_> = (0..40).map(|number| format!("photos/p{number:04}.png")).collect();
    expected.extend(["p0025x", "z"].map(|name| format!("photos/{name}.png")));
    assert_eq!(distinct, expected);
}

#[test]
fn a_shard_whose_first_file_is_gone_says_so() {
    let scene = Scene::new(40, LINES);
    scene.shard(0, 4, &[]).expect(3);
    std::fs::remove_file(scene.path("photos/p0020.png")).expect("it was there");
    let told = scene.shard(2, 4, &[]);
    assert!(told.expect(2).contains("`photos/p0020.png`, with which shard 2 of 4 begins, is gone"), "{told:?}");
    assert!(told.told.contains("of-00004` and run every shard with `--fresh`"), "{told:?}");
}

#[test]
fn more_shards_than_rows_are_the_undivided_run_too() {
    let scene = Scene::new(7, LINES);
    let expected = scene.undivided();
    let told = scene.run(&["--shards", "16", "--shard", "0-15"]);
    told.expect(3);
    scene.merge(&["--shards", "16"]).expect(3);
    assert_eq!(scene.merged(), expected);
}

#[test]
fn synthetic_rows_are_divided_by_number() {
    let nodes = r#"
  rows: {kind: source.synthetic, with: {images: {count: 100, size: [9, 7], seed: 3}}}
  pixels: {kind: decode.image, with: {}}
  out: {kind: sink.jsonl, with: {path: out/rows.jsonl, columns: [uri, image]}}
"#;
    let scene = Scene::new(1, nodes);
    scene.run(&[]).expect(0);
    let expected = scene.read("out/rows.jsonl");
    scene.run(&["--shards", "7", "--shard", "0-6", "-q"]).expect(0);
    scene.merge(&["--shards", "7"]).expect(0);
    assert!(scene.read("out/rows.jsonl") == expected);
}

#[test]
fn what_is_asked_for_wrongly_is_told_before_anything_is_done() {
    let scene = Scene::new(3, LINES);
    let check = |args: &[&str], variable: Option<(&str, &str)>, parts: [&str; 2]| {
        let mut command = scene.command(TESTING, &[&["run", "p.yaml"], args].concat());
        command.envs(variable);
        let ended = done(command.output().expect("it starts"));
        let told = ended.expect(2);
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        assert!(scene.outputs().is_empty());
    };
    check(&["--shard", "3"], None, ["of how many?", "`--shards N`"]);
    check(&["--shards", "4"], None, ["which of the 4 shards", "`--shard`"]);
    check(&["--shards", "4", "--shard", "4"], None, ["there is no shard 4", "from 0 to 3"]);
    check(&["--shards", "4", "--shard", "3-1"], None, ["wanted a shard such as `3`", "3-1"]);
    check(&["--shards", "0", "--shard", "0"], None, ["--shards", "0"]);
    let auto = ["--shards", "4", "--shard", "auto"];
    check(&auto, None, ["none of `FLOWGPU_SHARD`", "is set"]);
    check(&auto, Some(("SLURM_ARRAY_TASK_ID", "4")), ["`SLURM_ARRAY_TASK_ID` is 4", "`--array=0-3`"]);
    check(&auto, Some(("JOB_COMPLETION_INDEX", "x")), ["`JOB_COMPLETION_INDEX` is `x`", "no number"]);
}
