//! The run as a whole in one line: how far, how fast, how long still.

use super::human::{count, duration, grouped, percent, rate, whole_duration};
use super::line::{Line, Tone};
use super::pace::time_left;
use super::snapshot::{Incidents, Snapshot};
use super::terminal::{Charset, Terminal};

const WIDEST_BAR: usize = 40;
/// A shorter bar shows nothing that the percentage does not.
const SHORTEST_BAR: usize = 8;

/// The line with a bar, for a terminal.
#[must_use]
pub fn with_bar(snapshot: &Snapshot, pace: f64, terminal: &Terminal) -> Line {
    let charset = terminal.charset;
    let words = words(snapshot, pace, charset);
    let mut line = Line::default();
    line.push(Tone::Strong, &snapshot.name, charset);
    line.push_own(Tone::Plain, " ");
    if let Some(total) = snapshot.total {
        let taken = line.width() + words.width() + 1;
        let room = terminal.width().map_or(WIDEST_BAR, |columns| columns.saturating_sub(taken)).min(WIDEST_BAR);
        if room >= SHORTEST_BAR {
            push_bar(&mut line, share(snapshot.done, total), room, charset);
            line.push_own(Tone::Plain, " ");
        }
    }
    line.append(words);
    line.fitted(terminal.width(), charset)
}

/// The line for a pipe.
#[must_use]
pub fn plain(snapshot: &Snapshot, pace: f64, terminal: &Terminal) -> Line {
    let mut line = Line::default();
    line.push(Tone::Strong, &format!("{}: ", snapshot.name), terminal.charset);
    line.append(words(snapshot, pace, terminal.charset));
    if let Some(node) = snapshot.nodes.iter().find(|node| node.limits) {
        line.push_own(Tone::Plain, "   limited by ");
        line.push(Tone::Plain, &node.name, terminal.charset);
    }
    if let Some(words) = incidents(snapshot.incidents) {
        line.push_own(Tone::Alert, format!("   workers: {words}"));
    }
    line.fitted(None, terminal.charset)
}

fn incidents(incidents: Incidents) -> Option<String> {
    let restarts = (incidents.restarts > 0).then(|| count(incidents.restarts, "restart"));
    let lost = (incidents.lost > 0).then(|| format!("{} lost", grouped(incidents.lost)));
    let words: Vec<_> = restarts.into_iter().chain(lost).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn words(snapshot: &Snapshot, pace: f64, charset: Charset) -> Line {
    let mut line = Line::default();
    let done = grouped(snapshot.done);
    match snapshot.total {
        Some(total) => {
            line.push_own(Tone::Plain, format!("{done} / {}", grouped(total)));
            line.push_own(Tone::Plain, format!("  {:>4}", percent(share(snapshot.done, total))));
        }
        None => line.push_own(Tone::Plain, format!("{done} rows")),
    }
    line.push_own(Tone::Plain, format!("   {:>7}", rate(pace)));
    match (snapshot.total, time_left(snapshot, pace)) {
        (Some(_), Some(left)) => line.push_own(Tone::Plain, format!("   ETA {}", whole_duration(left))),
        (Some(_), None) => {
            line.push_own(Tone::Plain, format!("   ETA {}", if charset == Charset::Unicode { "–" } else { "-" }))
        }
        (None, _) => line.push_own(
            Tone::Faint,
            format!(
                "   {}",
                if snapshot.elapsed.as_secs() < 60 {
                    whole_duration(snapshot.elapsed)
                } else {
                    duration(snapshot.elapsed)
                }
            ),
        ),
    }
    if snapshot.rejects > 0 {
        line.push_own(Tone::Alert, format!("   rejects {}", grouped(snapshot.rejects)));
    }
    line
}

/// Nothing to do is done.
fn share(done: u64, total: u64) -> f64 {
    if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) }
}

