//! The nodes of a run, a line each, in aligned columns; where a node has several workers, a line for each of them below.
//!
//! Where they do not fit, whole columns go, the least telling first, and on a low terminal the idlest nodes: so the
//! node that limits the run and the word that says so stay as long as anything does.

use super::human::{count, grouped, percent, rate};
use super::line::{Line, Tone};
use super::snapshot::{NodeLine, Subject};
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
    Restarts,
    Starved,
    Rows,
    Kind,
}

/// A column's texts, one for each line.
struct Cells {
    column: Option<Column>,
    /// Whether lines of workers have it: what they have beyond these comes at once, without columns.
    subjects: Subjects,
    texts: Vec<(Tone, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subjects {
    All,
    Nodes,
}

/// The lines of all nodes.
#[must_use]
pub fn all(nodes: &[NodeLine], moment: Moment, terminal: &Terminal) -> Vec<Line> {
    let cells = cells(nodes, moment, terminal.charset);
    let mut given_up = None;
    loop {
        let kept: Vec<&Cells> =
            cells.iter().filter(|cell| cell.column.is_none_or(|column| Some(column) > given_up)).collect();
        let lines = assemble(nodes, &kept, terminal);
        let fit = terminal.width().is_none_or(|columns| lines.iter().all(|line| line.width() <= columns));
        if fit || given_up == Some(Column::Kind) {
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

/// At most `most` lines: the idlest nodes and workers that do what they should are left out, and a last line says how
/// many.
#[must_use]
pub fn at_most(most: usize, nodes: &[NodeLine], terminal: &Terminal) -> Vec<Line> {
    if nodes.len() <= most {
        return all(nodes, Moment::Running, terminal);
    }
    let weight = |node: &NodeLine| (node.limits, node.state.is_some(), node.subject == Subject::Node);
    let mut by_weight: Vec<usize> = (0..nodes.len()).collect();
    by_weight.sort_by(|&a, &b| {
        let (a, b) = (&nodes[a], &nodes[b]);
        weight(b).cmp(&weight(a)).then(b.busy.total_cmp(&a.busy))
    });
    let left_out = by_weight.split_off(most.saturating_sub(1));
    by_weight.sort_unstable();
    let kept: Vec<NodeLine> = by_weight.iter().map(|&idx| nodes[idx].clone()).collect();
    let mut lines = all(&kept, Moment::Running, terminal);
    if most > 0 {
        let mut rest = Line::default();
        let mark = if terminal.charset == Charset::Unicode { "…" } else { "..." };
        let n_of = |subject| left_out.iter().filter(|&&idx| nodes[idx].subject == subject).count() as u64;
        let more = [(n_of(Subject::Node), "more node"), (n_of(Subject::Worker), "more worker")];
        let more: Vec<_> = more.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun)).collect();
        rest.push_own(Tone::Faint, format!("  {mark} {}", more.join(", ")));
        lines.push(rest.fitted(terminal.width(), terminal.charset));
    }
    lines
}

fn cells(nodes: &[NodeLine], moment: Moment, charset: Charset) -> Vec<Cells> {
    use Subjects::{All, Nodes};
    let of = |column: Option<Column>, subjects: Subjects, tone: Tone, text: &dyn Fn(&NodeLine) -> String| Cells {
        column,
        subjects,
        texts: nodes.iter().map(|node| (tone, text(node))).collect(),
    };
    let names = nodes.iter().map(|node| name(node, charset));
    let mut cells = vec![Cells { column: None, subjects: All, texts: names.collect() }];
    cells.push(of(Some(Column::Kind), All, Tone::Faint, &|node| kind(node, charset)));
    if moment == Moment::Over {
        cells.push(right(of(Some(Column::Rows), All, Tone::Plain, &|node| {
            format!("{} {}", grouped(node.rows), if node.rows == 1 { "row " } else { "rows" })
        })));
    }
    cells.push(right(of(None, All, Tone::Plain, &|node| rate(node.rate))));
    if moment == Moment::Running {
        cells.push(of(Some(Column::Queue), Nodes, Tone::Plain, &queue));
    }
    cells.push(Cells { column: None, subjects: Nodes, texts: nodes.iter().map(busy).collect() });
    cells.push(of(Some(Column::Meter), Nodes, Tone::Good, &|node| meter(node.busy, charset)));
    cells.push(of(Some(Column::Starved), Nodes, Tone::Plain, &|node| wait("starved", node.starved)));
    cells.push(of(Some(Column::Blocked), Nodes, Tone::Plain, &|node| wait("blocked", node.blocked)));
    cells.push(of(Some(Column::Restarts), Nodes, Tone::Alert, &restarts));
    cells.push(of(Some(Column::Note), Nodes, Tone::Faint, &|node| note(node, charset)));
    cells.retain(|cell| {
        let shown = |(node, (_, text)): (&NodeLine, &(Tone, String))| {
            !text.is_empty() && (cell.subjects == All || node.subject == Subject::Node)
        };
        nodes.iter().zip(&cell.texts).any(shown)
    });
    cells
}

fn assemble(nodes: &[NodeLine], cells: &[&Cells], terminal: &Terminal) -> Vec<Line> {
    let charset = terminal.charset;
    let has = |node: &NodeLine, cell: &Cells| node.subject == Subject::Node || cell.subjects == Subjects::All;
    let columns = |cell: &&Cells| {
        let shown = nodes.iter().zip(&cell.texts).filter(|(node, _)| has(node, cell));
        shown.map(|(_, (_, text))| width(text)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = cells.iter().map(columns).collect();
    let mut lines = Vec::with_capacity(nodes.len());
    for (idx, node) in nodes.iter().enumerate() {
        let mut line = Line::default();
        for (cell, &columns) in cells.iter().zip(&widths).filter(|(cell, _)| has(node, cell)) {
            let (tone, text) = &cell.texts[idx];
            line.push_own(Tone::Plain, "  ");
            line.push_padded(*tone, text, columns, charset);
        }
        if node.subject == Subject::Worker {
            push_tail(&mut line, node, terminal);
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

/// What a worker has to say behind its columns, as much of it as there is room for; that it does not compute in any case.
fn push_tail(line: &mut Line, worker: &NodeLine, terminal: &Terminal) {
    let state = (Tone::Alert, worker.state.unwrap_or_default().to_owned());
    let restarts = (Tone::Alert, restarts(worker));
    let note = (Tone::Faint, note(worker, terminal.charset));
    let with = |pieces: &[&(Tone, String)]| {
        let mut longer = line.clone();
        for (tone, text) in pieces.iter().filter(|(_, text)| !text.is_empty()) {
            longer.push_own(Tone::Plain, "  ");
            longer.push_own(*tone, text);
        }
        longer
    };
    let tails = [with(&[&state, &restarts, &note]), with(&[&state, &restarts])];
    let fitting = tails.into_iter().find(|longer| terminal.width().is_none_or(|columns| longer.width() <= columns));
    *line = fitting.unwrap_or_else(|| with(&[&state]));
}

fn name(node: &NodeLine, charset: Charset) -> (Tone, String) {
    let name = for_terminal(&node.name, charset);
    match node.subject {
        Subject::Node => (Tone::Strong, name),
        Subject::Worker => (Tone::Plain, format!("  {name}")),
    }
}

fn kind(node: &NodeLine, charset: Charset) -> String {
    let kind = for_terminal(&node.kind, charset);
    match &node.device {
        Some(device) => format!("{kind} {}", for_terminal(device, charset)),
        None => kind,
    }
}

/// Who does not compute is not busy.
fn busy(node: &NodeLine) -> (Tone, String) {
    match node.state {
        Some(state) => (Tone::Alert, state.to_owned()),
        None => (Tone::Plain, format!("busy {:>5}", percent(node.busy))),
    }
}

fn restarts(node: &NodeLine) -> String {
    if node.restarts == 0 { String::new() } else { count(node.restarts, "restart") }
}

fn note(node: &NodeLine, charset: Charset) -> String {
    for_terminal(node.note.as_deref().unwrap_or_default(), charset)
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
    let columns = cells.texts.iter().map(|(_, text)| width(text)).max().unwrap_or(0);
    for (_, text) in &mut cells.texts {
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

    fn worker(number: usize, device: &str, rate: f64) -> NodeLine {
        NodeLine {
            subject: Subject::Worker,
            note: Some("GPU 61 %  3.1 / 24 GiB".to_owned()),
            ..node(&format!("worker {number}"), device, rate, 0.0, 0.0, 0.0)
        }
    }

    fn nodes() -> Vec<NodeLine> {
        vec![
            NodeLine { queue_cap: 0, ..node("photos", "source.files", 2_412.0, 0.09, 0.0, 0.88) },
            NodeLine { queue_len: 8, limits: true, ..node("pixels", "decode.image", 2_310.0, 0.97, 0.02, 0.001) },
            NodeLine { queue_len: 1, ..node("scores", "infer", 2_310.0, 0.52, 0.46, 0.02) },
            NodeLine { restarts: 2, ..worker(0, "cuda:0", 1_160.0) },
            NodeLine { state: Some("restarting"), restarts: 1, ..worker(1, "cuda:1", 1_150.0) },
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
                "  photos      source.files  2,412/s             busy   9 %  ▊                       blocked 88 %",
                "  pixels      decode.image  2,310/s  queue 8/8  busy  97 %  ███████▊  starved  2 %  ← limits the run",
                "  scores      infer         2,310/s  queue 1/8  busy  52 %  ████▏     starved 46 %  blocked  2 %",
                "    worker 0  cuda:0        1,160/s  2 restarts  GPU 61 %  3.1 / 24 GiB",
                "    worker 1  cuda:1        1,150/s  restarting  1 restart  GPU 61 %  3.1 / 24 GiB",
                "  out         sink.jsonl    2,310/s  queue 0/8  busy   2 %  ▏         starved 98 %",
            ],
        );
    }

    #[test]
    fn a_node_with_one_worker_is_one_line() {
        let alone = NodeLine {
            device: Some("cuda:0".to_owned()),
            note: Some("GPU 61 %  3.1 / 24 GiB".to_owned()),
            restarts: 1,
            ..node("scores", "infer", 2_310.0, 0.52, 0.46, 0.02)
        };
        let starting = NodeLine { state: Some("starting"), restarts: 0, starved: 0.0, blocked: 0.0, ..alone.clone() };
        let lines =
            |node: &NodeLine| all(std::slice::from_ref(node), Moment::Running, &terminal(140, Charset::Unicode));
        check(
            lines(&alone),
            &[
                "  scores  infer cuda:0  2,310/s  queue 0/8  busy  52 %  ████▏  starved 46 %  blocked  2 %  1 restart  GPU 61 %  3.1 / 24 GiB",
            ],
        );
        check(
            lines(&NodeLine { busy: 0.0, ..starting }),
            &["  scores  infer cuda:0  2,310/s  queue 0/8  starting  GPU 61 %  3.1 / 24 GiB"],
        );
    }

    #[test]
    fn columns_go_before_the_verdict_does_and_before_what_workers_say() {
        check(
            all(&nodes(), Moment::Running, &terminal(84, Charset::Ascii)),
            &[
                "  photos      source.files  2,412/s  busy   9 %                blocked 88 %",
                "  pixels      decode.image  2,310/s  busy  97 %  starved  2 %  <- limits the run",
                "  scores      infer         2,310/s  busy  52 %  starved 46 %  blocked  2 %",
                "    worker 0  cuda:0        1,160/s  2 restarts  GPU 61 %  3.1 / 24 GiB",
                "    worker 1  cuda:1        1,150/s  restarting  1 restart  GPU 61 %  3.1 / 24 GiB",
                "  out         sink.jsonl    2,310/s  busy   2 %  starved 98 %",
            ],
        );
        let lines = all(&nodes(), Moment::Running, &terminal(74, Charset::Unicode));
        check(
            lines[3..5].to_vec(),
            &[
                "    worker 0  cuda:0        1,160/s  2 restarts  GPU 61 %  3.1 / 24 GiB",
                "    worker 1  cuda:1        1,150/s  restarting  1 restart",
            ],
        );
        check(
            all(&nodes(), Moment::Running, &terminal(54, Charset::Unicode)),
            &[
                "  photos      2,412/s  busy   9 %",
                "  pixels      2,310/s  busy  97 %  ← limits the run",
                "  scores      2,310/s  busy  52 %",
                "    worker 0  1,160/s  2 restarts",
                "    worker 1  1,150/s  restarting  1 restart",
                "  out         2,310/s  busy   2 %",
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
                    assert_eq!(lines.len(), 6);
                }
            }
        }
    }

    #[test]
    fn a_low_terminal_keeps_the_node_that_limits_the_run_and_the_worker_that_does_not_run() {
        check(
            at_most(4, &nodes(), &terminal(70, Charset::Unicode)),
            &[
                "  pixels      decode.image  2,310/s  busy  97 %  ← limits the run",
                "  scores      infer         2,310/s  busy  52 %",
                "    worker 1  cuda:1        1,150/s  restarting  1 restart",
                "  … 2 more nodes, 1 more worker",
            ],
        );
        assert_eq!(at_most(0, &nodes(), &terminal(60, Charset::Unicode)).len(), 0);
        assert_eq!(at_most(6, &nodes(), &terminal(60, Charset::Unicode)).len(), 6);
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
    fn names_are_made_harmless() {
        let mut hostile = nodes();
        hostile[2].name = "sc\x1b[2Jres\n".to_owned();
        hostile[3].note = Some("GPU\r".to_owned());
        let lines = all(&hostile, Moment::Running, &terminal(140, Charset::Unicode));
        let shown: Vec<String> = lines.iter().map(|line| line.painted(Colour::Off)).collect();
        assert!(shown.iter().all(|line| !line.contains(char::is_control)), "{shown:?}");
        assert!(shown[2].contains("res"), "{shown:?}");
    }
}
