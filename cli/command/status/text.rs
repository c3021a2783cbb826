//! How runs stand, as people read it: a line with the answer, then what belongs to it, last what can be done.

use std::time::Duration;

use engine::graph::render::plain::width;
use engine::journal::Moment;

use super::shards::Shards;
use super::standing::{Output, Process, Standing, State};
use crate::progress::human::{bytes, count, duration, grouped, percent, rate, whole_duration};
use crate::progress::line::{Line, Tone};
use crate::progress::{Charset, Cursor, Snapshot, Terminal, overview};

/// Runs of more shards have lines only for those that are not done.
const MANY: u32 = 20;
/// A run that has committed nothing for so long is worth a look.
const QUIET: Duration = Duration::from_secs(30);

pub(super) fn text(standings: &[Standing], now: Moment, terminal: &Terminal) -> String {
    let blocks = standings.iter().map(|standing| {
        let page = Page { lines: Vec::new(), now, terminal };
        let lines = match &standing.shards {
            Some(shards) => page.of_shards(standing, shards),
            None => page.of_run(standing),
        };
        lines.iter().map(|line| line.painted(terminal.colour) + "\n").collect::<String>()
    });
    blocks.collect::<Vec<_>>().join("\n")
}

struct Page<'a> {
    lines: Vec<Line>,
    now: Moment,
    terminal: &'a Terminal,
}

