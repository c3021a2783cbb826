//! What was found, as people read it. The last line is the answer.

use engine::graph::render::plain::width;

use super::figures::{Decoder, Kind, Logits, Model, Refused, Report, Side};
use crate::progress::Terminal;
use crate::progress::human::count;
use crate::progress::line::{Line, Tone};

/// Files that are named for each thing that is wrong.
const NAMED: usize = 5;

pub(super) fn text(report: &Report, terminal: &Terminal) -> String {
    let mut page = Page { lines: Vec::new(), terminal };
    for node in &report.nodes {
        page.decoder(node, &report.about.pillow);
    }
    for model in &report.models {
        page.model(model);
    }
    page.line(Tone::Plain, "");
    let (tone, answer) = answer(report);
    page.line(tone, &answer);
    let painted = |line: Line| line.fitted(None, terminal.charset).painted(terminal.colour) + "\n";
    page.lines.into_iter().map(painted).collect()
}

fn answer(report: &Report) -> (Tone, String) {
    let n_compared = report.n_compared();
    let files = count(n_compared as u64, "file");
    if !report.is_fine() {
        let n_wrong: usize = report.nodes.iter().map(Decoder::n_wrong).sum();
        let n_models = report.models.iter().flat_map(|model| &model.found).filter(|found| !found.is_fine()).count();
        let mut wrong = Vec::new();
        if n_wrong > 0 {
            wrong.push(format!("{} not as Pillow makes them", count(n_wrong as u64, "file")));
        }
        if n_models > 0 {
            wrong.push(format!("{} not as torchvision computes them", count(n_models as u64, "model's logits")));
        }
        return (Tone::Alert, format!("{}: {} ({files} compared)", report.file, wrong.join(", ")));
    }
    if n_compared == 0 {
        return (Tone::Alert, format!("{}: nothing could be compared", report.file));
    }
    let kinds = report.nodes.iter().flat_map(|node| node.kinds.values());
    let most = kinds.map(|kind| kind.most).max().unwrap_or(0);
    let how = if most == 0 { "every byte as Pillow's".to_owned() } else { format!("largest difference {most}/255") };
    (Tone::Good, format!("{}: fine, {files} compared, {how}", report.file))
}

struct Page<'a> {
    lines: Vec<Line>,
    terminal: &'a Terminal,
}

impl Page<'_> {
    fn line(&mut self, tone: Tone, text: &str) {
        let mut line = Line::default();
        line.push(tone, text, self.terminal.charset);
        self.lines.push(line);
    }

    /// A node's name, and what is said of it.
    fn named(&mut self, name: &str, tone: Tone, text: &str) {
        let mut line = Line::default();
        line.push(Tone::Strong, name, self.terminal.charset);
        line.push_own(Tone::Plain, "  ");
        line.push(tone, text, self.terminal.charset);
        self.lines.push(line);
    }

    fn decoder(&mut self, node: &Decoder, pillow: &str) {
        self.named(&node.name, Tone::Plain, &format!("{}, against Pillow {pillow}", node.rules));
        for why in &node.left_out {
            self.line(Tone::Alert, &format!("  not compared: {why}"));
        }
        if !node.kinds.is_empty() {
            self.table(node);
        }
        let n_of = |side| node.refused_by_one.iter().filter(|refused| refused.by == side).count();
        let (here, there) = (n_of(Side::Here), n_of(Side::Pillow));
        if node.n_refused_by_both + here + there > 0 {
            let both = node.n_refused_by_both;
            self.line(
                Tone::Plain,
                &format!("  rejected by both: {both}, here alone: {here}, by Pillow alone: {there}"),
            );
        }
        for kind in node.kinds.values() {
            let lines = kind.beyond.iter().map(|(uri, what)| format!("{uri}: {what}"));
            self.some(Tone::Alert, lines.collect());
        }
        for side in [Side::Here, Side::Pillow] {
            for is_wrong in [true, false] {
                let of = |refused: &&Refused| refused.by == side && refused.is_disagreement() == is_wrong;
                let tone = if is_wrong { Tone::Alert } else { Tone::Plain };
                self.some(tone, node.refused_by_one.iter().filter(of).map(refusal).collect());
            }
        }
        if !node.unread.is_empty() {
            self.line(Tone::Plain, &format!("  never came to the node: {}", node.unread.len()));
            let why = |refused: &Refused| format!("{}: {}", refused.uri, refused.why);
            self.some(Tone::Plain, node.unread.iter().map(why).collect());
        }
    }

    fn table(&mut self, node: &Decoder) {
        let titles = ["kind", "files", "equal", "largest", "mean", "bound"].map(str::to_owned);
        let rows: Vec<_> =
            [titles].into_iter().chain(node.kinds.iter().map(|(name, kind)| cells(name, kind))).collect();
        let widths: [usize; 6] =
            std::array::from_fn(|column| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0));
        for (at, row) in rows.iter().enumerate() {
            let tone = if at == 0 { Tone::Faint } else { Tone::Plain };
            let mut line = Line::default();
            for (column, cell) in row.iter().enumerate() {
                line.push_own(Tone::Plain, "  ");
                if column == 0 {
                    line.push_padded(tone, cell, widths[column], self.terminal.charset);
                } else {
                    line.push_own(Tone::Plain, " ".repeat(widths[column] - width(cell)));
                    line.push(tone, cell, self.terminal.charset);
                }
            }
            self.lines.push(line);
        }
    }

    /// The first of some lines, and how many more there are.
    fn some(&mut self, tone: Tone, lines: Vec<String>) {
        for line in lines.iter().take(NAMED) {
            self.line(tone, &format!("    {line}"));
        }
        if lines.len() > NAMED {
            self.line(tone, &format!("    and {} more: `--format json` names all", lines.len() - NAMED));
        }
    }

    fn model(&mut self, model: &Model) {
        match &model.found {
            Err(why) => self.named(&model.name, Tone::Plain, &format!("logits: not compared ({why})")),
            Ok(found) => {
                let tone = if found.is_fine() { Tone::Plain } else { Tone::Alert };
                let same = if found.n_same_first == found.n_rows {
                    "the same class first in all".to_owned()
                } else {
                    format!("the same class first in {}", found.n_same_first)
                };
                let rows = count(found.n_rows as u64, "row");
                let (most, bound) = (found.most, Logits::BOUND);
                let text = format!(
                    "logits: {rows} against torchvision, {same}, probabilities within {most:.1e} (bound {bound})"
                );
                self.named(&model.name, tone, &text);
            }
        }
    }
}

