//! A finished run that is started again, and runs that begin anew.

use std::fs;

use rustix::process::Signal;

use crate::program::{Folder, wait_for};
use crate::scene::{
    RUN, committed, kill_at, nothing_unfinished, pipeline, rows_out, same, sums, undisturbed, write_pipeline,
};

fn with_rejects() -> String {
    sums(500, 0).replace(
        "  tensor: {kind: transform.test_tensor, from: rows,",
        "  some: {kind: transform.test_reject, from: rows, with: {rows: [3, 5]}}\n  tensor: {kind: transform.test_tensor,",
    )
}

fn inode(folder: &Folder, name: &str) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(folder.path(name)).expect("a file"))
}

#[test]
fn a_finished_run_says_so_does_nothing_and_repeats_its_code() {
    for (nodes, code, told) in
        [(sums(500, 0), 0, "500 rows; `--fresh`"), (with_rejects(), 3, "500 rows, 2 rejects; `--fresh`")]
    {
        let (folder, first) = undisturbed(&nodes);
        assert_eq!(first.code, code, "{first:?}");
        let (before, records) = (inode(&folder, "out.jsonl"), committed(&folder));
        let again = folder.run(&["run", "p.yaml"]);
        assert_eq!(again.code, code, "{again:?}");
        assert!(again.stderr.contains("p: done already at 20") && again.stderr.contains(told), "{again:?}");
        assert_eq!(again.stdout, "");
        assert_eq!((inode(&folder, "out.jsonl"), committed(&folder)), (before, records));
    }
}

#[test]
fn an_output_that_is_gone_or_another_is_made_again() {
    let (folder, _) = undisturbed(&with_rejects());
    let expected = folder.read("out.jsonl");
    let damage: [&dyn Fn(&Folder); 3] = [
        &|folder| fs::remove_file(folder.path("out.jsonl")).expect("a file"),
        &|folder| folder.write("out.jsonl", "another\n"),
        &|folder| fs::remove_file(folder.path("p.rejects.jsonl")).expect("a file"),
    ];
    for damage in damage {
        damage(&folder);
        let done = folder.run(&RUN);
        assert_eq!(done.code, 3, "{done:?}");
        assert!(done.stderr.contains("is not as the finished run has left it: beginning anew\n"), "{done:?}");
        assert_eq!(folder.read("out.jsonl"), expected);
        assert_eq!(folder.rows("p.rejects.jsonl").len(), 2);
    }
}

#[test]
fn fresh_begins_anew_and_the_old_output_stays_until_the_new_is_complete() {
    let (folder, _) = undisturbed(&sums(500, 300));
    let old = folder.read("out.jsonl");
    let before = inode(&folder, "out.jsonl");
    fs::remove_file(folder.path("hung")).expect("a file");
    let fresh = [&RUN[..], &["--fresh"]].concat();
    let run = folder.start(&fresh);
    // Until the model hangs the journal may be that of the finished run.
    wait_for("the model to hang", || folder.path("hung").exists().then_some(()));
    wait_for("rows to be committed", || (committed(&folder) == 300).then_some(()));
    run.signal(Signal::KILL);
    run.killed();
    assert_eq!((folder.read("out.jsonl"), inode(&folder, "out.jsonl")), (old.clone(), before));
    // What it had begun is gone on with, unless it is to be forgotten too.
    let done = folder.run(&fresh);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(rows_out(&folder, "rows"), 500);
    assert_eq!(folder.read("out.jsonl"), old);
    assert_ne!(inode(&folder, "out.jsonl"), before);
    nothing_unfinished(&folder);
}

#[test]
fn without_a_journal_every_run_begins_at_the_first_row() {
    let folder = Folder::new();
    write_pipeline(&folder, ", journal: \"off\"", &sums(500, 300));
    let run = folder.start(&RUN);
    wait_for("the model to hang", || folder.path("hung").exists().then_some(()));
    run.signal(Signal::KILL);
    run.killed();
    for _ in 0..2 {
        let done = folder.run(&RUN);
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(rows_out(&folder, "rows"), 500);
    }
    assert_eq!(folder.names("."), ["hung", "out.jsonl", "p.yaml", "r.json"]);
}

#[test]
fn an_output_that_is_a_stream_keeps_no_journal() {
    let nodes = sums(50, 0).replace("path: out.jsonl", "path: \"-\"");
    let folder = pipeline(&nodes);
    folder.write("hung", "");
    for _ in 0..2 {
        let done = folder.run(&RUN);
        assert_eq!((done.code, done.stdout.lines().count()), (0, 50), "{done:?}");
    }
    assert_eq!(folder.names("."), ["hung", "p.yaml", "r.json"]);
}

#[test]
fn a_limited_run_goes_on_when_the_limit_is_larger_or_gone() {
    let (expected, _) = undisturbed(&with_rejects());
    let folder = pipeline(&with_rejects());
    folder.write("hung", "");
    let limited = |limit: &'static str| [&RUN[..], &["--limit", limit]].concat();
    let done = folder.run(&limited("100"));
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!((folder.rows("out.jsonl").len(), rows_out(&folder, "rows")), (98, 100));
    let before = inode(&folder, "out.jsonl");
    // As many or fewer are there already.
    for limit in ["100", "50"] {
        let done = folder.run(&limited(limit));
        assert_eq!(done.code, 3, "{done:?}");
        assert!(done.stderr.contains("done already at "), "{done:?}");
        assert_eq!(inode(&folder, "out.jsonl"), before);
    }
    let done = folder.run(&limited("220"));
    assert!(done.code == 3 && done.stderr.contains("p: resuming at 100 rows\n"), "{done:?}");
    assert_eq!((folder.rows("out.jsonl").len(), rows_out(&folder, "rows")), (218, 120));
    let done = folder.run(&RUN);
    assert!(done.code == 3 && done.stderr.contains("p: resuming at 220 rows\n"), "{done:?}");
    assert_eq!(rows_out(&folder, "rows"), 280);
    same(&expected, &folder, &["out.jsonl", "p.rejects.jsonl"]);
    nothing_unfinished(&folder);
    assert!(folder.run(&RUN).stderr.contains("done already at "));
}

#[test]
fn a_limited_run_that_goes_on_keeps_its_output_until_the_longer_one_is_complete() {
    let folder = pipeline(&sums(500, 300));
    assert_eq!(folder.run(&[&RUN[..], &["--limit", "100"]].concat()).code, 0);
    let old = folder.read("out.jsonl");
    assert_eq!(kill_at(&folder, &RUN, 300), 300);
    assert_eq!(folder.read("out.jsonl"), old);
    let done = folder.run(&RUN);
    assert!(done.code == 0 && done.stderr.contains("p: resuming at 300 of 500 rows (60 %)\n"), "{done:?}");
    same(&undisturbed(&sums(500, 0)).0, &folder, &["out.jsonl"]);
}
