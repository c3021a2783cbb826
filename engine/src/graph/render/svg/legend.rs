//! What the marks mean, below the drawing: only those that occur.

use std::fmt::Write;

use super::super::layout::measure::sans;
use super::super::picture::{EdgeKind, Origin, Picture};
use super::px;

const ROW: f64 = 10.5;
const TOP: f64 = 22.0;
const SAMPLE: f64 = 24.0;

/// The row of explanations.
pub(super) struct Legend {
    /// Its elements, from its top left corner.
    pub svg: String,
    /// Its width.
    pub width: f64,
    /// Its height; nothing if there is nothing to explain.
    pub height: f64,
}

/// The legend of a picture.
pub(super) fn of(picture: &Picture) -> Legend {
    let mut marks: Vec<(String, &str)> = Vec::new();
    let swatch = |inside: &str| format!("<rect {inside} y=\"{}\" width=\"{SAMPLE}\" height=\"7\"/>", px(TOP + 1.0));
    let trough = swatch("class=\"fg-trough\"");
    if picture.is_live() {
        marks.push((format!("<g class=\"fg-batch\">{}{trough}</g>", swatch("class=\"fg-solid\"")), "busy"));
        marks.push((format!("{}{trough}", swatch("fill=\"url(#fg-starved)\"")), "starved: waits for input"));
        marks.push((format!("{}{trough}", swatch("fill=\"url(#fg-blocked)\"")), "blocked: waits for room behind it"));
    }
    if picture.edges.iter().any(|edge| edge.carries == EdgeKind::Rejects) {
        let line = format!("<path class=\"fg-line\" d=\"M0,{y} H{SAMPLE}\"/>", y = px(TOP + 4.5));
        marks.push((format!("<g class=\"fg-rejects\">{line}</g>"), "rejects"));
    }
    if picture.nodes.iter().any(|node| node.origin == Origin::Inserted) {
        let frame =
            format!("<rect class=\"fg-frame\" y=\"{}\" width=\"{SAMPLE}\" height=\"10\" rx=\"3\"/>", px(TOP - 0.5));
        marks.push((format!("<g class=\"fg-batch fg-inserted\">{frame}</g>"), "added by the compiler"));
    }
    let mut legend = Legend { svg: String::new(), width: 0.0, height: 0.0 };
    for (mark, words) in marks {
        let (x, text_x, baseline) = (px(legend.width), px(SAMPLE + 7.0), px(TOP + 8.5));
        let _ = writeln!(
            legend.svg,
            "<g transform=\"translate({x} 0)\">{mark}<text class=\"fg-note\" x=\"{text_x}\" y=\"{baseline}\">{words}</text></g>"
        );
        legend.width += (SAMPLE + 7.0 + sans(words, ROW) + 18.0).ceil();
        legend.height = TOP + 12.0;
    }
    legend
}
