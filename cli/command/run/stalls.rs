//! Nodes that do not come on: told when it is noticed, and again at the end.

use std::io::Write;
use std::time::Duration;

use engine::graph::render::plain::for_terminal;
use engine::runtime::{OnStall, Report, Stall};

use crate::progress::human::whole_duration;
use crate::progress::{AboveBars, Terminal};

/// Stalls that the end of a run tells of; the report has them all.
const MOST_TOLD: usize = 5;

/// Tells of each stall of the pipeline `name` while it lasts.
pub(super) fn tell(name: &str, above: &AboveBars) -> OnStall {
    let (name, above) = (name.to_owned(), above.clone());
    OnStall::new(move |stall| {
        let line = for_terminal(&format!("{name}: {}", sentence(stall, "has made")), Terminal::stderr().charset);
        // A message that cannot be written has nobody to read it.
        let _ = above.clone().write_all(format!("{line}\n").as_bytes());
    })
}

/// What a run says of them at its end, a line each.
pub(super) fn warnings(report: &Report) -> Vec<String> {
    let mut lines: Vec<_> = report.stalls.iter().take(MOST_TOLD).map(|stall| sentence(stall, "made")).collect();
    match report.stalls.len().saturating_sub(MOST_TOLD) {
        0 => {}
        n_more => lines.push(format!("there were {n_more} more times without progress (`--report` has them all)")),
    }
    lines
}

fn sentence(stall: &Stall, made: &str) -> String {
    let Stall { node, seconds, holds, hint } = stall;
    let time = whole_duration(Duration::try_from_secs_f64(*seconds).unwrap_or_default());
    let hint = hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
    format!("`{node}` {made} no progress for {time}: {holds}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_one_sentence() {
        let stall = Stall {
            node: "photos".to_owned(),
            seconds: 300.4,
            holds: "reading `/mnt/nfs/a.jpg` (1 of 8 threads)".to_owned(),
            hint: None,
        };
        let told = "`photos` has made no progress for 5 m: reading `/mnt/nfs/a.jpg` (1 of 8 threads)";
        assert_eq!(sentence(&stall, "has made"), told);
        let hint = Some("it lies on `/mnt/nfs` (nfs4)".to_owned());
        assert_eq!(sentence(&Stall { hint, ..stall }, "has made"), format!("{told}; it lies on `/mnt/nfs` (nfs4)"));
    }
}
