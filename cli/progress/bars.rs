//! The display on a terminal: a few lines, drawn over themselves.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing_subscriber::fmt::MakeWriter;

use super::driver::Display;
use super::line::Line;
use super::snapshot::Snapshot;
use super::terminal::{Size, Terminal, stderr_size};
use super::{echo, node_lines, overview};

/// Where a terminal does not tell its height.
const LINES: usize = 24;

/// The lines of a run, drawn over themselves until they are closed, then wiped away.
#[derive(Debug)]
pub struct Bars {
    terminal: Terminal,
    size: fn() -> Option<Size>,
    bar: ProgressBar,
    above: AboveBars,
}

impl Bars {
    /// Bars on the standard error stream. Lines that others write through `above` stay above them.
    #[must_use]
    pub fn new(terminal: Terminal, above: &AboveBars) -> Self {
        echo::hide();
        Self::on(ProgressDrawTarget::stderr(), terminal, stderr_size, above)
    }

    fn on(target: ProgressDrawTarget, terminal: Terminal, size: fn() -> Option<Size>, above: &AboveBars) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is a plain field"));
        above.set(Some(bar.clone()));
        Self { terminal, size, bar, above: above.clone() }
    }
}

impl Display for Bars {
    fn show(&mut self, snapshot: &Snapshot, pace: f64) -> io::Result<()> {
        // The window may have been resized since.
        self.terminal.size = (self.size)().or(self.terminal.size);
        let painted: Vec<String> =
            lines(snapshot, pace, &self.terminal).iter().map(|line| line.painted(self.terminal.colour)).collect();
        self.bar.set_message(painted.join("\n"));
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.above.wipe();
        Ok(())
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.above.set(None);
        echo::restore();
    }
}

/// All lines for a terminal: the run, then its nodes. They leave one line and one column of the window free, since many
/// terminals go on to the next line when the last column is filled.
#[must_use]
pub(super) fn lines(snapshot: &Snapshot, pace: f64, terminal: &Terminal) -> Vec<Line> {
    let mut inside = *terminal;
    if let Some(size) = &mut inside.size {
        size.width = size.width.saturating_sub(1);
    }
    let height = terminal.size.map_or(LINES, |size| size.height);
    let mut lines = vec![overview::with_bar(snapshot, pace, &inside)];
    lines.extend(node_lines::at_most(height.saturating_sub(2), &snapshot.nodes, &inside));
    lines
}

/// A writer to the standard error stream that keeps out of the bars' way: what it writes appears above them.
///
/// It can be made before there are bars, and outlives them, so a log may have it from the start.
#[derive(Clone, Default)]
pub struct AboveBars {
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

impl AboveBars {
    /// Wipes the bars for good: what is written next stands alone. For the end, and for leaving in a hurry.
    pub fn wipe(&self) {
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        echo::restore();
    }

    fn set(&self, bar: Option<ProgressBar>) {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }
}

impl fmt::Debug for AboveBars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AboveBars").finish_non_exhaustive()
    }
}

