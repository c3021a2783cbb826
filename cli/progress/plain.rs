//! The display in a pipe: now and then a line.

use std::io::{self, Write};
use std::time::Duration;

use super::driver::Display;
use super::overview;
use super::snapshot::Snapshot;
use super::terminal::Terminal;

const EVERY: Duration = Duration::from_secs(10);

/// One line every ten seconds of the run, and no escapes that move a cursor.
#[derive(Debug)]
pub struct Plain<W> {
    terminal: Terminal,
    out: W,
    due: Duration,
}

impl<W: Write> Plain<W> {
    /// Lines to a writer.
    pub fn new(terminal: Terminal, out: W) -> Self {
        Self { terminal, out, due: EVERY }
    }
}

impl<W: Write + Send> Display for Plain<W> {
    fn show(&mut self, snapshot: &Snapshot, pace: f64) -> io::Result<()> {
        if snapshot.elapsed < self.due {
            return Ok(());
        }
        // From the time of this line on, so that a run that was stopped and goes on does not catch up with many lines.
        self.due = snapshot.elapsed + EVERY;
        let line = overview::plain(snapshot, pace, &self.terminal).painted(self.terminal.colour);
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    fn close(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::snapshot::NodeLine;

    #[test]
    fn a_line_comes_every_ten_seconds_of_the_run() {
        let mut written = Vec::new();
        let mut plain = Plain::new(Terminal::PIPE, &mut written);
        for tenth in 0..=312_u64 {
            let snapshot = Snapshot {
                name: "classify".to_owned(),
                elapsed: Duration::from_millis(tenth * 100),
                total: Some(1_000),
                done: tenth * 2,
                rejects: tenth / 100,
                nodes: vec![NodeLine { name: "pixels".to_owned(), limits: true, ..NodeLine::default() }],
                ..Snapshot::default()
            };
            plain.show(&snapshot, 20.0).expect("a vector takes everything");
        }
        let text = String::from_utf8(written).expect("text");
        assert_eq!(
            text,
            "classify: 200 / 1,000  20 %    20.0/s   ETA 40 s   rejects 1   limited by pixels\n\
             classify: 400 / 1,000  40 %    20.0/s   ETA 30 s   rejects 2   limited by pixels\n\
             classify: 600 / 1,000  60 %    20.0/s   ETA 20 s   rejects 3   limited by pixels\n"
        );
    }
}
