//! What a run says at its end.
//!
//! The first line is the outcome; then the nodes, the outputs, the balance of rows, and last the answer to what the
//! reader wants to know now: how to make it faster, or, after an interruption, where what is done lies.

use std::time::Duration;

use engine::graph::render::plain::{for_terminal, width};

use super::human::{bytes, count, duration, grouped};
use super::line::{Line, Tone};
use super::node_lines::{self, Moment};
use super::snapshot::NodeLine;
use super::terminal::{Charset, Terminal};
use super::worker_lines::{self, WorkerLine};

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The pipeline's name.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed: Duration,
    /// Rows that came out of it, each counted once.
    pub rows: u64,
    /// Rejects by their code.
    pub rejects: Vec<RejectGroup>,
    /// The file that lists them.
    pub rejects_path: Option<String>,
    /// What it wrote, in the order of the file.
    pub outputs: Vec<Output>,
    /// The nodes and their figures over the whole run; may be empty.
    pub nodes: Vec<NodeLine>,
    /// The workers that computed its models, where they are worth a word.
    pub workers: Vec<WorkerLine>,
    /// What happened to them that should be known, a sentence each.
    pub warnings: Vec<String>,
    /// Where its trace is, if it was asked for.
    pub trace: Option<String>,
    /// What kept it from being faster, if that is known.
    pub verdict: Option<Verdict>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All rows are through.
    Done,
    /// It was asked to stop; what was on its way has been written.
    Interrupted,
    /// A fault ended it.
    Faulted,
}

/// Rejects with the same code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectGroup {
    /// The code, such as `truncated`.
    pub code: String,
    /// How many.
    pub rows: u64,
}

/// One output and the balance of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Where it is now; of one in several files, the first and the last.
    pub path: String,
    /// How many files it is in, if that is worth a word.
    pub files: Option<usize>,
    /// Rows written.
    pub rows: u64,
    /// Its size, where it has one.
    pub bytes: Option<u64>,
    /// Rows that set out on the way to it.
    pub entered: u64,
    /// Rows rejected on that way.
    pub rejected: u64,
}

/// What kept a run from being faster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The node's name.
    pub node: String,
    /// Its kind.
    pub kind: String,
    /// The evidence: `14 of 14 threads busy 97 %`.
    pub why: String,
    /// What may help, the best first.
    pub hints: Vec<String>,
}

impl Output {
    fn adds_up(&self) -> bool {
        self.rows.checked_add(self.rejected) == Some(self.entered)
    }

    fn balance(&self) -> String {
        let sum = format!("{} out + {} rejected", grouped(self.rows), grouped(self.rejected));
        let sign = if self.adds_up() { "=" } else { "is not" };
        format!("{} in {sign} {sum}", grouped(self.entered))
    }
}

/// The lines of a summary.
#[must_use]
pub fn lines(summary: &Summary, terminal: &Terminal) -> Vec<Line> {
    let charset = terminal.charset;
    let mut lines = vec![outcome(summary, charset)];
    lines.extend(node_lines::all(&summary.nodes, Moment::Over, terminal));
    push_workers(&mut lines, summary, charset);
    if summary.outcome == Outcome::Interrupted {
        push_verdict(&mut lines, summary, charset);
        push_trace(&mut lines, summary, charset);
        push_balances(&mut lines, summary, charset);
        push_outputs(&mut lines, summary, charset);
    } else {
        push_outputs(&mut lines, summary, charset);
        push_balances(&mut lines, summary, charset);
        push_trace(&mut lines, summary, charset);
        push_verdict(&mut lines, summary, charset);
    }
    lines
}

/// The lines as text, with colours where the terminal wants them.
#[must_use]
pub fn text(summary: &Summary, terminal: &Terminal) -> String {
    let mut text = String::new();
    for line in lines(summary, terminal) {
        text.push_str(&line.painted(terminal.colour));
        text.push('\n');
    }
    text
}

fn outcome(summary: &Summary, charset: Charset) -> Line {
    let mut line = Line::default();
    line.push(Tone::Strong, &summary.name, charset);
    let (tone, words) = match summary.outcome {
        Outcome::Done => (Tone::Good, "done in"),
        Outcome::Interrupted => (Tone::Alert, "interrupted after"),
        Outcome::Faulted => (Tone::Alert, "ended by a fault after"),
    };
    line.push_own(Tone::Plain, ": ");
    line.push_own(tone, words);
    line.push_own(Tone::Plain, format!(" {}, {}", duration(summary.elapsed), count(summary.rows, "row")));
    let n_rejects = summary.rejects.iter().fold(0_u64, |sum, group| sum.saturating_add(group.rows));
    if n_rejects == 0 {
        return line;
    }
    line.push_own(Tone::Plain, ", ");
    line.push_own(Tone::Alert, count(n_rejects, "reject"));
    let mut groups: Vec<&RejectGroup> = summary.rejects.iter().filter(|group| group.rows > 0).collect();
    groups.sort_by(|a, b| b.rows.cmp(&a.rows).then_with(|| a.code.cmp(&b.code)));
    let codes: Vec<String> = groups.iter().map(|group| format!("{} {}", grouped(group.rows), group.code)).collect();
    line.push(Tone::Plain, &format!(" ({}", codes.join(", ")), charset);
    if let Some(path) = &summary.rejects_path {
        line.push_own(Tone::Plain, if charset == Charset::Unicode { " → " } else { " -> " });
        line.push(Tone::Plain, path, charset);
    }
    line.push_own(Tone::Plain, ")");
    line
}

