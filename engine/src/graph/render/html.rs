//! The drawing in a page of its own, with a table of the run's figures where there are any.
//!
//! Needs nothing from outside and runs no script; a drawing wider than the window scrolls.

use std::fmt::Write;

use super::figures::{grouped, percent, rate};
use super::picture::Picture;
use super::svg;
use super::xml::escape;

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { margin: 1.5rem; font: 15px/1.5 system-ui, sans-serif; background: #ffffff; color: #1f2328; }
.drawing { overflow-x: auto; }
.drawing svg { display: block; }
table { border-collapse: collapse; margin: 1.5rem 0 0 0.5rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.9rem; border-bottom: 1px solid #d1d9e0; text-align: right; }
th { font-weight: 600; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2), td:last-child { text-align: left; }
.limits td { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  body { background: #0d1117; color: #e6edf3; }
  th, td { border-color: #30363d; }
}
";

/// The picture as an HTML page.
#[must_use]
pub fn render(picture: &Picture) -> String {
    let mut page = String::new();
    let _ = writeln!(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">");
    let _ = writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    let _ = writeln!(page, "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>", escape(&picture.title));
    let _ = write!(page, "<div class=\"drawing\" tabindex=\"0\">\n{}</div>\n", svg::element(picture));
    if picture.is_live() {
        write_figures(&mut page, picture);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn write_figures(page: &mut String, picture: &Picture) {
    page.push_str("<table>\n<thead><tr>");
    for heading in ["node", "kind", "rate", "busy", "starved", "blocked", "rejects", ""] {
        let _ = write!(page, "<th scope=\"col\">{heading}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for node in &picture.nodes {
        let Some(live) = &node.live else { continue };
        let (class, verdict) = if live.limits_run { (" class=\"limits\"", "limits the run") } else { ("", "") };
        let cells = [
            escape(&node.name),
            escape(&node.kind),
            rate(live.rows_per_s),
            percent(live.busy),
            percent(live.starved),
            percent(live.blocked),
            grouped(live.rejects),
            verdict.to_owned(),
        ];
        let _ = writeln!(page, "<tr{class}><td>{}</td></tr>", cells.join("</td><td>"));
    }
    page.push_str("</tbody>\n</table>\n");
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_page_without_a_run_has_no_table() {
        assert!(!render(&samples::classify()).contains("<table>"));
    }

    #[test]
    fn a_page_of_a_run_lists_the_figures_of_each_node() {
        let page = render(&samples::classify_live());
        assert_eq!(page.matches("<tr").count(), 1 + 6);
        assert!(page.contains(
            "<tr class=\"limits\"><td>pixels</td><td>decode.image</td><td>2,310/s</td><td>97 %</td><td>2 %</td><td>1 %</td><td>17</td><td>limits the run</td></tr>"
        ));
    }

    #[test]
    fn no_name_becomes_markup() {
        let page = render(&samples::hostile());
        let drawing =
            page.split("<div class=\"drawing\" tabindex=\"0\">\n").nth(1).and_then(|rest| rest.split("</div>").next());
        samples::assert_well_formed(drawing.expect("a drawing"));
        assert!(!page.contains("<script"));
    }
}
