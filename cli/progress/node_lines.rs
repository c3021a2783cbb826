//! The nodes of a run, a line each, in aligned columns.
//!
//! Where they do not fit, whole columns go, the least telling first, and on a low terminal the idlest nodes: so the
//! node that limits the run and the word that says so stay as long as anything does.

use super::human::{grouped, percent, rate};
use super::line::{Line, Tone};
use super::snapshot::NodeLine;
use super::terminal::{Charset, Terminal};
use engine::graph::render::plain::{for_terminal, width};

const METER: usize = 8;

/// What the lines are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The run goes on: queues are shown.
    Running,
    /// It is over: rows are shown.
    Over,
}

/// The columns, in the order in which they are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Meter,
    Note,
    Queue,
    Blocked,
    Starved,
    Rows,
    Kind,
}

/// A column's texts, one for each node.
struct Cells {
    column: Option<Column>,
    tone: Tone,
    texts: Vec<String>,
}

/// The lines of all nodes.
#[must_use]
pub fn all(nodes: &[NodeLine], moment: Moment, terminal: &Terminal) -> Vec<Line> {
    let cells = cells(nodes, moment, terminal.charset);
    let mut given_up = None;
    loop {
        let kept: Vec<&Cells> =
            cells.iter().filter(|cell| cell.column.is_none_or(|column| Some(column) > given_up)).collect();
        let lines = assemble(nodes, &kept, terminal.charset);
        let fits = terminal.width().is_none_or(|columns| lines.iter().all(|line| line.width() <= columns));
        if fits || given_up == Some(Column::Kind) {
            return lines.into_iter().map(|line| line.fitted(terminal.width(), terminal.charset)).collect();
        }
        given_up = cells
            .iter()
            .filter_map(|cell| cell.column)
            .filter(|&column| Some(column) > given_up)
            .min()
            .or(Some(Column::Kind));
    }
}

/// At most `most` lines: the idlest nodes are left out, and a last line says how many.
#[must_use]
pub fn at_most(most: usize, nodes: &[NodeLine], terminal: &Terminal) -> Vec<Line> {
    if nodes.len() <= most {
        return all(nodes, Moment::Running, terminal);
    }
    let mut by_weight: Vec<usize> = (0..nodes.len()).collect();
    by_weight.sort_by(|&a, &b| nodes[b].limits.cmp(&nodes[a].limits).then(nodes[b].busy.total_cmp(&nodes[a].busy)));
    by_weight.truncate(most.saturating_sub(1));
    by_weight.sort_unstable();
    let kept: Vec<NodeLine> = by_weight.iter().map(|&idx| nodes[idx].clone()).collect();
    let mut lines = all(&kept, Moment::Running, terminal);
    if most > 0 {
        let mut rest = Line::default();
        let mark = if terminal.charset == Charset::Unicode { "…" } else { "..." };
        rest.push_own(Tone::Faint, format!("  {mark} {} more nodes", grouped((nodes.len() - kept.len()) as u64)));
        lines.push(rest.fitted(terminal.width(), terminal.charset));
    }
    lines
}

fn cells(nodes: &[NodeLine], moment: Moment, charset: Charset) -> Vec<Cells> {
    let of = |column: Option<Column>, tone: Tone, text: &dyn Fn(&NodeLine) -> String| Cells {
        column,
        tone,
        texts: nodes.iter().map(text).collect(),
    };
    let mut cells = vec![Cells { column: None, tone: Tone::Strong, texts: names(nodes, charset) }];
    cells.push(of(Some(Column::Kind), Tone::Faint, &|node| kind(node, charset)));
    if moment == Moment::Over {
        cells.push(right(of(Some(Column::Rows), Tone::Plain, &|node| {
            format!("{} {}", grouped(node.rows), if node.rows == 1 { "row " } else { "rows" })
        })));
    }
    cells.push(right(of(None, Tone::Plain, &|node| rate(node.rate))));
    if moment == Moment::Running {
        cells.push(of(Some(Column::Queue), Tone::Plain, &queue));
    }
    cells.push(of(None, Tone::Plain, &|node| format!("busy {:>5}", percent(node.busy))));
    cells.push(of(Some(Column::Meter), Tone::Good, &|node| meter(node.busy, charset)));
    cells.push(of(Some(Column::Starved), Tone::Plain, &|node| wait("starved", node.starved)));
    cells.push(of(Some(Column::Blocked), Tone::Plain, &|node| wait("blocked", node.blocked)));
    cells.push(of(Some(Column::Note), Tone::Faint, &|node| {
        for_terminal(node.note.as_deref().unwrap_or_default(), charset)
    }));
    cells.retain(|cell| cell.texts.iter().any(|text| !text.is_empty()));
    cells
}