impl Page<'_> {
    fn of_run(mut self, standing: &Standing) -> Vec<Line> {
        self.headline(standing);
        let columns = columns(&standing.outputs);
        if standing.state.is_alive()
            && let Some(process) = &standing.process
        {
            let mut text = self.process(process);
            if standing.resumed > 0 {
                text.push_str(&format!(", resumed at {}", count(standing.resumed, "row")));
            }
            self.say("process", columns, Tone::Plain, &text);
        }
        if standing.state == State::Failed
            && let Some(message) = &standing.message
        {
            self.say("fault", columns, Tone::Alert, message);
        }
        self.figures(standing, columns);
        if standing.n_torn > 0 {
            let torn = format!("its last line is torn ({}) and will be left out", bytes(standing.n_torn));
            self.say("journal", columns, Tone::Plain, &torn);
        }
        self.outlook(standing, columns);
        self.lines
    }

    fn of_shards(mut self, standing: &Standing, shards: &Shards) -> Vec<Line> {
        let states = shards.states.iter().rev().map(|(state, n)| format!("{} {}", grouped(*n), words(*state)));
        let states = states.collect::<Vec<_>>().join(", ");
        let mut line = self.named(&standing.name);
        line.push_own(tone(standing.state), format!("{}: {states}", count(u64::from(shards.of), "shard")));
        self.lines.push(line);
        let columns = columns(&standing.outputs);
        let mut together = rows(standing);
        if let Some(pace) = standing.pace {
            together.push_str(&format!("   {}", rate(pace)));
        }
        if let Some(left) = standing.left {
            together.push_str(&format!("   ETA {}", whole_duration(left)));
        }
        self.say("together", columns, Tone::Plain, &together);
        self.figures(standing, columns);
        self.table(shards);
        let missing = shards.missing();
        if !missing.is_empty() {
            self.say("never", columns, Tone::Plain, &format!("started: {}", missing.join(", ")));
        }
        if !standing.state.is_alive() {
            let next = match standing.state {
                State::Done => "`flowgpu merge` joins their outputs",
                _ => "each goes on where it was, by its own command again; those that are done do nothing",
            };
            self.say("next", columns, Tone::Plain, next);
        }
        self.lines
    }

    /// The answer: what it does, how far it is.
    fn headline(&mut self, standing: &Standing) {
        if standing.state == State::Running && !standing.is_sealed {
            let since = standing.process.as_ref().and_then(|process| process.since);
            let snapshot = Snapshot {
                name: standing.name.clone(),
                elapsed: since.map(|since| self.now.since(since)).unwrap_or_default(),
                total: standing.total,
                done: standing.rows,
                rejects: standing.rejects.total,
                ..Snapshot::default()
            };
            let pace = standing.pace.unwrap_or(0.0);
            self.lines.push(match self.terminal.cursor {
                Cursor::Moves => overview::with_bar(&snapshot, pace, self.terminal),
                Cursor::Stays => overview::plain(&snapshot, pace, self.terminal),
            });
            return;
        }
        let so_far = rows(standing);
        let text = match standing.state {
            State::NeverStarted => format!("never started: nothing is noted in `{}`", standing.folder.display()),
            State::Starting if standing.rows > 0 => format!("starting at {so_far}"),
            State::Starting => "starting".to_owned(),
            State::Running => format!("all {} are done, and outputs get their names", count(standing.rows, "row")),
            State::Interrupted => format!("interrupted at {so_far}{}", self.ago(standing.ended)),
            State::Failed => format!("failed at {so_far}{}", self.ago(standing.ended)),
            State::Killed => self.killed(standing, &so_far),
            State::Done => {
                let limited = if standing.limited { "done up to its limit" } else { "done" };
                let rejects = match standing.rejects.total {
                    0 => String::new(),
                    n => format!(", {}", count(n, "reject")),
                };
                let at = standing.ended.map(|at| format!(", {}", day_and_minute(at))).unwrap_or_default();
                let ago = standing.ended.map(|at| format!(" ({} ago)", age(self.now.since(at)))).unwrap_or_default();
                format!("{limited}, {}{rejects}{at}{ago}", count(standing.rows, "row"))
            }
            State::Unreadable => {
                format!("cannot be told: {}", standing.message.as_deref().unwrap_or("its journal cannot be read"))
            }
        };
        let mut line = self.named(&standing.name);
        line.push(tone(standing.state), &text, self.terminal.charset);
        self.lines.push(line);
    }

    fn killed(&self, standing: &Standing, so_far: &str) -> String {
        let process = standing.process.as_ref();
        let pid = process.and_then(|process| process.pid).map_or("its process".to_owned(), |pid| format!("pid {pid}"));
        let commit = standing.committed.map(|at| format!(", last commit {} ago", age(self.now.since(at))));
        let commit = commit.unwrap_or_default();
        match process.and_then(|process| process.host.as_deref().filter(|_| process.is_elsewhere)) {
            // Not every file system shows the locks of other machines.
            Some(host) => format!("not at work here, at {so_far}: nothing is seen of {pid} on {host}{commit}"),
            None => format!("killed at {so_far}: nothing is left of {pid}{commit}"),
        }
    }

    /// What came of it so far.
    fn figures(&mut self, standing: &Standing, columns: usize) {
        if standing.rejects.total > 0 {
            let mut codes: Vec<_> = standing.rejects.by_code.iter().collect();
            codes.sort_by_key(|(code, rows)| (std::cmp::Reverse(**rows), code.as_str()));
            let codes = codes.iter().map(|(code, rows)| format!("{} {code}", grouped(**rows))).collect::<Vec<_>>();
            let mut text = codes.join(", ");
            if let Some(path) = &standing.rejects.path {
                let arrow = if self.terminal.charset == Charset::Unicode { "→" } else { "->" };
                text.push_str(&format!(" {arrow} {path}"));
            }
            self.say("rejects", columns, Tone::Plain, &text);
        }
        for output in &standing.outputs {
            let path = output.path.as_ref().map(|path| format!("{path}  ")).unwrap_or_default();
            let text = format!("{path}{}  {}", count(output.rows, "row"), bytes(output.bytes));
            self.say(&output.node, columns, Tone::Plain, &text);
        }
    }

    /// What comes next.
    fn outlook(&mut self, standing: &Standing, columns: usize) {
        let next = match standing.state {
            State::NeverStarted | State::Starting => return,
            State::Running => {
                let Some(at) = standing.committed else { return };
                let age = self.now.since(at);
                let tone = if age > QUIET { Tone::Alert } else { Tone::Plain };
                let text = format!("{}, committed {} ago", count(standing.rows, "row"), self::age(age));
                return self.say("safe", columns, tone, &text);
            }
            State::Done => {
                let limit = if standing.limited { "; with a larger limit it goes on" } else { "" };
                let code = standing.code.unwrap_or_default();
                format!("the same command does nothing, and exits with {code} again{limit}; `--fresh` begins anew")
            }
            State::Unreadable => match &standing.help {
                Some(help) => help.clone(),
                None => return,
            },
            _ if standing.is_sealed => "the same command gives the outputs their names".to_owned(),
            _ if standing.rows == 0 => "the same command begins again".to_owned(),
            _ => format!("the same command goes on from row {}", grouped(standing.rows)),
        };
        self.say("next", columns, Tone::Plain, &next);
    }

    /// A line for each shard, or for those that need one.
    fn table(&mut self, shards: &Shards) {
        let is_long = shards.of > MANY;
        let shown: Vec<_> = shards.runs.iter().filter(|run| !is_long || run.state != State::Done).collect();
        let cells: Vec<[String; 6]> = shown.iter().map(|run| self.cells(run)).collect();
        let widest = |at: usize| cells.iter().map(|cells| width(&cells[at])).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(widest);
        for (cells, run) in cells.iter().zip(&shown) {
            let mut line = Line::default();
            line.push_own(Tone::Plain, format!("  {:>1$}  ", cells[0], widths[0]));
            line.push_own(tone(run.state), format!("{:<1$}", cells[1], widths[1]));
            for at in 2..5 {
                if widths[at] > 0 {
                    line.push_own(Tone::Plain, format!("  {:>1$}", cells[at], widths[at]));
                }
            }
            line.push(Tone::Plain, &format!("  {}", cells[5]), self.terminal.charset);
            self.lines.push(line.fitted(self.terminal.width(), self.terminal.charset));
        }
    }

    /// Number, state, rows, pace, time left, and what else there is to say.
    fn cells(&self, run: &Standing) -> [String; 6] {
        let more = match run.state {
            State::Running | State::Starting => run.process.as_ref().map(|process| self.process(process)),
            State::Failed | State::Unreadable => run.message.clone(),
            State::Interrupted | State::Killed => run.committed.map(|at| format!("{} ago", age(self.now.since(at)))),
            State::Done => run.ended.map(|at| format!("{} ago", age(self.now.since(at)))),
            State::NeverStarted => None,
        };
        [
            run.shard.map(|shard| shard.index.to_string()).unwrap_or_default(),
            words(run.state).to_owned(),
            rows(run),
            run.pace.map(rate).unwrap_or_default(),
            run.left.map(|left| format!("ETA {}", whole_duration(left))).unwrap_or_default(),
            more.unwrap_or_default(),
        ]
    }

    fn process(&self, process: &Process) -> String {
        let mut text = match (process.pid, &process.note) {
            (None, Some(note)) => note.clone(),
            (None, None) => "a process of another machine".to_owned(),
            (Some(pid), _) => format!("pid {pid}"),
        };
        if let Some(host) = &process.host {
            text.push_str(&format!(" on {host}"));
        }
        if let Some(since) = process.since {
            let age = age(self.now.since(since));
            text.push_str(&format!(" since {} ({age})", day_and_minute(since)));
        }
        text
    }

    fn ago(&self, at: Option<Moment>) -> String {
        at.map(|at| format!(", {} ago", age(self.now.since(at)))).unwrap_or_default()
    }

    fn named(&self, name: &str) -> Line {
        let mut line = Line::default();
        line.push(Tone::Strong, name, self.terminal.charset);
        line.push_own(Tone::Plain, ": ");
        line
    }

    fn say(&mut self, word: &str, columns: usize, tone: Tone, text: &str) {
        let charset = self.terminal.charset;
        let mut line = Line::default();
        line.push_own(Tone::Plain, "  ");
        line.push_padded(Tone::Faint, word, columns, charset);
        line.push_own(Tone::Plain, "  ");
        line.push(tone, text, charset);
        self.lines.push(line);
    }
}

