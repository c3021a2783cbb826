//! The picture in graphviz's language.
//!
//! Nodes go by their names, so that the file can be read and edited; colours come from the [`super::palette`], and a
//! node's kind, which names its role, stands in its box. Rejects are dashed.

use std::fmt::Write;

use super::figures::{percent, rate};
use super::palette::{self, REJECTS_LIGHT};
use super::picture::{EdgeKind, Origin, Picture, PictureNode};
use super::plain::one_line;

/// The picture as a `digraph`.
#[must_use]
pub fn render(picture: &Picture) -> String {
    let mut dot = String::new();
    let _ = writeln!(dot, "digraph {} {{", quoted(&picture.title));
    let _ =
        writeln!(dot, "  graph [rankdir=LR, label={}, labelloc=t, fontname=\"sans-serif\"];", quoted(&picture.title));
    let _ = writeln!(dot, "  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=11];");
    let _ = writeln!(dot, "  edge [fontname=\"sans-serif\", fontsize=9];");
    for node in &picture.nodes {
        let tint = palette::light(node.role);
        let mut style = "rounded,filled".to_owned();
        if node.origin == Origin::Inserted {
            style.push_str(",dashed");
        }
        let limits = node.live.is_some_and(|live| live.limits_run);
        let _ = writeln!(
            dot,
            "  {} [label={}, class={}, style=\"{style}\", color=\"{}\", fillcolor=\"{}\", penwidth={}];",
            quoted(&node.name),
            label_of(node),
            quoted(node.role.word()),
            tint.strong,
            tint.faint,
            if limits { 3 } else { 1 },
        );
    }
    for edge in &picture.edges {
        let (from, to, label) = (quoted(&edge.from), quoted(&edge.to), quoted(&edge.label));
        match edge.carries {
            EdgeKind::Rows => {
                let _ = writeln!(dot, "  {from} -> {to} [label={label}];");
            }
            EdgeKind::Rejects => {
                let _ = writeln!(
                    dot,
                    "  {from} -> {to} [label={label}, class=\"rejects\", style=dashed, color=\"{REJECTS_LIGHT}\"];"
                );
            }
        }
    }
    dot.push_str("}\n");
    dot
}

fn label_of(node: &PictureNode) -> String {
    let mut lines = vec![node.name.clone(), node.kind.clone()];
    if !node.detail.is_empty() {
        lines.push(node.detail.clone());
    }
    if let Some(live) = node.live {
        lines.push(format!("{}, busy {}", rate(live.rows_per_s), percent(live.busy)));
        if live.limits_run {
            lines.push("limits the run".to_owned());
        }
    }
    let escaped: Vec<String> = lines.iter().map(|line| escape(line)).collect();
    format!("\"{}\"", escaped.join("\\n"))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escape(text))
}

/// A backslash starts an escape in labels, and before a quote in all strings, so it is doubled everywhere. `&` starts
/// an entity in labels.
fn escape(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_chain_reads_as_one_line_per_node_and_edge() {
        let dot = render(&samples::classify());
        assert!(dot.starts_with("digraph \"classify\" {\n"));
        assert_eq!(dot.matches(" -> ").count(), 5);
        assert!(dot.contains(
            "  \"batches\" [label=\"batches\\nbatch\\n32\", class=\"batch\", style=\"rounded,filled\", color=\"#57606f\", fillcolor=\"#f5f6f8\", penwidth=1];\n"
        ));
    }

    #[test]
    fn rejects_are_dashed_and_rows_are_not() {
        let dot = render(&samples::union_with_rejects());
        let dashed: Vec<_> = dot.lines().filter(|line| line.contains("style=dashed")).collect();
        assert_eq!(dashed.len(), 1);
        assert!(dashed[0].starts_with("  \"pixels\" -> \"bad\" "));
    }

    /// Walks the text as graphviz's scanner does: in a string only `\"` is no end.
    #[test]
    fn every_string_is_closed_on_its_line() {
        for line in render(&samples::hostile()).lines() {
            let mut inside = false;
            let mut chars = line.chars();
            while let Some(c) = chars.next() {
                match (inside, c) {
                    (true, '\\') => assert!(chars.next().is_some()),
                    (_, '"') => inside = !inside,
                    _ => {}
                }
            }
            assert!(!inside, "{line}");
        }
    }
}
