//! Small machines: few open files, little address space, a small /dev/shm.

use std::process::Command;

use crate::program::{Folder, TESTING, done};
use crate::scene::{check_sums, sums};

/// Runs [`sums`] by two worker processes, with `limits` set by a shell first.
fn limited(limits: &str) -> Folder {
    let folder = sums(1000, 16, "");
    let mut command = Command::new("sh");
    let run = format!("{limits} && exec {TESTING} run p.yaml --isolation process --workers-per-device 2");
    command.args(["-c", &run]).current_dir(folder.path("."));
    let done = done(command.output().expect("a shell"));
    assert_eq!(done.code, 0, "{done:?}");
    check_sums(&folder, 1000, &[]);
    folder
}

#[test]
fn few_open_files_are_enough() {
    limited("ulimit -n 64");
}

#[test]
fn little_address_space_is_enough() {
    // In KiB: 4 GiB, where an arena asks for more than that at first.
    limited("ulimit -v 4194304");
}

#[test]
fn nothing_is_put_into_tmp_or_dev_shm() {
    let names = || {
        let of = |folder: &str| {
            std::fs::read_dir(folder)
                .map_or(Vec::new(), |entries| entries.flatten().map(|entry| entry.path()).collect())
        };
        [of("/dev/shm"), of("/tmp")].concat()
    };
    let is_ours = |path: &std::path::PathBuf| path.to_string_lossy().contains("flowgpu");
    let before: Vec<_> = names().into_iter().filter(is_ours).collect();
    limited("true");
    assert_eq!(names().into_iter().filter(is_ours).collect::<Vec<_>>(), before);
}
