//! The grace, the drain file, `nohup`, and a terminal that is held.

use std::io::{ErrorKind, Write};
use std::process::Stdio;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use crate::interrupts::{endless, wait_for_rows, with_signals};
use crate::program::{Folder, TESTING, Under, wait_for};
use crate::status::status;

const OUT: &str = "{kind: sink.jsonl, with: {path: out/rows.jsonl}}";

/// A run of which nothing ends by itself: the first batch takes the model an hour.
fn stuck() -> Folder {
    Folder::with_nodes(&format!(
        "  rows: {{kind: source.test_slow, with: {{count: 1000000000, micros: 100}}}}\n  tensor: {{kind: transform.test_tensor}}\n  model: {{kind: infer.test, with: {{micros: 3600000000}}}}\n  out: {OUT}\n"
    ))
}

#[test]
fn a_run_that_does_not_stop_ends_with_its_grace() {
    for isolation in ["thread", "process"] {
        let folder = stuck();
        let args = ["run", "p.yaml", "--metrics-addr", "127.0.0.1:0", "--isolation", isolation, "--grace", "300ms"];
        let mut run = Under::start(with_signals(&folder, &args));
        wait_for_rows(&run.metrics_address(), 0.0);
        run.signal(Signal::TERM);
        let done = run.end();
        assert_eq!(done.code, 130, "{done:?}");
        for part in [
            "p: stopping after SIGTERM: ",
            "for 0.30 s at most (a second signal aborts)\n",
            "p: 0.07 s of the grace of 0.30 s are left: what is not computed yet is ",
        ] {
            assert!(done.stderr.contains(part), "{part} in {done:?}");
        }
        let last = done.stderr.lines().last().expect("a line");
        assert!(last.starts_with("p: ended by the grace of 0.30 s (`--grace` gives more): "), "{last}");
        assert!(!folder.path("out/rows.jsonl").exists());
    }
}

#[test]
fn what_was_done_before_the_grace_was_over_is_not_done_again() {
    // The batch with row 20 hangs, unless the file that says that it did is there.
    let nodes = format!(
        "  rows: {{kind: source.synthetic, with: {{rows: {{count: 100}}}}}}\n  tensor: {{kind: transform.test_tensor, with: {{shape: [8], numbered: true}}}}\n  model: {{kind: infer.test, with: {{batch: 4, hang: {{rows: [20], once: hung}}}}}}\n  out: {OUT}\n"
    );
    let (folder, undisturbed) = (Folder::with_nodes(&nodes), Folder::with_nodes(&nodes));
    undisturbed.write("hung", "");
    assert_eq!(undisturbed.run(&["run", "p.yaml"]).code, 0);
    let args = ["run", "p.yaml", "--grace", "300ms", "--commit-every", "20ms"];
    let run = Under::start(with_signals(&folder, &args));
    wait_for("20 rows", || (status(&folder)["rows"] == 20).then_some(()));
    run.signal(Signal::TERM);
    let done = run.end();
    assert_eq!(done.code, 130, "{done:?}");
    for part in [
        "p: stopping after SIGTERM: 20 rows are safe; finishing what is in flight, for 0.30 s at most",
        "what is not computed yet is left to the next run\n",
        "p: ended by the grace of 0.30 s (`--grace` gives more): 20 rows are safe; the same command goes on from there\n",
    ] {
        assert!(done.stderr.contains(part), "{part} in {done:?}");
    }
    let told = status(&folder);
    assert_eq!((&told["rows"], &told["state"]), (&20.into(), &"interrupted".into()));
    let done = folder.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("p: resuming at 20 "), "{done:?}");
    assert_eq!(folder.read("out/rows.jsonl"), undisturbed.read("out/rows.jsonl"));
    assert_eq!(folder.names("out"), ["rows.jsonl"]);
}

