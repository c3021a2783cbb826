//! Disks that fail in the middle of a run.

use crate::program::{Done, Folder, TESTING, done};
use crate::scene::{RUN, committed, figure, nothing_unfinished, pipeline, same, sums, undisturbed};

const ROWS: u64 = 500;

/// A run to which the disk does what `fault` says.
fn faulty(folder: &Folder, fault: &str) -> Done {
    done(folder.command(TESTING, &RUN).env("FLOWGPU_FAULT", fault).output().expect("the program starts"))
}

/// A run that takes long enough for some commits.
fn slow() -> String {
    sums(ROWS, 0).replace("batch: 1,", "batch: 1, micros: 200,")
}

/// The disk does what `fault` says, then it is well again.
fn check(expected: &Folder, fault: &str, told: &[&str]) {
    let folder = pipeline(&slow());
    folder.write("hung", "");
    let failed = faulty(&folder, fault);
    assert_eq!(failed.code, 1, "{fault}: {failed:?}");
    assert!(told.iter().all(|part| failed.stderr.contains(part)), "{fault}: {failed:?}");
    assert!(!failed.stderr.contains("panicked") && !failed.stderr.contains("os error"), "{fault}: {failed:?}");
    let acknowledged = committed(&folder);
    let done = folder.run(&RUN);
    assert_eq!(done.code, 0, "{fault}: {done:?}");
    // After the last step all is done already, and there is no report.
    if !done.stderr.contains("done already") {
        assert_eq!(figure(&folder, "resumed_at"), acknowledged, "{fault}: nothing acknowledged is lost");
    }
    same(expected, &folder, &["out.jsonl"]);
    nothing_unfinished(&folder);
}

#[test]
fn a_step_that_fails_ends_the_run_and_the_same_command_goes_on() {
    let (expected, _) = undisturbed(&sums(ROWS, 0));
    for step in ["write", "sync", "append", "rename"] {
        for when in ["before", "after"] {
            for n in [1, 3] {
                // There is one output, and it is renamed once.
                if step == "rename" && n > 1 {
                    continue;
                }
                check(
                    &expected,
                    &format!("{step}:{when}:{n}:enospc"),
                    &["no space left on the device", "free some space"],
                );
            }
        }
    }
    check(&expected, "cut:before:1:enospc", &["no space left on the device", "free some space"]);
}

#[test]
fn whatever_is_wrong_with_the_disk_is_told() {
    let (expected, _) = undisturbed(&sums(ROWS, 0));
    for step in ["write", "sync", "append"] {
        check(&expected, &format!("{step}:before:4:edquot"), &["the disk quota is used up", "free some space"]);
        check(&expected, &format!("{step}:before:4:erofs"), &["the file system is read-only"]);
        check(&expected, &format!("{step}:before:4:eio"), &["the disk reports an error"]);
    }
}

#[test]
fn a_failed_fsync_is_a_fault_at_whatever_turn_it_fails() {
    let (expected, _) = undisturbed(&sums(ROWS, 0));
    for n in [1, 2, 4, 5, 6, 7] {
        check(&expected, &format!("sync:before:{n}:eio"), &["the disk reports an error"]);
    }
}

/// A run on a file system of 16 MiB that is nearly full, and the same command after room was made. The file system goes
/// with the shell. Fails if it cannot be mounted although the user may do so.
#[expect(clippy::print_stdout, reason = "a test that was not made is worth knowing")]
#[test]
fn a_full_disk_ends_the_run_and_with_room_it_goes_on() {
    let rows = "  rows: {kind: source.synthetic, with: {rows: {count: 90000}}}
  tensor: {kind: transform.test_tensor, with: {shape: [16]}}
";
    let nodes = format!("{rows}  out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}\n");
    let expected = pipeline(&nodes);
    assert_eq!(expected.run(&RUN).code, 0);
    let n_bytes = std::fs::metadata(expected.path("out.jsonl")).expect("an output").len();
    assert!((8 << 20..14 << 20).contains(&n_bytes), "{n_bytes} bytes fit into 16 MiB, but not beside 12 MiB");

    let folder = Folder::new();
    folder.write("small/empty", "");
    let mount = "mount -t tmpfs -o size=16m tmpfs small";
    let may = done(folder.command("unshare", &["--mount", "sh", "-c", mount]).output().expect("`unshare` is there"));
    if may.code != 0 {
        println!("not tried: a file system cannot be mounted here: {}", may.stderr);
        return;
    }
    folder.write("p.yaml", &expected.read("p.yaml"));
    // The whole of it is there: pipeline, state, output, report.
    let script = format!(
        "{mount} && cp p.yaml small && head -c 12582912 /dev/zero >small/filler && cd small || exit 99
        \"$@\" 2>../first.txt; echo $? >../codes
        cp .flowgpu/p/journal ../journal; ls -A >../between
        rm filler
        \"$@\" 2>../second.txt; echo $? >>../codes
        ls -A >../after; cp out.jsonl r.json .."
    );
    let args = [&["--mount", "sh", "-c", &script, "sh", TESTING], &RUN[..]].concat();
    let ran = done(folder.command("unshare", &args).output().expect("`unshare` is there"));
    assert_eq!(folder.read("codes"), "1\n0\n", "{ran:?}\n{}\n{}", folder.read("first.txt"), folder.read("second.txt"));
    let first = folder.read("first.txt");
    assert!(first.contains("no space left on the device") && first.contains("free some space"), "{first}");
    let is_there = |names: &str, name| names.lines().any(|line| line == name);
    let (between, after) = (folder.read("between"), folder.read("after"));
    assert!(is_there(&between, ".out.jsonl.partial") && !is_there(&between, "out.jsonl"), "{between}");
    assert!(!is_there(&after, ".out.jsonl.partial"), "{after}");
    let second = folder.read("second.txt");
    // Had it died before its first commit it would begin at the first row.
    assert!(second.contains("p: resuming at ") || second.contains("starting at the first row"), "{second}");
    same(&expected, &folder, &["out.jsonl"]);
}
