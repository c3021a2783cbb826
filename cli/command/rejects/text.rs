//! The summary for people: the number, then codes, nodes and examples, last how to run them again.

use super::summary::{Code, Damaged, Summary};
use crate::progress::Terminal;
use crate::progress::human::{count, grouped, percent};
use crate::progress::line::{Line, Tone};

pub(super) fn text(summary: &Summary, terminal: &Terminal) -> String {
    let mut page = Page { lines: Vec::new(), terminal };
    page.headline(summary);
    let codes = summary.codes();
    let columns = codes.iter().map(|(code, rejects)| {
        // A node is named further to the right.
        let nodes = rejects.nodes();
        let longest = nodes.iter().map(|(node, _)| named(node).chars().count() + 2).max();
        code.chars().count().max(longest.unwrap_or_default())
    });
    let columns = columns.max().unwrap_or_default();
    for (code, rejects) in &codes {
        page.code(summary, code, rejects, columns);
    }
    page.damaged(summary);
    page.next(summary);
    page.lines.iter().map(|line| line.painted(terminal.colour) + "\n").collect()
}

struct Page<'a> {
    lines: Vec<Line>,
    terminal: &'a Terminal,
}

impl Page<'_> {
    fn headline(&mut self, summary: &Summary) {
        let files = match &summary.files[..] {
            [file] => file.clone(),
            files => count(files.len() as u64, "file"),
        };
        let so_far = if summary.is_unfinished { " so far" } else { "" };
        let text = match summary.total {
            0 if summary.n_damaged == 0 => format!("no rejects{so_far} in {files}"),
            total => format!("{}{so_far} in {files}", count(total, "reject")),
        };
        self.push(Tone::Strong, &text);
    }

    fn code(&mut self, summary: &Summary, code: &str, rejects: &Code, columns: usize) {
        let code = if code.is_empty() { "(no code)" } else { code };
        let shown =
            format!("  {code:columns$}  {:>9}  {:>5}", grouped(rejects.rows), percent(summary.share(rejects.rows)));
        self.push(Tone::Strong, &shown);
        let nodes = rejects.nodes();
        for (node, of_node) in &nodes {
            let name = named(node);
            let share = percent(summary.share(of_node.rows));
            let columns = columns - 2;
            self.push(Tone::Plain, &format!("    {name:columns$}  {:>9}  {share:>5}", grouped(of_node.rows)));
            for example in &of_node.examples {
                // Most messages name the file themselves.
                let uri =
                    if example.message.contains(&example.uri) { String::new() } else { format!("{}: ", example.uri) };
                self.push(Tone::Faint, &format!("      {uri}{}", example.message));
                let line = self.lines.pop().unwrap_or_default();
                self.lines.push(line.fitted(self.terminal.width(), self.terminal.charset));
            }
        }
    }

    fn damaged(&mut self, summary: &Summary) {
        if summary.n_damaged == 0 {
            return;
        }
        self.push(Tone::Alert, &format!("  {} no reject", are(summary.n_damaged, "line")));
        for Damaged { file, line, what } in &summary.damaged {
            self.push(Tone::Plain, &format!("    {file}, line {}: {what}", grouped(*line)));
        }
        let n_more = summary.n_damaged - summary.damaged.len() as u64;
        if n_more > 0 {
            self.push(Tone::Plain, &format!("    and {} more", grouped(n_more)));
        }
    }

    fn next(&mut self, summary: &Summary) {
        let Some(again) = summary.again() else {
            if summary.total > 0 && summary.is_unfinished {
                self.push(Tone::Plain, "when the run is done, `source.rejects` runs these rows again");
            } else if summary.total > 0 {
                let text = "to run them again: `again: {kind: source.rejects, with: {path: FILE}}`";
                self.push(Tone::Plain, text);
            }
            return;
        };
        let text = "to run them again, put this in the place of the source, in a pipeline file with another `name` beside \
                    the first one:";
        self.push(Tone::Plain, text);
        self.push(Tone::Strong, &format!("  {again}"));
    }

    fn push(&mut self, tone: Tone, text: &str) {
        let mut line = Line::default();
        line.push(tone, text, self.terminal.charset);
        self.lines.push(line);
    }
}

fn named(node: &str) -> String {
    if node.is_empty() { "(no node)".to_owned() } else { format!("in {node}") }
}

fn are(n: u64, noun: &str) -> String {
    format!("{} {}", count(n, noun), if n == 1 { "is" } else { "are" })
}