impl Write for AboveBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match bar {
            Some(bar) => bar.suspend(|| io::stderr().write_all(bytes))?,
            None => io::stderr().write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for AboveBars {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use indicatif::TermLike;

    use super::*;
    use crate::progress::snapshot::NodeLine;
    use crate::progress::terminal::{Charset, Colour, Cursor};

    const SIZE: Size = Size { width: 60, height: 8 };

    /// A terminal's screen: writing past the last column goes on in the next line, as on a real one.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<Cells>>);

    #[derive(Debug, Default)]
    struct Cells {
        rows: Vec<Vec<char>>,
        row: usize,
        column: usize,
        widest: usize,
    }

    impl Cells {
        fn put(&mut self, c: char) {
            match c {
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                '\r' => self.column = 0,
                c => {
                    if self.column == SIZE.width {
                        (self.row, self.column) = (self.row + 1, 0);
                    }
                    while self.rows.len() <= self.row {
                        self.rows.push(vec![' '; SIZE.width]);
                    }
                    self.rows[self.row][self.column] = c;
                    self.column += 1;
                    if c != ' ' {
                        self.widest = self.widest.max(self.column);
                    }
                }
            }
        }
    }

    impl Screen {
        fn with<T>(&self, change: impl FnOnce(&mut Cells) -> T) -> io::Result<T> {
            Ok(change(&mut self.0.lock().expect("not poisoned")))
        }

        fn shown(&self) -> Vec<String> {
            let cells = self.0.lock().expect("not poisoned");
            let rows = cells.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned());
            let mut rows: Vec<String> = rows.collect();
            while rows.last().is_some_and(String::is_empty) {
                rows.pop();
            }
            rows
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            SIZE.width as u16
        }
        fn height(&self) -> u16 {
            SIZE.height as u16
        }
        fn move_cursor_up(&self, n: usize) -> io::Result<()> {
            self.with(|cells| cells.row = cells.row.saturating_sub(n))
        }
        fn move_cursor_down(&self, n: usize) -> io::Result<()> {
            self.with(|cells| cells.row += n)
        }
        fn move_cursor_right(&self, n: usize) -> io::Result<()> {
            self.with(|cells| cells.column = (cells.column + n).min(SIZE.width))
        }
        fn move_cursor_left(&self, n: usize) -> io::Result<()> {
            self.with(|cells| cells.column = cells.column.saturating_sub(n))
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)?;
            self.write_str("\n")
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.with(|cells| text.chars().for_each(|c| cells.put(c)))
        }
        fn clear_line(&self) -> io::Result<()> {
            self.with(|cells| {
                cells.column = 0;
                if let Some(row) = cells.rows.get_mut(cells.row) {
                    row.fill(' ');
                }
            })
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn bars_on(screen: &Screen) -> Bars {
        let terminal =
            Terminal { size: Some(SIZE), charset: Charset::Unicode, colour: Colour::Off, cursor: Cursor::Moves };
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        Bars::on(target, terminal, || Some(SIZE), &AboveBars::default())
    }

    fn snapshot(done: u64, n_nodes: usize) -> Snapshot {
        let node = |idx: usize| NodeLine {
            name: format!("node{idx}"),
            kind: "transform.topk".to_owned(),
            rate: 10.0,
            busy: 0.5,
            limits: idx == 1,
            ..NodeLine::default()
        };
        Snapshot {
            name: "classify".to_owned(),
            elapsed: Duration::from_secs(3),
            total: Some(100),
            done,
            rejects: 0,
            nodes: (0..n_nodes).map(node).collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn each_state_is_drawn_over_the_one_before() {
        let screen = Screen::default();
        let mut bars = bars_on(&screen);
        for (done, n_nodes) in [(10, 4), (50, 2), (100, 3)] {
            bars.show(&snapshot(done, n_nodes), 10.0).expect("a screen takes everything");
        }
        assert_eq!(
            screen.shown(),
            [
                "classify ━━━━━━━━━━━━━ 100 / 100  100 %    10.0/s   ETA 0 s",
                "  node0  10.0/s  busy  50 %",
                "  node1  10.0/s  busy  50 %  ← limits the run",
                "  node2  10.0/s  busy  50 %",
            ]
        );
        bars.close().expect("a screen takes everything");
        assert_eq!(screen.shown(), Vec::<String>::new());
    }

    #[test]
    fn the_last_column_and_the_last_line_stay_free() {
        let screen = Screen::default();
        let mut bars = bars_on(&screen);
        for done in 0..20 {
            bars.show(&snapshot(done, 30), 10.0).expect("a screen takes everything");
        }
        let shown = screen.shown();
        assert_eq!(shown.len(), SIZE.height - 1);
        assert!(shown[SIZE.height - 2].ends_with("more nodes"), "{shown:?}");
        assert!(screen.0.lock().expect("not poisoned").widest < SIZE.width);
    }
}