fn assemble(nodes: &[NodeLine], cells: &[&Cells], charset: Charset) -> Vec<Line> {
    let widths: Vec<usize> =
        cells.iter().map(|cell| cell.texts.iter().map(|text| width(text)).max().unwrap_or(0)).collect();
    let mut lines = Vec::with_capacity(nodes.len());
    for (idx, node) in nodes.iter().enumerate() {
        let mut line = Line::default();
        for (cell, &columns) in cells.iter().zip(&widths) {
            line.push_own(Tone::Plain, "  ");
            line.push_padded(cell.tone, &cell.texts[idx], columns, charset);
        }
        let mut line = line.fitted(None, charset);
        if node.limits {
            let arrow = if charset == Charset::Unicode { "←" } else { "<-" };
            line.push_own(Tone::Alert, format!("  {arrow} limits the run"));
        }
        lines.push(line);
    }
    lines
}

/// A node that runs on several devices is named once.
fn names(nodes: &[NodeLine], charset: Charset) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(nodes.len());
    for (idx, node) in nodes.iter().enumerate() {
        let again = node.device.is_some() && idx > 0 && nodes[idx - 1].name == node.name;
        names.push(if again { String::new() } else { for_terminal(&node.name, charset) });
    }
    names
}

fn kind(node: &NodeLine, charset: Charset) -> String {
    let kind = for_terminal(&node.kind, charset);
    match &node.device {
        Some(device) => format!("{kind} {}", for_terminal(device, charset)),
        None => kind,
    }
}

fn queue(node: &NodeLine) -> String {
    if node.queue_cap == 0 {
        String::new()
    } else {
        format!("queue {}/{}", grouped(node.queue_len), grouped(node.queue_cap))
    }
}

/// A wait too short to be seen is not shown.
fn wait(word: &str, share: f64) -> String {
    if share >= 0.005 { format!("{word} {:>4}", percent(share)) } else { String::new() }
}

fn meter(share: f64, charset: Charset) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    match charset {
        Charset::Unicode => {
            const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
            let eighths = (share * (8 * METER) as f64).round() as usize;
            format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
        }
        Charset::Ascii => "#".repeat((share * METER as f64).round() as usize),
    }
}