fn push_workers(lines: &mut Vec<Line>, summary: &Summary, charset: Charset) {
    lines.extend(worker_lines::all(&summary.workers, charset));
    for warning in &summary.warnings {
        let mut line = Line::default();
        line.push_own(Tone::Plain, "  ");
        line.push(Tone::Alert, warning, charset);
        lines.push(line);
    }
}

fn push_trace(lines: &mut Vec<Line>, summary: &Summary, charset: Charset) {
    let Some(path) = &summary.trace else { return };
    let mut line = Line::default();
    line.push_own(Tone::Plain, "  trace in ");
    line.push(Tone::Strong, path, charset);
    line.push_own(Tone::Plain, ": open it in ui.perfetto.dev or chrome://tracing");
    lines.push(line);
}

fn push_outputs(lines: &mut Vec<Line>, summary: &Summary, charset: Charset) {
    let paths: Vec<String> = summary.outputs.iter().map(|output| for_terminal(&output.path, charset)).collect();
    let rows: Vec<String> = summary.outputs.iter().map(|output| count(output.rows, "row")).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let (path_columns, rows_columns) = (widest(&paths), widest(&rows));
    for (output, (path, rows)) in summary.outputs.iter().zip(paths.iter().zip(&rows)) {
        let mut line = Line::default();
        line.push_own(Tone::Plain, "  ");
        line.push_padded(Tone::Strong, path, path_columns, charset);
        if let Some(files) = output.files {
            line.push_own(Tone::Plain, format!("  {}", count(files as u64, "file")));
        }
        line.push_own(Tone::Plain, format!("  {rows:>rows_columns$}"));
        if let Some(size) = output.bytes {
            line.push_own(Tone::Plain, format!("  {}", bytes(size)));
        }
        lines.push(line);
    }
}

/// Outputs on the way to which the same rows set out and were rejected share a line.
fn push_balances(lines: &mut Vec<Line>, summary: &Summary, charset: Charset) {
    let Some(first) = summary.outputs.first() else {
        return;
    };
    let alike = summary.outputs.iter().all(|output| output.balance() == first.balance());
    for output in if alike { std::slice::from_ref(first) } else { &summary.outputs[..] } {
        let mut line = Line::default();
        line.push_own(Tone::Plain, "  ");
        if !alike {
            line.push(Tone::Plain, &format!("{}: ", output.path), charset);
        }
        let tone = if output.adds_up() { Tone::Plain } else { Tone::Alert };
        line.push_own(tone, output.balance());
        lines.push(line);
    }
}