/// Columns of the words before the lines.
fn columns(outputs: &[Output]) -> usize {
    outputs.iter().map(|output| width(&output.node)).max().unwrap_or(0).max("together".len())
}

/// `641,204 of 1,000,000 rows (64 %)`.
fn rows(standing: &Standing) -> String {
    match standing.total {
        Some(0) => "0 of 0 rows".to_owned(),
        Some(total) => {
            let share = percent(standing.rows as f64 / total as f64);
            format!("{} of {} ({share})", grouped(standing.rows), count(total, "row"))
        }
        None => count(standing.rows, "row"),
    }
}

fn words(state: State) -> &'static str {
    match state {
        State::NeverStarted => "never started",
        state => state.word(),
    }
}

fn tone(state: State) -> Tone {
    match state {
        State::Done => Tone::Good,
        State::Interrupted | State::Failed | State::Killed | State::Unreadable => Tone::Alert,
        State::NeverStarted | State::Starting | State::Running => Tone::Plain,
    }
}

/// How long ago: in parts of a second only where it is short.
fn age(time: Duration) -> String {
    if time < Duration::from_secs(10) { duration(time) } else { whole_duration(time) }
}

/// `2026-12-01 03:12 UTC`.
fn day_and_minute(at: Moment) -> String {
    let text = at.to_string();
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    format!("{day} {} UTC", time.get(..5).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use super::super::shards::tests::shards;
    use super::super::standing::tests::{at, done, failed, held, interrupted, running, standing};
    use super::*;
    use crate::progress::terminal::Size;
    use crate::progress::{Colour, Terminal};

    fn check(standing: Standing, expected: &[&str]) {
        let shown = text(&[standing], at(100), &Terminal::PIPE);
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_run_alive_shows_how_far_it_is_and_who_it_is() {
        check(
            standing(&running(), held(4121)),
            &[
                "classify: 415,600 / 1,000,000  42 %     400/s   ETA 24 m 21 s   rejects 415",
                "  process   pid 4121 on node7 since 2026-12-01 03:00 UTC (50 s), resumed at 395,000 rows",
                "  rejects   415 truncated",
                "  out       415,185 rows  41.5 MB",
                "  safe      415,600 rows, committed 1.00 s ago",
            ],
        );
    }

    #[test]
    fn a_run_that_ended_early_says_how_and_from_where_it_goes_on() {
        let figures = ["  rejects   415 truncated", "  out       415,185 rows  41.5 MB"];
        let next = "  next      the same command goes on from row 415,600";
        let so_far = "415,600 of 1,000,000 rows (42 %)";
        let line = format!("classify: interrupted at {so_far}, 1.00 s ago");
        check(standing(&interrupted(), None), &[&line, figures[0], figures[1], next]);
        let line = format!("classify: failed at {so_far}, 1.00 s ago");
        let fault = "  fault     `out`: cannot write `o`: no space left on the device";
        check(standing(&failed(), None), &[&line, fault, figures[0], figures[1], next]);
        let line = format!("classify: killed at {so_far}: nothing is left of pid 4121, last commit 1.00 s ago");
        check(standing(&running(), None), &[&line, figures[0], figures[1], next]);
    }

    #[test]
    fn a_finished_run_says_what_the_command_would_do() {
        check(
            standing(&done(), None),
            &[
                "classify: done, 1,000,000 rows, 1,000 rejects, 2026-12-01 03:01 UTC (0.00 s ago)",
                "  rejects   1,000 truncated → out/classify.rejects.jsonl",
                "  out       out/labels.jsonl  999,000 rows  99.9 MB",
                "  next      the same command does nothing, and exits with 3 again; `--fresh` begins anew",
            ],
        );
    }

    #[test]
    fn what_has_not_begun_has_no_figures() {
        let folder = ".flowgpu/classify".into();
        check(
            Standing { folder, ..standing(&[], None) },
            &["classify: never started: nothing is noted in `.flowgpu/classify`"],
        );
        check(standing(&[], held(7)), &["classify: starting", "  process   pid 7"]);
    }

    #[test]
    fn shards_have_a_line_each_below_their_sum() {
        let runs =
            [(0, standing(&done(), None)), (1, standing(&running(), held(4121))), (3, standing(&failed(), None))];
        check(
            shards(5, &runs),
            &[
                "classify: 5 shards: 1 done, 1 failed, 1 running, 2 never started",
                "  together  1,831,200 rows   400/s",
                "  rejects   1,830 truncated",
                "  out       1,829,370 rows  183 MB",
                "  0  done     1,000,000 of 1,000,000 rows (100 %)                        0.00 s ago",
                "  1  running     415,600 of 1,000,000 rows (42 %)  400/s  ETA 24 m 21 s  pid 4121 on node7 since 2026-12-01 03:00 UTC (50 s)",
                "  3  failed      415,600 of 1,000,000 rows (42 %)                        `out`: cannot write `o`: no space left on the device",
                "  never     started: 2, 4",
            ],
        );
    }

    #[test]
    fn many_shards_have_lines_only_where_something_is_left_to_do() {
        let mut runs: Vec<_> = (0..40).map(|index| (index, standing(&done(), None))).collect();
        runs[33].1 = standing(&interrupted(), None);
        check(
            shards(40, &runs),
            &[
                "classify: 40 shards: 39 done, 1 interrupted",
                "  together  39,415,600 of 40,000,000 rows (99 %)",
                "  rejects   39,415 truncated",
                "  out       39,376,185 rows  3.94 GB",
                "  33  interrupted  415,600 of 1,000,000 rows (42 %)  1.00 s ago",
                "  next      each goes on where it was, by its own command again; those that are done do nothing",
            ],
        );
    }

    #[test]
    fn a_narrow_terminal_gets_no_line_of_the_table_that_is_wider() {
        let size = Some(Size { width: 40, height: 24 });
        let terminal = Terminal { size, colour: Colour::Off, charset: Charset::Unicode, cursor: Cursor::Moves };
        let shown = text(
            &[shards(2, &[(0, standing(&running(), held(1))), (1, standing(&failed(), None))])],
            at(100),
            &terminal,
        );
        let rows: Vec<_> = shown.lines().filter(|line| line.starts_with("  0") || line.starts_with("  1")).collect();
        assert!(rows.len() == 2 && rows.iter().all(|row| width(row) <= 40 && row.ends_with('…')), "{shown}");
        let alive = text(&[standing(&running(), held(1))], at(100), &terminal);
        assert!(width(alive.lines().next().unwrap()) <= 40, "{alive}");
    }
}
