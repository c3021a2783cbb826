//! Tables: titles, columns of text to the left, columns of figures to the right.

use engine::graph::render::plain::width;

use super::Terminal;
use super::line::{Line, Tone};

/// A column.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) cells: Vec<String>,
    /// Figures stand at the right.
    pub(crate) is_figure: bool,
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().map(|cell| width(cell)).chain([width(self.title)]).max().unwrap_or(0)
    }
}

/// Columns of the terminal that a row takes.
pub(crate) fn row_width(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width() + 2).sum::<usize>().saturating_sub(2)
}

/// The titles, or the cells of that number.
pub(crate) fn row(columns: &[Column], number: Option<usize>, terminal: &Terminal) -> Line {
    let mut line = Line::default();
    for (at, column) in columns.iter().enumerate() {
        let (tone, text) = match number {
            None => (Tone::Faint, column.title),
            Some(number) => (if at == 0 { Tone::Strong } else { Tone::Plain }, column.cells[number].as_str()),
        };
        let room = column.width();
        if column.is_figure {
            line.push_own(Tone::Plain, " ".repeat(room.saturating_sub(width(text))));
            line.push(tone, text, terminal.charset);
        } else {
            line.push_padded(tone, text, room, terminal.charset);
        }
        line.push_own(Tone::Plain, "  ");
    }
    line
}
