//! The picture as a drawing.
//!
//! One file without anything outside it: fonts by family names only, colours by a style sheet that follows the reader's
//! light or dark scheme. Printed grey it still reads: each role has a sign of its own, each kind is named, rejects are
//! dashed, and the shares of time differ by pattern. The `title` and `desc` say in words what is drawn.

mod legend;
mod node_box;
mod signs;
mod style;

use std::fmt::Write;

use super::layout::{Layout, Piece, PlacedEdge, layout};
use super::picture::{EdgeKind, Picture};
use super::wiring::Wiring;
use super::xml::escape;

const MARGIN: f64 = 20.0;
const HEADING: f64 = 34.0;
const ARROW: f64 = 8.0;

/// The picture as an SVG file.
#[must_use]
pub fn render(picture: &Picture) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", element(picture))
}

/// The `svg` element alone, to stand in a page.
pub(super) fn element(picture: &Picture) -> String {
    let placed = layout(picture);
    let legend = legend::of(picture);
    let heading_width = super::layout::measure::sans(&picture.title, 17.0);
    let inside = placed.width.max(legend.width).max(heading_width);
    let width = inside + 2.0 * MARGIN;
    let height = MARGIN + HEADING + placed.height + legend.height + MARGIN;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fg\" role=\"img\" aria-labelledby=\"fg-title fg-desc\" \
         width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\">",
        w = px(width.ceil()),
        h = px(height.ceil()),
    );
    let _ = writeln!(svg, "<title id=\"fg-title\">{}</title>", escape(&picture.title));
    let _ = writeln!(svg, "<desc id=\"fg-desc\">{}</desc>", escape(&description(picture)));
    let _ = writeln!(svg, "<style>\n{}</style>", style::sheet());
    svg.push_str(style::PATTERNS);
    let _ = writeln!(svg, "<rect class=\"fg-paper\" width=\"100%\" height=\"100%\" rx=\"8\"/>");
    let _ = writeln!(
        svg,
        "<text class=\"fg-heading\" x=\"{}\" y=\"{}\">{}</text>",
        px(MARGIN),
        px(MARGIN + 14.0),
        escape(&picture.title)
    );
    let _ = writeln!(svg, "<g transform=\"translate({} {})\">", px(MARGIN), px(MARGIN + HEADING));
    write_edges(&mut svg, picture, &placed);
    for placed_box in &placed.boxes {
        node_box::write(&mut svg, &picture.nodes[placed_box.node], placed_box);
    }
    svg.push_str("</g>\n");
    let _ = writeln!(svg, "<g transform=\"translate({} {})\">", px(MARGIN), px(MARGIN + HEADING + placed.height));
    svg.push_str(&legend.svg);
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// The graph in words, for those who do not see it.
fn description(picture: &Picture) -> String {
    let wiring = Wiring::of(picture);
    let mut sentences = vec![format!("A pipeline of {} nodes, from left to right.", picture.nodes.len())];
    for &node in &wiring.order {
        let takers: Vec<String> = wiring
            .links
            .iter()
            .filter(|link| link.from == node)
            .map(|link| match link.carries {
                EdgeKind::Rows => picture.nodes[link.to].name.clone(),
                EdgeKind::Rejects => format!("{} (its rejects)", picture.nodes[link.to].name),
            })
            .collect();
        let node = &picture.nodes[node];
        let flow = if takers.is_empty() { String::new() } else { format!(" feeds {}", takers.join(", ")) };
        let limits = if node.live.is_some_and(|live| live.limits_run) { "; it limits the run" } else { "" };
        sentences.push(format!("{} ({}){flow}{limits}.", node.name, node.kind));
    }
    sentences.join(" ")
}

