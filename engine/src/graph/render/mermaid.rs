//! The picture as a mermaid flowchart, which code hosts and wikis draw by themselves.
//!
//! Nodes are `n0`, `n1`, … there, because names such as `end` are words of the language; what is shown is the name.

use std::fmt::Write;

use super::figures::{percent, rate};
use super::palette::{self, REJECTS_LIGHT};
use super::picture::{EdgeKind, Origin, Picture, PictureNode, Role};
use super::plain::one_line;
use super::wiring::Wiring;

/// The picture as a `flowchart LR`.
#[must_use]
pub fn render(picture: &Picture) -> String {
    let mut chart = String::new();
    let title = serde_json::Value::from(one_line(&picture.title));
    let _ = writeln!(chart, "---\ntitle: {title}\n---\nflowchart LR");
    for (idx, node) in picture.nodes.iter().enumerate() {
        let _ = writeln!(chart, "  n{idx}[\"{}\"]:::{}", label_of(node), node.role.word());
    }
    let wiring = Wiring::of(picture);
    for link in &wiring.links {
        let arrow = match link.carries {
            EdgeKind::Rows => "-->",
            EdgeKind::Rejects => "-.->",
        };
        let label = escape(&picture.edges[link.edge].label);
        let label = if label.is_empty() { label } else { format!("|\"{label}\"|") };
        let _ = writeln!(chart, "  n{} {arrow}{label} n{}", link.from, link.to);
    }
    for role in Role::ALL {
        let tint = palette::light(role);
        let _ = writeln!(chart, "  classDef {} fill:{},stroke:{},color:#1f2328", role.word(), tint.faint, tint.strong);
    }
    for (idx, node) in picture.nodes.iter().enumerate() {
        if node.live.is_some_and(|live| live.limits_run) {
            let _ = writeln!(chart, "  style n{idx} stroke-width:4px");
        } else if node.origin == Origin::Inserted {
            let _ = writeln!(chart, "  style n{idx} stroke-dasharray:3 3");
        }
    }
    for (at, link) in wiring.links.iter().enumerate() {
        if link.carries == EdgeKind::Rejects {
            let _ = writeln!(chart, "  linkStyle {at} stroke:{REJECTS_LIGHT}");
        }
    }
    chart
}

fn label_of(node: &PictureNode) -> String {
    let mut label = format!("{}<br/>{}", escape(&node.name), escape(&node.kind));
    if !node.detail.is_empty() {
        let _ = write!(label, "<br/>{}", escape(&node.detail));
    }
    if let Some(live) = node.live {
        let _ = write!(label, "<br/>{}, busy {}", rate(live.rows_per_s), percent(live.busy));
        if live.limits_run {
            label.push_str("<br/>limits the run");
        }
    }
    label
}

/// Everything but letters, digits and a few harmless marks becomes a character code: mermaid's own escape, which is
/// read after the text has been split and before it becomes markup. So no text is taken for markup, Markdown or syntax.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in one_line(text).chars() {
        if c.is_alphanumeric() || " .,_-/:()+=".contains(c) {
            escaped.push(c);
        } else {
            let _ = write!(escaped, "#{};", u32::from(c));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn roles_are_classes_and_rejects_are_dashed() {
        let chart = render(&samples::union_with_rejects());
        assert!(chart.contains("  n2[\"pixels<br/>decode.image<br/>224x224 bilinear\"]:::decode\n"));
        assert!(chart.contains("  n2 -.->|\"id, uri, node, code, message\"| n3\n"));
        assert!(chart.contains("  n2 -->|\"image u8 #91;224,224,3#93;\"| n4\n"));
        assert!(chart.contains("  linkStyle 2 stroke:#b42318\n"));
        assert!(chart.contains("  classDef decode fill:#eff8fd,stroke:#0369a1,color:#1f2328\n"));
        assert!(chart.contains("  style n4 stroke-dasharray:3 3\n"));
    }

    #[test]
    fn nothing_of_a_name_is_left_that_the_language_would_read() {
        let chart = render(&samples::hostile());
        for line in chart.lines().filter(|line| line.starts_with("  n")) {
            assert_eq!(line.matches('"').count(), 2, "{line}");
            let inside = line.split('"').nth(1).unwrap_or_default();
            let text = inside.replace("<br/>", "");
            assert!(!text.contains(['<', '>', '`', '|', '[', ']', '{', '}', '\\', '&', '%']), "{line}");
        }
    }

    #[test]
    fn a_title_is_a_quoted_string() {
        assert!(render(&samples::hostile()).starts_with("---\ntitle: \"t\\\"<&` \u{fffd}: #\"\n---\n"));
    }
}