fn cells(name: &str, kind: &Kind) -> [String; 6] {
    [
        name.to_owned(),
        kind.n_files.to_string(),
        kind.n_equal.to_string(),
        format!("{}/255", kind.most),
        format!("{:.3}", kind.mean()),
        format!("{} (mean {})", kind.bound.most, kind.bound.mean),
    ]
}

fn refusal(refused: &Refused) -> String {
    let by = match refused.by {
        Side::Here => "rejected here alone",
        Side::Pillow => "rejected by Pillow alone",
    };
    format!("{}: {by}: {}: {}", refused.uri, refused.code, refused.why)
}

#[cfg(test)]
mod tests {
    use super::super::reference::About;
    use super::*;

    fn report() -> Report {
        let mut node = Decoder {
            name: "pixels".into(),
            rules: "256 bicubic, crop 224 (from model)".into(),
            n_files: 4,
            n_refused_by_both: 1,
            ..Decoder::default()
        };
        for (name, ours) in [("JPEG RGB 4:2:0", [3, 2]), ("PNG P", [1, 2])] {
            let mut kind = Kind::new();
            kind.add("a", &ours, &[1, 2]);
            node.kinds.insert(name.into(), kind);
        }
        let (uri, code, why) = ("t.jpg".into(), "unsupported".into(), "arithmetic coding".into());
        node.refused_by_one = vec![Refused { uri, by: Side::Here, code, why }];
        let models = vec![Model { name: "scores".into(), found: Err("torch is not importable".into()) }];
        let about = About { python: "3.11.7".into(), pillow: "13.0.0".into() };
        Report { file: "p.yaml".into(), about, nodes: vec![node], models }
    }

    #[test]
    fn the_last_line_is_the_answer() {
        let expected = "\
pixels  256 bicubic, crop 224 (from model), against Pillow 13.0.0
  kind            files  equal  largest   mean          bound
  JPEG RGB 4:2:0      1      0    2/255  1.000  1 (mean 0.01)
  PNG P               1      1    0/255  0.000  1 (mean 0.01)
  rejected by both: 1, here alone: 1, by Pillow alone: 0
    a: off by up to 2/255, 1.000 on average
    t.jpg: rejected here alone: unsupported: arithmetic coding
scores  logits: not compared (torch is not importable)

p.yaml: 1 file not as Pillow makes them (2 files compared)
";
        assert_eq!(text(&report(), &Terminal::PIPE), expected);
    }

    #[test]
    fn a_good_end_says_how_good() {
        let last = |report: &Report| text(report, &Terminal::PIPE).lines().last().map(str::to_owned);
        let mut report = report();
        report.nodes[0].kinds.remove("JPEG RGB 4:2:0");
        assert_eq!(last(&report).as_deref(), Some("p.yaml: fine, 1 file compared, every byte as Pillow's"));
        report.nodes[0].kinds.clear();
        assert_eq!(last(&report).as_deref(), Some("p.yaml: nothing could be compared"));
        report.models[0].found = Ok(Logits { n_rows: 2, n_same_first: 1, most: 0.5 });
        let told = "p.yaml: 1 model's logits not as torchvision computes them (0 files compared)";
        assert_eq!(last(&report).as_deref(), Some(told));
    }
}
