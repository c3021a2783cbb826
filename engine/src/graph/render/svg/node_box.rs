//! A node's box: frame, stripe with the role's sign, lines of text, bar of shares.

use std::fmt::Write;

use super::super::figures::{percent, rate};
use super::super::layout::PlacedBox;
use super::super::layout::face::{BAR_HEIGHT, STRIPE, TEXT_X, Tone};
use super::super::picture::{Live, Origin, PictureNode};
use super::super::xml::escape;
use super::{px, signs};

const ROUND: f64 = 6.0;

/// Writes the box.
pub(super) fn write(svg: &mut String, node: &PictureNode, placed: &PlacedBox) {
    let rect = placed.rect;
    let mut class = format!("fg-{}", node.role.word());
    if node.origin == Origin::Inserted {
        class.push_str(" fg-inserted");
    }
    if node.live.is_some_and(|live| live.limits_run) {
        class.push_str(" fg-limits");
    }
    let _ = writeln!(
        svg,
        "<g class=\"{class}\" transform=\"translate({} {})\"><title>{}</title>",
        px(rect.x),
        px(rect.y),
        escape(&said(node))
    );
    let (width, height) = (px(rect.width), px(rect.height));
    let _ = writeln!(svg, "<rect class=\"fg-frame\" width=\"{width}\" height=\"{height}\" rx=\"{}\"/>", px(ROUND));
    let _ = writeln!(
        svg,
        "<path class=\"fg-solid\" d=\"M{stripe},0 H{r} A{r},{r} 0 0 0 0,{r} V{low} A{r},{r} 0 0 0 {r},{height} H{stripe} Z\"/>",
        stripe = px(STRIPE),
        r = px(ROUND),
        low = px(rect.height - ROUND),
    );
    let (sign_x, sign_y) = (px(STRIPE / 2.0 - 6.0), px(rect.height / 2.0 - 6.0));
    let _ =
        writeln!(svg, "<g class=\"fg-sign\" transform=\"translate({sign_x} {sign_y})\">{}</g>", signs::sign(node.role));
    for line in &placed.face.lines {
        let class = match line.tone {
            Tone::Name => "fg-name",
            Tone::Kind => "fg-kind",
            Tone::Detail | Tone::Figure => "fg-detail",
            Tone::Alert => "fg-alert",
        };
        let _ = writeln!(
            svg,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
            px(TEXT_X),
            px(line.baseline),
            escape(&line.text)
        );
    }
    if let (Some(top), Some(live)) = (placed.face.bar, &node.live) {
        write_bar(svg, live, top, rect.width - TEXT_X - 11.0);
    }
    svg.push_str("</g>\n");
}

/// Busy, blocked and starved from the left; what is missing of the whole stays empty.
fn write_bar(svg: &mut String, live: &Live, top: f64, width: f64) {
    let mut left = TEXT_X;
    let end = TEXT_X + width;
    let parts = [
        (live.busy, "class=\"fg-solid\""),
        (live.starved, "fill=\"url(#fg-starved)\""),
        (live.blocked, "fill=\"url(#fg-blocked)\""),
    ];
    let (y, height) = (px(top), px(BAR_HEIGHT));
    for (share, fill) in parts {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let part = (share * width).min(end - left);
        if part >= 0.5 {
            let _ =
                writeln!(svg, "<rect {fill} x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{height}\"/>", px(left), px(part));
            left += part;
        }
    }
    let _ = writeln!(
        svg,
        "<rect class=\"fg-trough\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{height}\"/>",
        px(TEXT_X),
        px(width)
    );
}

/// All that is known of a node: what the box had to cut short is said here.
fn said(node: &PictureNode) -> String {
    let mut said = format!("{}: {}", node.name, node.kind);
    if !node.detail.is_empty() {
        let _ = write!(said, ", {}", node.detail);
    }
    if node.origin == Origin::Inserted {
        said.push_str("; not written in the file, added");
    }
    if !node.columns.is_empty() {
        let _ = write!(said, "; gives {}", node.columns.join(", "));
    }
    if let Some(live) = &node.live {
        let (busy, starved, blocked) = (percent(live.busy), percent(live.starved), percent(live.blocked));
        let _ = write!(said, "; {}, busy {busy}, starved {starved}, blocked {blocked}", rate(live.rows_per_s));
    }
    said
}
