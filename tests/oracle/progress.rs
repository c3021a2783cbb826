//! What the files of a run tell while it is under way, or dead.

use std::fs;
use std::path::{Path, PathBuf};

use engine::durable::{Lines, partial_path};
use serde_json::Value as Json;

use crate::case::{Form, Output};

/// Where the journal of the run in `folder` is.
pub fn journal(folder: &Path) -> PathBuf {
    folder.join(".flowgpu/oracle/journal")
}

/// The lines of a run's journal that are whole.
pub fn records(folder: &Path) -> Vec<Json> {
    let lines = Lines::read(&journal(folder)).expect("the journal can be read").lines;
    lines.iter().map(|line| serde_json::from_str(line).expect("a line of the journal is JSON")).collect()
}

/// How many cuts a journal has.
pub fn n_cuts(folder: &Path) -> u64 {
    records(folder).iter().filter(|record| record.get("cut").is_some()).count() as u64
}

/// Whether outputs may have their final names already, so that the journal says something that cannot be found out again.
pub fn is_sealed(folder: &Path) -> bool {
    records(folder).iter().any(|record| record.get("sealed").is_some())
}

/// Rows in unfinished outputs behind the last cut: they are given up and made again.
pub fn rows_behind_the_cut(folder: &Path, outputs: &[Output]) -> u64 {
    let records = records(folder);
    let cut = records.iter().rev().find_map(|record| record.get("cut"));
    let behind = |output: &Output| {
        let bytes = fs::read(partial_path(&folder.join(&output.path))).unwrap_or_default();
        let upto = cut.and_then(|cut| cut["sinks"][&output.node]["bytes"].as_u64()).unwrap_or(0) as usize;
        bytes.get(upto..).unwrap_or_default().iter().filter(|&&byte| byte == b'\n').count() as u64
    };
    outputs.iter().filter(|output| output.form != Form::Npy).map(behind).sum()
}
