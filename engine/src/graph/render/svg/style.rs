//! Colours and fonts, and the patterns that stand for shares of time.

use std::fmt::Write;

use super::super::palette::{REJECTS_DARK, REJECTS_LIGHT, Tint, dark, light};
use super::super::picture::Role;

const SANS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, Ubuntu, 'Noto Sans', 'DejaVu Sans', sans-serif";
const MONO: &str = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/// Fills for the bar of shares. The paper shows between the lines, so they need no colours of their own for the dark.
pub(super) const PATTERNS: &str = concat!(
    "<defs>\n",
    "<pattern id=\"fg-starved\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">",
    "<rect class=\"fg-hatch\" width=\"1.6\" height=\"5\"/></pattern>\n",
    "<pattern id=\"fg-blocked\" width=\"3\" height=\"3\" patternUnits=\"userSpaceOnUse\">",
    "<rect class=\"fg-hatch\" width=\"1.7\" height=\"1.7\"/></pattern>\n",
    "</defs>\n",
);

/// The colours of one paper that are no role's.
struct Paper {
    paper: &'static str,
    ink: &'static str,
    muted: &'static str,
    line: &'static str,
    rejects: &'static str,
}

const LIGHT: Paper =
    Paper { paper: "#ffffff", ink: "#1f2328", muted: "#59636e", line: "#6e7781", rejects: REJECTS_LIGHT };
const DARK: Paper =
    Paper { paper: "#0d1117", ink: "#e6edf3", muted: "#9da7b3", line: "#8b949e", rejects: REJECTS_DARK };

/// The style sheet.
pub(super) fn sheet() -> String {
    let mut sheet = String::new();
    let _ = writeln!(sheet, ".fg text {{ font-family: {SANS}; font-size: 10.5px; }}");
    let _ = writeln!(sheet, ".fg .fg-heading {{ font-size: 17px; font-weight: 600; }}");
    let _ = writeln!(sheet, ".fg .fg-name {{ font-size: 13px; font-weight: 600; }}");
    let _ = writeln!(sheet, ".fg .fg-alert {{ font-weight: 600; }}");
    let _ = writeln!(sheet, ".fg .fg-kind {{ font-family: {MONO}; }}");
    let _ = writeln!(sheet, ".fg .fg-label {{ font-family: {MONO}; font-size: 10px; text-anchor: middle; }}");
    let _ = writeln!(sheet, ".fg .fg-line {{ fill: none; stroke-width: 1.5; }}");
    let _ = writeln!(sheet, ".fg .fg-rejects .fg-line {{ stroke-dasharray: 5 4; }}");
    let _ = writeln!(sheet, ".fg .fg-frame {{ stroke-width: 1.25; }}");
    let _ = writeln!(sheet, ".fg .fg-inserted .fg-frame {{ stroke-dasharray: 3 2.5; }}");
    let _ = writeln!(sheet, ".fg .fg-limits .fg-frame {{ stroke-width: 3; }}");
    let _ = writeln!(
        sheet,
        ".fg .fg-sign {{ fill: none; stroke: #ffffff; stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round; }}"
    );
    let _ = writeln!(sheet, ".fg .fg-sign circle {{ fill: #ffffff; stroke: none; }}");
    let _ = writeln!(sheet, ".fg .fg-trough {{ fill: none; stroke-width: 0.75; }}");
    write_colours(&mut sheet, &LIGHT, light);
    sheet.push_str("@media (prefers-color-scheme: dark) {\n");
    write_colours(&mut sheet, &DARK, dark);
    sheet.push_str("}\n");
    sheet
}

fn write_colours(sheet: &mut String, paper: &Paper, tint: fn(Role) -> Tint) {
    let Paper { paper, ink, muted, line, rejects } = paper;
    let _ = writeln!(sheet, ".fg .fg-paper {{ fill: {paper}; }}");
    let _ = writeln!(sheet, ".fg text {{ fill: {ink}; }}");
    let _ = writeln!(sheet, ".fg .fg-kind, .fg .fg-label, .fg .fg-note {{ fill: {muted}; }}");
    let _ = writeln!(sheet, ".fg .fg-line, .fg .fg-trough {{ stroke: {line}; }}");
    let _ = writeln!(sheet, ".fg .fg-tip, .fg .fg-hatch {{ fill: {line}; }}");
    let _ = writeln!(sheet, ".fg .fg-rejects .fg-line {{ stroke: {rejects}; }}");
    let _ = writeln!(sheet, ".fg .fg-rejects .fg-tip, .fg .fg-rejects .fg-label, .fg .fg-alert {{ fill: {rejects}; }}");
    for role in Role::ALL {
        let Tint { strong, faint } = tint(role);
        let word = role.word();
        let _ = writeln!(sheet, ".fg .fg-{word} .fg-frame {{ fill: {faint}; stroke: {strong}; }}");
        let _ = writeln!(sheet, ".fg .fg-{word} .fg-solid {{ fill: {strong}; }}");
    }
}
