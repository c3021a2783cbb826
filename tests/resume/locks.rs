//! Two runs of one pipeline at once.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::program::{Folder, TESTING, done};
use crate::scene::{RUN, committed, pipeline, same, stuck_at, sums, undisturbed, write_pipeline};

#[test]
fn the_second_leaves_and_says_who_is_at_work() {
    let nodes = sums(500, 300);
    let folder = pipeline(&nodes);
    let first = stuck_at(&folder, &RUN, 300);
    let pid = first.child.id();
    for args in [&RUN[..], &[&RUN[..], &["--fresh"]].concat()] {
        let second = folder.run(args);
        assert_eq!(second.code, 1, "{second:?}");
        assert!(second.stderr.contains(&format!("`p` is being run already, by pid {pid}")), "{second:?}");
    }
    assert_eq!(committed(&folder), 300, "the second has done nothing to what the first has done");
    let note = folder.read(".flowgpu/p/lock");
    assert!(note.starts_with(&format!("pid {pid} on ")) && note.contains(" since 20"), "{note}");
    // The lock goes with its process, however that ends.
    first.signal(Signal::KILL);
    first.killed();
    assert_eq!(folder.run(&RUN).code, 0);
    same(&undisturbed(&nodes).0, &folder, &["out.jsonl"]);
}

#[test]
fn another_pipeline_with_the_same_output_leaves_too() {
    let nodes = sums(500, 300);
    let folder = pipeline(&nodes);
    let first = stuck_at(&folder, &RUN, 300);
    folder.write("q.yaml", &format!("name: q\nnodes:\n{nodes}"));
    let second = folder.run(&["run", "q.yaml"]);
    assert_eq!(second.code, 1, "{second:?}");
    let told = format!("another run (pid {}) is writing `out.jsonl`", first.child.id());
    assert!(second.stderr.contains(&told), "{second:?}");
    first.signal(Signal::KILL);
    first.killed();
    assert_eq!(folder.run(&RUN).code, 0);
    same(&undisturbed(&nodes).0, &folder, &["out.jsonl"]);
}

#[test]
fn state_that_may_not_be_written_is_a_fault_that_says_what_to_do() {
    let folder = Folder::new();
    write_pipeline(&folder, ", state: closed/state", &sums(50, 0));
    folder.write("hung", "");
    folder.write("closed/file", "");
    let mode = |name: &str, mode| {
        std::fs::set_permissions(folder.path(name), PermissionsExt::from_mode(mode)).expect("a folder of one's own");
    };
    mode(".", 0o777);
    mode("closed", 0o555);
    // For the superuser nothing is closed.
    let unprivileged = rustix::process::geteuid().is_root();
    let wrapped: &[&str] =
        if unprivileged { &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"] } else { &["env"] };
    let args = [&wrapped[1..], &[TESTING], &RUN[..]].concat();
    let done = done(folder.command(wrapped[0], &args).output().expect("the program starts"));
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("closed/state`: permission denied"), "{done:?}");
    assert!(done.stderr.contains("`run: {state: PATH}`") && done.stderr.contains("journal: off"), "{done:?}");
    assert_eq!(folder.names("closed"), ["file"]);
    assert!(!folder.path("out.jsonl").exists());
}
