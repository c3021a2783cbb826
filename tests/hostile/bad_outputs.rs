//! Outputs that cannot be written: a fault that says so, and nothing under a final name.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;

use crate::run_unprivileged;
use crate::workplace::{Ended, Workplace};

const ROWS: &str = "
name: hostile
nodes:
  rows: {kind: source.synthetic, with: {rows: {count: 60000}}}
  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}
";

fn is_fault(said: &str, node: &str, reason: &str) {
    let fault = said.lines().find(|line| line.starts_with("fault: ")).unwrap_or_else(|| panic!("no fault in {said}"));
    assert!(fault.contains(&format!("`{node}`")) && fault.contains(reason), "{fault}");
    assert!(!said.contains("os error") && !said.contains("panicked"), "{said}");
}

#[test]
fn folders_are_made_for_outputs() {
    let workplace = Workplace::new();
    workplace.write("p.yaml", ROWS.replace("out/rows", "out/of/the/way/rows"));
    workplace.run(&["p.yaml"]).expect(0);
    assert_eq!(workplace.rows("out/of/the/way/rows.jsonl").len(), 60_000);
}

#[test]
fn a_folder_that_may_not_be_written_is_a_fault_that_names_it() {
    let workplace = Workplace::new();
    workplace.write("p.yaml", ROWS);
    workplace.write("out/rows.jsonl", "from before\n");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o555);
    std::fs::set_permissions(workplace.path("out"), closed).expect("a folder of one's own");
    is_fault(&run_unprivileged(&workplace, &["p.yaml", "--journal", "off"]).expect(1), "out", "permission denied");
    assert_eq!(workplace.names("out"), ["rows.jsonl"]);
    assert_eq!(workplace.read("out/rows.jsonl"), b"from before\n");
    workplace.write("p.yaml", ROWS.replace("out/", "out/sub/"));
    is_fault(&run_unprivileged(&workplace, &["p.yaml", "--journal", "off"]).expect(1), "out", "permission denied");
}

#[test]
fn an_output_that_is_a_folder_is_a_mistake_of_the_pipeline() {
    let workplace = Workplace::new();
    workplace.write("p.yaml", ROWS);
    workplace.write("out/rows.jsonl/inside.txt", "a folder");
    is_fault(&workplace.run(&["p.yaml"]).expect(2), "out", "it is a folder");
}

/// As `/dev/null` would be: replaced by a file, it would be one for everybody on the machine.
#[test]
fn a_pipe_or_a_device_for_the_rejects_is_written_to_and_neither_replaced_nor_removed() {
    let workplace = Workplace::new();
    workplace.command(&["mkfifo"], &["pipe"]).expect(0);
    // Open at both ends, it takes what is written without anybody reading yet.
    let mut pipe = File::options().read(true).write(true).open(workplace.path("pipe")).expect("a pipe");
    let yaml = ROWS.replace("nodes:", "run: {rejects: pipe}\nnodes:").replace("count: 60000", "count: 3");
    let run = |reject: &str| {
        workplace.write("p.yaml", yaml.replace("  out:", &format!("{reject}  out:")));
        workplace.command(&[env!("CARGO_BIN_EXE_flowgpu-test"), "run"], &["p.yaml"])
    };
    run("  some: {kind: transform.test_reject, with: {rows: [1]}}\n").expect(3);
    run("").expect(0);
    let metadata = std::fs::metadata(workplace.path("pipe")).expect("it is still there");
    assert!(metadata.file_type().is_fifo());
    let mut text = [0; 4096];
    let n_bytes = pipe.read(&mut text).expect("what was written");
    let reject: serde_json::Value = serde_json::from_slice(&text[..n_bytes]).expect("one reject");
    assert_eq!(reject["uri"], "synthetic/1");
    assert!(workplace.names("").iter().all(|name| !name.ends_with(".partial")));
}

/// Runs the program with a file system of 128 KiB at `full`, and says what is in it at the end; none where it cannot be
/// mounted, which takes a superuser.
fn on_a_small_disk(workplace: &Workplace, program: &str) -> Option<(Ended, String)> {
    std::fs::create_dir_all(workplace.path("full")).expect("a folder");
    let may_mount = workplace.command(&["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "full"], &[]);
    if may_mount.code() != Some(0) {
        return None;
    }
    let script = "mount -t tmpfs -o size=128k tmpfs full && { \"$@\"; code=$?; ls -A full > listing; exit $code; }";
    let ended = workplace.command(&["unshare", "--mount", "sh", "-c", script, "sh", program, "run"], &["p.yaml"]);
    Some((ended, String::from_utf8(workplace.read("listing")).expect("UTF-8")))
}

#[test]
fn a_full_disk_is_a_fault_and_leaves_nothing_under_a_final_name() {
    let sinks = [
        "{kind: sink.jsonl, with: {path: full/o}}",
        "{kind: sink.csv, with: {path: full/o}}",
        "{kind: sink.npy, with: {path: full/o, column: tensor}}",
    ];
    for sink in sinks {
        let workplace = Workplace::new();
        let rows = "  rows: {kind: source.synthetic, with: {rows: {count: 60000}}}\n  tensors: {kind: transform.test_tensor}\n";
        workplace.write("p.yaml", format!("name: hostile\nnodes:\n{rows}  out: {sink}\n"));
        let program = env!("CARGO_BIN_EXE_flowgpu-test");
        let Some((ended, listing)) = on_a_small_disk(&workplace, program) else {
            // The device that is always full is written to without a temporary name.
            workplace.write("p.yaml", ROWS.replace("out/rows.jsonl", "/dev/full"));
            is_fault(&workplace.run(&["p.yaml"]).expect(1), "out", "no space left on the device");
            continue;
        };
        let said = ended.expect(1);
        is_fault(&said, "out", "no space left on the device");
        assert!(said.contains("free some space"), "{said}");
        let is_unfinished = |name: &str| name.starts_with('.') && name.ends_with(".partial");
        assert!(!listing.is_empty() && listing.lines().all(is_unfinished), "{sink}: {listing}");
    }
}

#[test]
fn a_full_disk_under_the_rejects_is_a_fault_too() {
    let workplace = Workplace::new();
    let yaml = ROWS.replace("  out:", "  none: {kind: transform.test_reject, with: {share: 1}}\n  out:");
    workplace.write("p.yaml", yaml.replace("nodes:", "run: {rejects: full/r.jsonl}\nnodes:"));
    if let Some((ended, listing)) = on_a_small_disk(&workplace, env!("CARGO_BIN_EXE_flowgpu-test")) {
        let said = ended.expect(1);
        assert!(said.contains("no space left on the device") && said.contains("r.jsonl"), "{said}");
        assert_eq!(listing, ".r.jsonl.partial\n");
        assert!(!workplace.path("out/rows.jsonl").exists());
    }
}