#[test]
fn no_grace_ends_the_run_at_once() {
    let folder = stuck();
    let options = "run: {grace: 0s, metrics_addr: '127.0.0.1:0'}\nnodes:";
    folder.write("p.yaml", &folder.read("p.yaml").replace("nodes:", options));
    let mut run = Under::start(with_signals(&folder, &["run", "p.yaml"]));
    wait_for_rows(&run.metrics_address(), 0.0);
    run.signal(Signal::INT);
    let done = run.end();
    assert_eq!(done.code, 130, "{done:?}");
    assert!(done.stderr.lines().last().expect("a line").starts_with("p: ended by the grace of 0 s "), "{done:?}");
}

#[test]
fn a_drain_file_stops_the_run_wherever_it_is_named() {
    let folder = endless(OUT);
    folder.write("deep/p.yaml", &folder.read("p.yaml").replace("nodes:", "run: {drain_file: stop}\nnodes:"));
    for (file, args) in [("deep/stop", &[][..]), ("given", &["--drain-file", "given"])] {
        let args = [&["run", "deep/p.yaml", "--metrics-addr", "127.0.0.1:0"], args].concat();
        let mut run = folder.start(&args);
        wait_for_rows(&run.metrics_address(), 0.0);
        folder.write(file, "");
        let done = run.end();
        assert_eq!(done.code, 130, "{done:?}");
        let told = format!("p: stopping: the drain file `{file}` is there: ");
        assert!(done.stderr.contains(&told), "{told} in {done:?}");
        assert!(done.stderr.contains(" safe; finishing what is in flight, for 20 s at most\n"), "{done:?}");
        assert!(done.stderr.contains("p: interrupted after "), "{done:?}");
    }
}

#[test]
fn a_drain_file_that_is_there_already_stops_the_run_at_once() {
    let folder = endless(OUT);
    folder.write("stop", "");
    let done = folder.run(&["run", "p.yaml", "--drain-file", "stop"]);
    assert_eq!(done.code, 130, "{done:?}");
    assert!(
        done.stderr.contains("p: stopping at once: the drain file `stop` is there already; remove it to run\n"),
        "{done:?}"
    );
    assert!(done.stderr.contains("0 in = 0 out + 0 rejected"), "{done:?}");
}

#[test]
fn a_drain_file_that_cannot_be_there_is_refused() {
    let folder = endless(OUT);
    let done = folder.run(&["run", "p.yaml", "--drain-file", "p.yaml/stop"]);
    assert_eq!((done.code, &*done.stdout), (2, ""), "{done:?}");
    let last = done.stderr.lines().last();
    assert_eq!(last, Some("error: cannot look for the drain file `p.yaml/stop`: not a directory"));
}

#[test]
fn a_hang_up_means_nothing_to_a_run_under_nohup() {
    let folder = endless(OUT);
    let args = ["run", "p.yaml", "--metrics-addr", "127.0.0.1:0"];
    let mut run = Under::start(folder.command("nohup", &[&[TESTING], &args[..]].concat()));
    let address = run.metrics_address();
    let n_rows = wait_for_rows(&address, 0.0);
    run.signal(Signal::HUP);
    wait_for_rows(&address, n_rows);
    run.signal(Signal::TERM);
    let done = run.end();
    assert_eq!(done.code, 130, "{done:?}");
    assert!(done.stderr.contains("SIGTERM") && !done.stderr.contains("SIGHUP"), "{done:?}");
}

#[test]
fn a_terminal_that_is_held_does_not_hold_the_run() {
    let folder = stuck();
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let flags = fcntl_getfl(&writer).expect("flags");
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).expect("flags");
    let full = std::iter::repeat_with(|| writer.write(b".")).find_map(Result::err).expect("it gets full");
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    fcntl_setfl(&writer, flags).expect("flags");
    let mut command = with_signals(&folder, &["run", "p.yaml", "-q", "--grace", "100ms"]);
    let mut child = command.stdout(Stdio::null()).stderr(writer).spawn().expect("the program starts");
    // Outputs are opened long after signals are listened for.
    wait_for("the output", || folder.path("out/.rows.jsonl.partial").exists().then_some(()));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).expect("it is there");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    drop(reader);
}