fn push_bar(line: &mut Line, share: f64, columns: usize, charset: Charset) {
    match charset {
        Charset::Unicode => {
            let halves = (share * (2 * columns) as f64).floor() as usize;
            let mut done = "━".repeat(halves / 2);
            if halves % 2 == 1 {
                done.push('╸');
            }
            line.push_own(Tone::Good, done);
            line.push_own(Tone::Faint, "━".repeat(columns - halves.div_ceil(2)));
        }
        Charset::Ascii => {
            let inside = columns - 2;
            let full = (share * inside as f64).floor() as usize;
            let head = usize::from(full < inside);
            line.push_own(Tone::Faint, "[");
            line.push_own(Tone::Good, format!("{}{}", "=".repeat(full), ">".repeat(head)));
            line.push_own(Tone::Faint, format!("{}]", " ".repeat(inside - full - head)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::terminal::{Colour, Cursor, Size};
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            name: "classify".to_owned(),
            elapsed: Duration::from_secs(277),
            total: Some(1_000_000),
            done: 641_204,
            rejects: 17,
            nodes: Vec::new(),
            incidents: Incidents::default(),
        }
    }

    fn check(snapshot: &Snapshot, pace: f64, width: usize, charset: Charset, expected: &str) {
        let size = Some(Size { width, height: 24 });
        let terminal = Terminal { size, charset, colour: Colour::Off, cursor: Cursor::Moves };
        assert_eq!(with_bar(snapshot, pace, &terminal).painted(Colour::Off), expected);
    }

    #[test]
    fn the_bar_takes_the_room_that_the_figures_leave() {
        let line =
            "classify ━━━━━━━━━━━━━━━━━━━╸━━━━━━━━━━━ 641,204 / 1,000,000  64 %   2,310/s   ETA 2 m 35 s   rejects 17";
        check(&snapshot(), 2_310.0, 104, Charset::Unicode, line);
        let line =
            "classify [==================>          ] 641,204 / 1,000,000  64 %   2,310/s   ETA 2 m 35 s   rejects 17";
        check(&snapshot(), 2_310.0, 104, Charset::Ascii, line);
        let line = "classify 641,204 / 1,000,000  64 %   2,310/s   ETA 2 m 35 s   rejects 17";
        check(&snapshot(), 2_310.0, 74, Charset::Unicode, line);
        check(&snapshot(), 2_310.0, 30, Charset::Unicode, "classify 641,204 / 1,000,000…");
    }

    #[test]
    fn without_a_total_there_is_no_guess() {
        let open = Snapshot { total: None, rejects: 0, ..snapshot() };
        check(&open, 2_310.0, 80, Charset::Unicode, "classify 641,204 rows   2,310/s   4 m 37 s");
        let young = Snapshot { elapsed: Duration::from_millis(900), done: 0, rejects: 0, ..snapshot() };
        let line = "classify ━━━━━━━━━━━━━━━━━━━━━━━━━━━ 0 / 1,000,000   0 %       0/s   ETA –";
        check(&young, 0.0, 74, Charset::Unicode, line);
    }

    #[test]
    fn a_pipe_is_told_of_workers_only_if_something_happened_to_them() {
        let told = |restarts, lost| {
            let snapshot = Snapshot { incidents: Incidents { restarts, lost }, ..snapshot() };
            let line = plain(&snapshot, 2_310.0, &Terminal::PIPE).painted(Colour::Off);
            line.split_once("rejects 17").expect("it is there").1.to_owned()
        };
        assert_eq!(told(0, 0), "");
        assert_eq!(told(1, 0), "   workers: 1 restart");
        assert_eq!(told(12, 1), "   workers: 12 restarts, 1 lost");
    }

    #[test]
    fn all_of_nothing_is_done() {
        let empty = Snapshot { total: Some(0), done: 0, rejects: 0, ..snapshot() };
        check(&empty, 0.0, 53, Charset::Unicode, "classify ━━━━━━━━━━━━━ 0 / 0  100 %       0/s   ETA –");
        let more = Snapshot { total: Some(10), done: 12, rejects: 0, ..snapshot() };
        check(&more, 1.0, 55, Charset::Ascii, "classify [=========] 12 / 10  100 %    1.00/s   ETA 0 s");
    }
}