fn push_verdict(lines: &mut Vec<Line>, summary: &Summary, charset: Charset) {
    let Some(verdict) = &summary.verdict else {
        return;
    };
    let mut line = Line::default();
    line.push_own(Tone::Plain, "  limited by ");
    line.push(Tone::Strong, &format!("`{}`", verdict.node), charset);
    line.push(Tone::Plain, &format!(" ({}): {}", verdict.kind, verdict.why), charset);
    lines.push(line);
    if !verdict.hints.is_empty() {
        let mut line = Line::default();
        line.push_own(Tone::Plain, "  try: ");
        line.push(Tone::Plain, &verdict.hints.join(", "), charset);
        lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::super::terminal::Colour;
    use super::*;

    fn output(path: &str, entered: u64, rows: u64, rejected: u64, bytes: Option<u64>) -> Output {
        Output { path: path.to_owned(), files: None, rows, bytes, entered, rejected }
    }

    fn group(code: &str, rows: u64) -> RejectGroup {
        RejectGroup { code: code.to_owned(), rows }
    }

    fn classify() -> Summary {
        Summary {
            name: "classify".to_owned(),
            outcome: Outcome::Done,
            elapsed: Duration::from_secs(432),
            rows: 999_983,
            rejects: vec![group("not_found", 5), group("truncated", 12), group("panic", 0)],
            rejects_path: Some("out/classify.rejects.jsonl".to_owned()),
            outputs: vec![output("out/labels.jsonl", 1_000_000, 999_983, 17, Some(213_800_000))],
            nodes: Vec::new(),
            workers: Vec::new(),
            warnings: Vec::new(),
            trace: None,
            verdict: Some(Verdict {
                node: "pixels".to_owned(),
                kind: "decode.image".to_owned(),
                why: "14 of 14 threads busy 97 %; the GPUs waited 46 % of the time".to_owned(),
                hints: vec!["more cores".to_owned(), "`jpeg_scale: auto`".to_owned()],
            }),
        }
    }

    fn check(summary: &Summary, charset: Charset, expected: &[&str]) {
        let text = text(summary, &Terminal { charset, ..Terminal::PIPE });
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "\n{text}");
    }

    #[test]
    fn a_finished_run_ends_with_what_would_make_it_faster() {
        check(
            &classify(),
            Charset::Unicode,
            &[
                "classify: done in 7 m 12 s, 999,983 rows, 17 rejects (12 truncated, 5 not_found → out/classify.rejects.jsonl)",
                "  out/labels.jsonl  999,983 rows  214 MB",
                "  1,000,000 in = 999,983 out + 17 rejected",
                "  limited by `pixels` (decode.image): 14 of 14 threads busy 97 %; the GPUs waited 46 % of the time",
                "  try: more cores, `jpeg_scale: auto`",
            ],
        );
    }

    #[test]
    fn a_run_without_rejects_or_verdict_is_short() {
        let outputs = vec![output("-", 1, 1, 0, None)];
        let short = Summary { rows: 1, rejects: Vec::new(), rejects_path: None, outputs, verdict: None, ..classify() };
        check(
            &short,
            Charset::Unicode,
            &["classify: done in 7 m 12 s, 1 row", "  -  1 row", "  1 in = 1 out + 0 rejected"],
        );
    }

    #[test]
    fn what_happened_to_workers_stands_under_them() {
        let summary = Summary {
            workers: vec![WorkerLine { device: "cuda:0".to_owned(), rows: 7, ..WorkerLine::default() }],
            warnings: vec!["worker 0 (cuda:0) was replaced".to_owned()],
            trace: Some("t.json".to_owned()),
            rejects: Vec::new(),
            ..classify()
        };
        check(
            &summary,
            Charset::Unicode,
            &[
                "classify: done in 7 m 12 s, 999,983 rows",
                "  worker 0  cuda:0  7 rows",
                "  worker 0 (cuda:0) was replaced",
                "  out/labels.jsonl  999,983 rows  214 MB",
                "  1,000,000 in = 999,983 out + 17 rejected",
                "  trace in t.json: open it in ui.perfetto.dev or chrome://tracing",
                "  limited by `pixels` (decode.image): 14 of 14 threads busy 97 %; the GPUs waited 46 % of the time",
                "  try: more cores, `jpeg_scale: auto`",
            ],
        );
    }

    #[test]
    fn an_interrupted_run_ends_with_where_its_rows_are() {
        let outputs = vec![output("out/labels.jsonl.partial", 5_000, 4_999, 1, Some(1_070_000))];
        let interrupted = Summary {
            outcome: Outcome::Interrupted,
            rows: 4_999,
            rejects: vec![group("truncated", 1)],
            outputs,
            ..classify()
        };
        check(
            &interrupted,
            Charset::Ascii,
            &[
                "classify: interrupted after 7 m 12 s, 4,999 rows, 1 reject (1 truncated -> out/classify.rejects.jsonl)",
                "  limited by `pixels` (decode.image): 14 of 14 threads busy 97 %; the GPUs waited 46 % of the time",
                "  try: more cores, `jpeg_scale: auto`",
                "  5,000 in = 4,999 out + 1 rejected",
                "  out/labels.jsonl.partial  4,999 rows  1.07 MB",
            ],
        );
    }

    #[test]
    fn outputs_with_different_ways_have_balances_of_their_own() {
        let outputs =
            vec![output("out/labels.jsonl", 100, 83, 17, Some(9_000)), output("out/bad.csv", 17, 17, 0, Some(512))];
        let two = Summary { outputs, verdict: None, rejects: Vec::new(), ..classify() };
        check(
            &two,
            Charset::Unicode,
            &[
                "classify: done in 7 m 12 s, 999,983 rows",
                "  out/labels.jsonl  83 rows  9.00 kB",
                "  out/bad.csv       17 rows  512 B",
                "  out/labels.jsonl: 100 in = 83 out + 17 rejected",
                "  out/bad.csv: 17 in = 17 out + 0 rejected",
            ],
        );
    }

    #[test]
    fn an_output_in_several_files_says_how_many() {
        let outputs = vec![Output {
            files: Some(12),
            ..output("out/e-00000.parquet … out/e-00011.parquet", 1_000, 1_000, 0, Some(3_400_000))
        }];
        let many = Summary { outputs, verdict: None, rejects: Vec::new(), ..classify() };
        check(
            &many,
            Charset::Unicode,
            &[
                "classify: done in 7 m 12 s, 999,983 rows",
                "  out/e-00000.parquet … out/e-00011.parquet  12 files  1,000 rows  3.40 MB",
                "  1,000 in = 1,000 out + 0 rejected",
            ],
        );
    }

    #[test]
    fn a_balance_that_does_not_add_up_says_so() {
        let outputs = vec![output("a", 100, 90, 9, None)];
        let wrong = Summary { outputs, verdict: None, ..classify() };
        let text = text(&wrong, &Terminal { colour: Colour::On, ..Terminal::PIPE });
        assert!(text.contains("\x1b[33m100 in is not 90 out + 9 rejected\x1b[0m"), "{text:?}");
    }
}
