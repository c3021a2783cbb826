//! The figures as people read them.

use std::fmt::Write;

use engine::graph::render::plain::{for_terminal, width};

use super::{Figures, Sharing};
use crate::progress::Terminal;
use crate::progress::human::{count, percent, rate};

pub(super) fn text(figures: &Figures, terminal: &Terminal) -> String {
    let infer = match &figures.infer {
        Ok(infer) => (rate(infer.rows), String::new()),
        Err(why) => ("none".to_owned(), why.clone()),
    };
    let limit = match (&figures.infer, figures.sharing) {
        (Err(_), _) => "what decoding alone comes to",
        (Ok(_), Sharing::Cores) => "decode and infer share the cores",
        (Ok(_), Sharing::Nothing) => "the slower of the two",
    };
    let mut lines = vec![
        ("decode", (rate(figures.decode.rows), String::new())),
        ("infer", infer),
        ("limit", (rate(figures.limit()), limit.to_owned())),
        ("end to end", (rate(figures.end_to_end.rows), format!("{} of the limit", of_limit(figures.ratio())))),
    ];
    if figures.end_to_end.rejected > 0 {
        let rejects = count(figures.end_to_end.rejected, "row");
        lines.push(("rejected", (rejects, "each time that they came, end to end".to_owned())));
    }
    let columns = lines.iter().map(|(_, (figure, _))| width(figure)).max().unwrap_or(0);
    let mut page = String::new();
    for (word, (figure, note)) in lines {
        let line = format!("{word:<10} {figure:<columns$}  {note}");
        // Writing into a String does not fail.
        let _ = writeln!(page, "{}", for_terminal(&line, terminal.charset).trim_end());
    }
    page
}

/// A part of the limit, which noise may carry beyond it.
fn of_limit(ratio: f64) -> String {
    if ratio < 1.0 { percent(ratio) } else { format!("{:.0} %", ratio * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Measured, Rate};

    fn check(infer: Measured, rejected: u64, expected: &str) {
        let rate = |rows: f64| Rate { rows, rejected };
        let figures = Figures { decode: rate(1_303.0), infer, end_to_end: rate(309.0), sharing: Sharing::Cores };
        assert_eq!(text(&figures, &Terminal::PIPE), expected);
    }

    #[test]
    fn a_line_for_each_figure_and_rejects_if_there_are_any() {
        check(
            Ok(Rate { rows: 412.0, rejected: 0 }),
            0,
            "decode     1,303/s\ninfer      412/s\nlimit      313/s    decode and infer share the cores\n\
             end to end 309/s    99 % of the limit\n",
        );
        check(
            Err("the pipeline has no `infer` node".to_owned()),
            12,
            "decode     1,303/s\ninfer      none     the pipeline has no `infer` node\n\
             limit      1,303/s  what decoding alone comes to\nend to end 309/s    24 % of the limit\n\
             rejected   12 rows  each time that they came, end to end\n",
        );
    }
}
