//! What a run says of an earlier one that it takes up.

use engine::graph::Graph;
use engine::journal::{Finished, Journal};

use crate::progress::human::{grouped, percent};

/// That there is nothing to do.
pub(super) fn finished(finished: &Finished, graph: &Graph) -> String {
    let sealed = &finished.sealed;
    let rejects = match sealed.cut.rejects.total {
        0 => String::new(),
        1 => ", 1 reject".to_owned(),
        n_rejects => format!(", {} rejects", grouped(n_rejects)),
    };
    let limited = if sealed.limited { ", as many as `--limit` allows" } else { "" };
    let mut text = format!(
        "{}: done already at {}: {} rows{limited}{rejects}; `--fresh` begins anew\n",
        graph.name,
        finished.at,
        grouped(sealed.cut.rows()),
    );
    for files in sealed.outputs.chunk_by(|one, next| one.node == next.node) {
        match files {
            [first, _, .., last] => text.push_str(&format!(
                "  {} … {} ({} files)\n",
                first.sealed.path,
                last.sealed.path,
                grouped(files.len() as u64)
            )),
            _ => files.iter().for_each(|output| text.push_str(&format!("  {}\n", output.sealed.path))),
        }
    }
    text
}

/// How a run is taken up, if there was one before.
pub(super) fn begins(journal: &Journal, graph: &Graph) -> Option<String> {
    if let Some(note) = journal.note() {
        return Some(format!("{}: {note}\n", graph.name));
    }
    let history = journal.history()?;
    let Some(cut) = journal.from() else {
        let why = if history.cuts.is_empty() { "the earlier run had nothing done" } else { "no earlier state fits" };
        return Some(format!("{}: {why}: starting at the first row\n", graph.name));
    };
    let rows = grouped(cut.rows());
    // Another limit is another total.
    let same_limit = history.sessions.last().is_some_and(|session| session.limit == graph.run.limit);
    let of = match cut.total().filter(|_| same_limit) {
        Some(total) if total > 0 => {
            format!(" of {} rows ({})", grouped(total), percent(cut.rows() as f64 / total as f64))
        }
        _ => " rows".to_owned(),
    };
    Some(format!("{}: resuming at {rows}{of}\n", graph.name))
}
