//! Files that go while a run is under way.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::told;
use crate::workplace::Workplace;

/// Far more than what fits between the source and a reader that does not read.
const N_FILES: usize = 3_000;

/// The output is a pipe: when its first row can be read, the folder has been listed; and since nobody reads on, most
/// files have not been fetched when they are deleted.
#[test]
fn files_that_are_deleted_after_they_were_listed_are_rejects() {
    let workplace = Workplace::new();
    // Long names make long rows, so that few of them fill the pipe.
    let folder = format!("in/{}/{}", "long".repeat(50), "name".repeat(50));
    fs::create_dir_all(workplace.path(&folder)).expect("a folder");
    for index in 0..N_FILES {
        let file = File::create(workplace.path(&format!("{folder}/{index:04}.bin"))).expect("a file");
        // A hole takes no place on the disk.
        file.set_len(20_000).expect("a file");
    }
    workplace.write(
        "p.yaml",
        r#"
name: gone
run: {rejects: gone.jsonl, queue_memory: 1MiB, threads: {io: 2, rows: 1}}
nodes:
  files: {kind: source.files, with: {path: "in/*/*/*.bin"}}
  out: {kind: sink.jsonl, with: {path: pipe, columns: [uri, id]}}
"#,
    );
    workplace.command(&["mkfifo"], &["pipe"]).expect(0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgpu"));
    let running = command.args(["run", "p.yaml", "-q"]).current_dir(workplace.path("")).stderr(Stdio::piped()).spawn();
    let running = running.expect("a program");
    let mut rows = BufReader::new(File::open(workplace.path("pipe")).expect("a pipe")).lines();
    let first = rows.next().expect("a row").expect("UTF-8");
    for index in 0..N_FILES {
        fs::remove_file(workplace.path(&format!("{folder}/{index:04}.bin"))).expect("it was there");
    }
    let mut seen = vec![uri(&first)];
    seen.extend(rows.map(|row| uri(&row.expect("UTF-8"))));
    let ended = running.wait_with_output().expect("an end");
    assert_eq!(ended.status.code(), Some(3), "{}", String::from_utf8_lossy(&ended.stderr));

    let rejects = workplace.rows("gone.jsonl");
    assert!(!rejects.is_empty());
    for reject in &rejects {
        let [uri, node, code] = told(reject);
        assert_eq!((node, code), ("files", "not_found"));
        assert!(reject["message"].as_str().expect("a message").contains(uri));
    }
    seen.extend(rejects.iter().map(|reject| told(reject)[0].to_owned()));
    seen.sort();
    let listed: Vec<_> = (0..N_FILES).map(|index| format!("{folder}/{index:04}.bin")).collect();
    assert!(seen == listed, "each file once: as a row or as a reject");
}

fn uri(row: &str) -> String {
    let row: Value = serde_json::from_str(row).expect("JSON");
    row["uri"].as_str().expect("a uri").to_owned()
}
