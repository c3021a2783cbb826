//! Shards that die, shards that are run twice, and what comes out.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::program::TESTING;
use crate::scene::{JOIN, LINES, Scene, UNION, done};

/// A row takes so long that a shard is far from its end when it is killed.
const SLOW: [&str; 2] = ["--set", "micros=60000"];

/// Sixteen shards in sixteen processes at once, of which three are killed in the middle and run again, then a merge.
fn check_killed(nodes: &str, n_photos: usize) -> (Scene, BTreeMap<String, Vec<u8>>) {
    let scene = Scene::new(n_photos, nodes);
    let expected = scene.undivided();
    let killed = [3, 7, 15];
    thread::scope(|scope| {
        for index in 0..16 {
            let scene = &scene;
            scope.spawn(move || {
                if !killed.contains(&index) {
                    scene.shard(index, 16, &[]).expect(3);
                    return;
                }
                let mut child = scene.start(index, 16, &SLOW);
                scene.wait_for_cut(index, 16);
                child.kill().expect("it can be killed");
                let status = child.wait().expect("it ends");
                assert_eq!(status.code(), None, "it was not done before it was killed");
            });
        }
    });
    let told = scene.merge(&[]);
    let told = told.expect(1);
    assert!(told.contains("3 of the 16 shards of `p` cannot be merged yet"), "{told}");
    assert!(told.contains("`flowgpu run p.yaml --shards 16` with `--shard 3`, then `--shard 7`, then `--shard 15`"));
    assert!(told.contains("shard 7 was killed at "), "{told}");
    for index in killed {
        let before = scene.history(index, 16).expect("a journal").last_cut().expect("a cut").rows();
        let told = scene.shard(index, 16, &[]);
        assert!(told.expect(3).contains("resuming at "), "{told:?}");
        let history = scene.history(index, 16).expect("a journal");
        assert_eq!(history.sessions[1].resumed, before, "nothing that was durable is done again");
    }
    scene.merge(&[]).expect(3);
    (scene, expected)
}

#[track_caller]
fn assert_same(scene: &Scene, expected: &BTreeMap<String, Vec<u8>>) {
    let merged = scene.merged();
    assert_eq!(merged.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, bytes) in expected {
        assert!(merged[name] == *bytes, "{name} is other than that of the undivided run");
    }
}

#[test]
fn killed_shards_run_again_and_merged_are_the_undivided_run() {
    let (scene, expected) = check_killed(LINES, 640);
    assert_eq!(expected.keys().collect::<Vec<_>>(), ["p.rejects.jsonl", "rows.jsonl", "table.csv"]);
    assert_eq!(scene.read("out/rows.jsonl").lines().count(), 640 - 640 / 7);
    assert_same(&scene, &expected);
}

#[test]
fn sources_follow_each_other_in_the_merged_outputs_too() {
    let (scene, expected) = check_killed(UNION, 400);
    assert_eq!(scene.read("out/rows.jsonl").lines().count(), 600 - 400 / 7 - 200 / 7);
    assert_same(&scene, &expected);
}

#[test]
fn joined_branches_are_merged_as_they_were_joined() {
    let (scene, expected) = check_killed(JOIN, 400);
    let first = scene.read("out/rows.jsonl").lines().next().expect("a row").to_owned();
    assert_eq!(first, r#"{"uri":"photos/p0000.png","width":1,"tall":1}"#);
    assert_same(&scene, &expected);
}

#[test]
fn a_second_process_on_a_shard_leaves_and_says_who_has_it() {
    let scene = Scene::new(640, LINES);
    let mut child = scene.start(5, 16, &SLOW);
    scene.wait_for_cut(5, 16);
    let second = scene.shard(5, 16, &[]);
    let told = second.expect(1);
    assert!(
        told.contains(&format!("shard 00005-of-00016 of `p` is being run already, by pid {}", child.id())),
        "{told}"
    );
    let merge = scene.merge(&[]);
    assert!(merge.expect(1).contains(&format!("shard 5 is being run by pid {} at ", child.id())), "{merge:?}");
    // Another shard is none of its business.
    scene.shard(6, 16, &[]).expect(3);
    child.kill().expect("it can be killed");
    done(child.wait_with_output().expect("it ends"));
    scene.shard(5, 16, &[]).expect(3);
}

#[test]
fn a_finished_shard_does_nothing_and_repeats_its_code() {
    let scene = Scene::new(64, LINES);
    scene.shard(2, 8, &[]).expect(3);
    let (outputs, history) = (scene.outputs(), scene.history(2, 8));
    let again = scene.shard(2, 8, &[]);
    again.expect(3);
    assert_eq!(scene.outputs(), outputs);
    assert_eq!(scene.history(2, 8), history, "no session of it");
}

#[test]
fn a_wish_to_stop_ends_a_series_and_the_same_command_goes_on() {
    let scene = Scene::new(640, LINES);
    let expected = scene.undivided();
    let series = ["run", "p.yaml", "--shards", "16", "--shard", "0-15", "--grace", "10ms"];
    let mut command = scene.command(TESTING, &[&series[..], &SLOW].concat());
    let child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    scene.wait_for_cut(0, 16);
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
    done(child.wait_with_output().expect("it ends")).expect(130);
    assert!(scene.history(1, 16).is_none(), "the next shard was not begun");
    let again = done(scene.command(TESTING, &series).output().expect("it starts"));
    assert!(again.expect(3).contains("resuming at "), "{again:?}");
    scene.merge(&[]).expect(3);
    assert_same(&scene, &expected);
}

#[test]
fn shards_of_machines_with_disks_of_their_own_are_merged_where_they_are_brought_together() {
    let (here, there) = (Scene::new(100, UNION), Scene::new(100, UNION));
    let expected = here.undivided();
    here.run(&["--shards", "8", "--shard", "0-3", "-q"]).expect(3);
    there.run(&["--shards", "8", "--shard", "4-7", "-q"]).expect(3);
    for index in 4..8 {
        let name = format!("{index:05}-of-00008");
        let state = format!(".flowgpu/p/{name}");
        fs::create_dir_all(here.path(&state)).expect("a folder");
        for entry in fs::read_dir(there.path(&state)).expect("a folder") {
            let path = entry.expect("an entry").path();
            fs::copy(&path, here.path(&state).join(path.file_name().expect("a name"))).expect("a copy");
        }
    }
    for (name, bytes) in there.outputs() {
        fs::write(here.path(&format!("out/{name}")), bytes).expect("a file");
    }
    here.merge(&[]).expect(3);
    assert_same(&here, &expected);
}
