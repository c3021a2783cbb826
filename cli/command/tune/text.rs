//! What was found, for people.

use std::fmt::Write;
use std::path::Path;

use engine::graph::render::plain::{for_terminal, pad, width};

use super::has_gained;
use super::knobs::Knobs;
use super::search::Found;
use crate::progress::Terminal;
use crate::progress::human::rate;

pub(super) fn text(knobs: &Knobs, found: &Found, yaml: &str, file: &Path, terminal: &Terminal) -> String {
    let mut rows = vec![["setting", "value", "default", "rate", "gain", ""].map(str::to_owned)];
    for trial in &found.trials {
        let knob = &knobs.0[trial.knob];
        let kept = if trial.is_kept { "kept" } else { "" };
        rows.push([
            knob.name.clone(),
            trial.setting.to_string(),
            knob.default.to_string(),
            rate(trial.rows),
            gain(trial.gain),
            kept.to_owned(),
        ]);
    }
    let mut page = table(&rows);
    if has_gained(found) {
        let (best, default) = (rate(found.best_rows), rate(found.default_rows));
        // Writing into a String does not fail.
        let _ = writeln!(
            page,
            "best: {best}, {} on the {default} of the defaults; in {}:",
            gain(found.gain()),
            file.display()
        );
        yaml.lines().for_each(|line| page.push_str(&format!("  {line}\n")));
    } else {
        page.push_str(&format!("defaults are best: {}\n", rate(found.default_rows)));
    }
    page.lines().map(|line| for_terminal(line, terminal.charset) + "\n").collect()
}

/// `+7 %`, `-12 %`.
fn gain(times: f64) -> String {
    format!("{:+.0} %", (times - 1.0) * 100.0)
}

/// Names to the left, figures to the right.
fn table(rows: &[[String; 6]]) -> String {
    let columns = |at: usize| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    let mut page = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let free = " ".repeat(columns(at).saturating_sub(width(cell)));
            match at {
                0 => line.push_str(&pad(cell, columns(at))),
                5 => line.push_str(&format!("  {cell}")),
                _ => line.push_str(&format!("  {free}{cell}")),
            }
        }
        let _ = writeln!(page, "{}", line.trim_end());
    }
    page
}