fn right(mut cells: Cells) -> Cells {
    let columns = cells.texts.iter().map(|text| width(text)).max().unwrap_or(0);
    for text in &mut cells.texts {
        *text = format!("{text:>columns$}");
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::super::terminal::{Colour, Cursor, Size};
    use super::*;

    fn node(name: &str, kind: &str, rate: f64, busy: f64, starved: f64, blocked: f64) -> NodeLine {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        NodeLine { name, kind, rate, busy, starved, blocked, queue_cap: 8, rows: 641_204, ..NodeLine::default() }
    }

    fn nodes() -> Vec<NodeLine> {
        let on = |device: &str, rate| NodeLine {
            device: Some(device.to_owned()),
            note: Some("GPU 61 %  3.1 / 24 GiB".to_owned()),
            queue_len: 1,
            ..node("scores", "infer", rate, 0.52, 0.46, 0.02)
        };
        vec![
            NodeLine { queue_cap: 0, ..node("photos", "source.files", 2_412.0, 0.09, 0.0, 0.88) },
            NodeLine { queue_len: 8, limits: true, ..node("pixels", "decode.image", 2_310.0, 0.97, 0.02, 0.001) },
            on("cuda:0", 1_160.0),
            on("cuda:1", 1_150.0),
            node("out", "sink.jsonl", 2_310.0, 0.02, 0.98, 0.0),
        ]
    }

    fn terminal(width: usize, charset: Charset) -> Terminal {
        Terminal { size: Some(Size { width, height: 24 }), charset, colour: Colour::Off, cursor: Cursor::Moves }
    }

    fn check(lines: Vec<Line>, expected: &[&str]) {
        let lines: Vec<String> = lines.iter().map(|line| line.painted(Colour::Off)).collect();
        assert_eq!(lines, expected, "\n{}", lines.join("\n"));
    }

    #[test]
    fn a_wide_terminal_shows_all_columns() {
        check(
            all(&nodes(), Moment::Running, &terminal(140, Charset::Unicode)),
            &[
                "  photos  source.files  2,412/s             busy   9 %  ▊                       blocked 88 %",
                "  pixels  decode.image  2,310/s  queue 8/8  busy  97 %  ███████▊  starved  2 %  ← limits the run",
                "  scores  infer cuda:0  1,160/s  queue 1/8  busy  52 %  ████▏     starved 46 %  blocked  2 %  GPU 61 %  3.1 / 24 GiB",
                "          infer cuda:1  1,150/s  queue 1/8  busy  52 %  ████▏     starved 46 %  blocked  2 %  GPU 61 %  3.1 / 24 GiB",
                "  out     sink.jsonl    2,310/s  queue 0/8  busy   2 %  ▏         starved 98 %",
            ],
        );
    }

    #[test]
    fn columns_go_before_the_verdict_does() {
        check(
            all(&nodes(), Moment::Running, &terminal(80, Charset::Ascii)),
            &[
                "  photos  source.files  2,412/s  busy   9 %                blocked 88 %",
                "  pixels  decode.image  2,310/s  busy  97 %  starved  2 %  <- limits the run",
                "  scores  infer cuda:0  1,160/s  busy  52 %  starved 46 %  blocked  2 %",
                "          infer cuda:1  1,150/s  busy  52 %  starved 46 %  blocked  2 %",
                "  out     sink.jsonl    2,310/s  busy   2 %  starved 98 %",
            ],
        );
        check(
            all(&nodes(), Moment::Running, &terminal(50, Charset::Unicode)),
            &[
                "  photos  2,412/s  busy   9 %",
                "  pixels  2,310/s  busy  97 %  ← limits the run",
                "  scores  1,160/s  busy  52 %",
                "          1,150/s  busy  52 %",
                "  out     2,310/s  busy   2 %",
            ],
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for charset in [Charset::Unicode, Charset::Ascii] {
            for columns in 1..150 {
                for moment in [Moment::Running, Moment::Over] {
                    let lines = all(&nodes(), moment, &terminal(columns, charset));
                    assert!(lines.iter().all(|line| line.width() <= columns), "{columns}");
                    assert_eq!(lines.len(), 5);
                }
            }
        }
    }

    #[test]
    fn a_low_terminal_keeps_the_node_that_limits_the_run() {
        check(
            at_most(3, &nodes(), &terminal(64, Charset::Unicode)),
            &[
                "  pixels  decode.image  2,310/s  busy  97 %  ← limits the run",
                "  scores  infer cuda:0  1,160/s  busy  52 %",
                "  … 3 more nodes",
            ],
        );
        assert_eq!(at_most(0, &nodes(), &terminal(60, Charset::Unicode)).len(), 0);
        assert_eq!(at_most(5, &nodes(), &terminal(60, Charset::Unicode)).len(), 5);
    }

    #[test]
    fn at_the_end_rows_stand_where_queues_stood() {
        check(
            all(&nodes()[..2], Moment::Over, &Terminal::PIPE),
            &[
                "  photos  source.files  641,204 rows  2,412/s  busy   9 %  ▊                       blocked 88 %",
                "  pixels  decode.image  641,204 rows  2,310/s  busy  97 %  ███████▊  starved  2 %  ← limits the run",
            ],
        );
    }

    #[test]
    fn a_node_is_named_once_for_all_its_devices_and_harmlessly() {
        let mut hostile = nodes();
        hostile[2].name = "sc\x1b[2Jres\n".to_owned();
        hostile[3].name = hostile[2].name.clone();
        let lines = all(&hostile, Moment::Running, &terminal(140, Charset::Unicode));
        let shown: Vec<String> = lines.iter().map(|line| line.painted(Colour::Off)).collect();
        assert!(shown.iter().all(|line| !line.contains(char::is_control)), "{shown:?}");
        assert_eq!(shown.iter().filter(|line| line.contains("res")).count(), 1);
    }
}
