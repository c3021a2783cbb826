//! The workers of a run, a line each, in aligned columns.

use engine::graph::render::plain::{for_terminal, pad, width};

use super::human::count;
use super::line::{Line, Tone};
use super::terminal::Charset;

/// What one worker did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerLine {
    /// Its number in the placement.
    pub number: usize,
    /// Where it computed: `cuda:0`.
    pub device: String,
    /// What that is: `NVIDIA A10`.
    pub device_name: String,
    /// Its last process; 0 if it had none.
    pub pid: u32,
    /// Rows that it computed, each model's counted.
    pub rows: u64,
    /// How many times it was replaced.
    pub restarts: u64,
    /// Whether it was given up.
    pub lost: bool,
}

/// The lines of all workers.
#[must_use]
pub fn all(workers: &[WorkerLine], charset: Charset) -> Vec<Line> {
    let of = |text: &dyn Fn(&WorkerLine) -> String| workers.iter().map(text).collect::<Vec<_>>();
    let unless = |empty: bool, text: String| if empty { String::new() } else { text };
    let cells = [
        (Tone::Plain, left(of(&|worker| format!("worker {}", worker.number)))),
        (Tone::Faint, left(of(&|worker| for_terminal(&worker.device, charset)))),
        (Tone::Faint, left(of(&|worker| for_terminal(&worker.device_name, charset)))),
        (Tone::Faint, left(of(&|worker| unless(worker.pid == 0, format!("pid {}", worker.pid))))),
        (Tone::Plain, right(of(&|worker| count(worker.rows, "row")))),
        (Tone::Alert, left(of(&|worker| unless(worker.restarts == 0, count(worker.restarts, "restart"))))),
        (Tone::Alert, of(&|worker| unless(!worker.lost, "lost".to_owned()))),
    ];
    let shown: Vec<_> = cells.iter().filter(|(_, texts)| widest(texts) > 0).collect();
    let line = |worker_idx: usize| {
        let mut line = Line::default();
        for (tone, texts) in &shown {
            line.push_own(Tone::Plain, "  ");
            line.push_own(*tone, &texts[worker_idx]);
        }
        line.fitted(None, charset)
    };
    (0..workers.len()).map(line).collect()
}

/// Texts with spaces behind them, so that all are as wide as the widest.
fn left(texts: Vec<String>) -> Vec<String> {
    let columns = widest(&texts);
    texts.iter().map(|text| pad(text, columns)).collect()
}

/// Texts with spaces before them.
fn right(texts: Vec<String>) -> Vec<String> {
    let columns = widest(&texts);
    texts.iter().map(|text| format!("{text:>columns$}")).collect()
}

fn widest(texts: &[String]) -> usize {
    texts.iter().map(|text| width(text)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::terminal::Colour;
    use super::*;

    #[test]
    fn workers_stand_in_columns_and_columns_without_a_word_are_left_out() {
        let worker = |number: usize, rows| WorkerLine {
            number,
            device: format!("cuda:{number}"),
            device_name: "NVIDIA A10".to_owned(),
            pid: 8_123 + number as u32,
            rows,
            ..WorkerLine::default()
        };
        let check = |workers: &[WorkerLine], expected: &[&str]| {
            let lines: Vec<_> = all(workers, Charset::Unicode).iter().map(|line| line.painted(Colour::Off)).collect();
            assert_eq!(lines, expected);
        };
        check(
            &[
                worker(0, 499_991),
                WorkerLine { restarts: 2, lost: true, ..worker(1, 1) },
                WorkerLine { restarts: 12, device_name: "Tesla\x1b T4".to_owned(), ..worker(2, 499_985) },
            ],
            &[
                "  worker 0  cuda:0  NVIDIA A10  pid 8123  499,991 rows",
                "  worker 1  cuda:1  NVIDIA A10  pid 8124         1 row  2 restarts   lost",
                "  worker 2  cuda:2  Tesla\u{fffd} T4   pid 8125  499,985 rows  12 restarts",
            ],
        );
        let cpu = WorkerLine { device: "cpu".to_owned(), device_name: String::new(), ..worker(0, 9) };
        check(&[cpu], &["  worker 0  cpu  pid 8123  9 rows"]);
        check(&[], &[]);
    }
}
