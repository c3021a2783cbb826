//! What was found, for people.

use std::fmt::Write;
use std::path::Path;

use engine::graph::render::plain::for_terminal;

use super::knobs::Knobs;
use super::search::{Found, Trial};
use crate::progress::Terminal;
use crate::progress::human::rate;
use crate::progress::table::{Column, row};

pub(super) fn text(knobs: &Knobs, found: &Found, yaml: &str, file: &Path, terminal: &Terminal) -> String {
    let mut page = String::new();
    if found.has_gained() {
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
    let lines = page.lines().map(|line| for_terminal(line, terminal.charset) + "\n");
    table(knobs, found, terminal) + &lines.collect::<String>()
}

/// `+7 %`, `-12 %`.
fn gain(times: f64) -> String {
    format!("{:+.0} %", (times - 1.0) * 100.0)
}

/// What was tried.
fn table(knobs: &Knobs, found: &Found, terminal: &Terminal) -> String {
    let column = |title, is_figure, cell: &dyn Fn(&Trial) -> String| Column {
        title,
        cells: found.trials.iter().map(cell).collect(),
        is_figure,
    };
    let knob = |trial: &Trial| &knobs.0[trial.knob];
    let columns = [
        column("setting", false, &|trial| knob(trial).name.clone()),
        column("value", true, &|trial| trial.setting.to_string()),
        column("default", true, &|trial| knob(trial).default.to_string()),
        column("rate", true, &|trial| rate(trial.rows)),
        column("gain", true, &|trial| gain(trial.gain)),
        column("", false, &|trial| if trial.is_kept { "kept" } else { "" }.to_owned()),
    ];
    let rows = [None].into_iter().chain((0..found.trials.len()).map(Some));
    let lines = rows.map(|number| row(&columns, number, terminal).fitted(None, terminal.charset));
    lines.map(|line| line.painted(terminal.colour) + "\n").collect()
}