/// Rejects are drawn first, so that where lines cross, rows lie on top.
fn write_edges(svg: &mut String, picture: &Picture, placed: &Layout) {
    for carries in [EdgeKind::Rejects, EdgeKind::Rows] {
        for edge in placed.edges.iter().filter(|edge| picture.edges[edge.edge].carries == carries) {
            let class = match carries {
                EdgeKind::Rows => "fg-edge",
                EdgeKind::Rejects => "fg-edge fg-rejects",
            };
            let line = &picture.edges[edge.edge];
            let _ = writeln!(
                svg,
                "<g class=\"{class}\"><title>{} to {}: {}</title>",
                escape(&line.from),
                escape(&line.to),
                escape(&line.label)
            );
            let _ = writeln!(svg, "<path class=\"fg-line\" d=\"{}\"/>", outline(edge));
            if let Some(tip) = edge.pieces.last().map(Piece::end) {
                let (back, up, down) = (px(tip.x - ARROW), px(tip.y - 4.0), px(tip.y + 4.0));
                let _ = writeln!(
                    svg,
                    "<path class=\"fg-tip\" d=\"M{back},{up} L{},{} L{back},{down} Z\"/>",
                    px(tip.x),
                    px(tip.y)
                );
            }
            if let Some(label) = &edge.label {
                let middle = label.rect.x + label.rect.width / 2.0;
                let step = label.rect.height / label.lines.len() as f64;
                for (at, text) in label.lines.iter().enumerate() {
                    let baseline = label.rect.y + step * (at as f64 + 1.0) - 2.5;
                    let _ = writeln!(
                        svg,
                        "<text class=\"fg-label\" x=\"{}\" y=\"{}\">{}</text>",
                        px(middle),
                        px(baseline),
                        escape(text)
                    );
                }
            }
            svg.push_str("</g>\n");
        }
    }
}

/// The line up to the back of its arrow's head.
fn outline(edge: &PlacedEdge) -> String {
    let mut d = format!("M{},{}", px(edge.start.x), px(edge.start.y));
    for (at, piece) in edge.pieces.iter().enumerate() {
        let back = if at + 1 == edge.pieces.len() { ARROW - 1.0 } else { 0.0 };
        let _ = match piece {
            Piece::Line(end) => write!(d, " L{},{}", px(end.x - back), px(end.y)),
            Piece::Curve(a, b, end) => {
                let (ax, ay, bx, by) = (px(a.x), px(a.y), px(b.x), px(b.y));
                write!(d, " C{ax},{ay} {bx},{by} {},{}", px(end.x - back), px(end.y))
            }
        };
    }
    d
}

/// A length with at most one decimal.
fn px(length: f64) -> String {
    let tenths = (length * 10.0).round() / 10.0;
    if tenths == 0.0 { "0".to_owned() } else { tenths.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn what_is_drawn_is_well_formed_and_needs_nothing_from_outside() {
        for picture in
            [samples::hostile(), samples::two_models(), samples::classify_live(), samples::broken(), Picture::default()]
        {
            let svg = render(&picture);
            let body = svg.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").expect("a declaration");
            samples::assert_well_formed(body);
            let outside = body.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
            for word in ["http", "@import", "<script", "href"] {
                assert!(!outside.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn names_are_shown_as_they_are_written() {
        let svg = render(&samples::hostile());
        assert!(svg.contains(">a&quot;b&#39;c`d</text>"));
        assert!(svg.contains(">&lt;/text&gt;&lt;/svg&gt;&lt;script&gt;aler…</text>"), "cut to the box");
        assert!(
            svg.contains("<title>&lt;/text&gt;&lt;/svg&gt;&lt;script&gt;alert(1)&lt;/script&gt;: kind"),
            "whole in the title"
        );
    }

    #[test]
    fn a_screen_reader_hears_the_graph() {
        let svg = render(&samples::union_with_rejects());
        assert!(svg.contains("role=\"img\" aria-labelledby=\"fg-title fg-desc\""));
        assert!(svg.contains("cats (source.files) feeds pixels."));
        assert!(svg.contains("pixels (decode.image) feeds bad (its rejects), scores.batch."));
    }

    #[test]
    fn only_rejects_are_dashed_and_roles_differ_without_colour() {
        let svg = render(&samples::union_with_rejects());
        assert_eq!(svg.matches("<g class=\"fg-edge fg-rejects\">").count(), 1);
        assert_eq!(svg.matches("<g class=\"fg-edge\">").count(), 5);
        let mut seen: Vec<&str> = super::super::Role::ALL.iter().map(|&role| signs::sign(role)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), super::super::Role::ALL.len());
    }

    #[test]
    fn shares_fill_the_bar_and_no_more() {
        let mut picture = samples::classify_live();
        if let Some(live) = &mut picture.nodes[0].live {
            (live.busy, live.starved, live.blocked) = (7.0, f64::NAN, 0.5);
        }
        let svg = render(&picture);
        let widths = |mark: &str| -> Vec<f64> {
            svg.lines()
                .filter(|line| line.starts_with(mark))
                .filter_map(|line| line.split(" width=\"").nth(1)?.split('"').next()?.parse().ok())
                .collect()
        };
        assert_eq!(widths("<rect class=\"fg-solid\"")[0], widths("<rect class=\"fg-trough\"")[0]);
    }
}
