//! The part of the picture that somebody will look at.
//!
//! All of a scan has to be read, for each value is told by its difference to the one before, and because a file that is cut is
//! refused. But blocks that nobody looks at need not become samples, nor samples pixels.

use std::ops::Range;

use super::frame::Frame;

/// What is made of the picture: whole units, and of those the lines that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Units of an interleaved scan that become samples, along and down.
    pub(super) units: [Range<usize>; 2],
    /// Columns of pixels that are made: those of the units.
    pub(super) columns: Range<usize>,
    /// Lines of pixels that are made: those that are wanted.
    pub(super) lines: Range<usize>,
}

impl Part {
    /// `wanted` are columns and lines of the picture at the scale of its decoding.
    pub(super) fn of(frame: &Frame, wanted: [Range<usize>; 2]) -> Self {
        let unit = [frame.max_h, frame.max_v].map(|factor| factor * frame.size);
        // Stretching weighs a sample with its neighbours, of which each is at most so many pixels wide and high; beyond the
        // outermost units stands what is not true.
        let margin = [frame.max_h, frame.max_v];
        let n_units = [frame.units_wide, frame.units_high];
        let units = [0, 1].map(|axis| {
            let first = wanted[axis].start.saturating_sub(margin[axis]) / unit[axis];
            let end = (wanted[axis].end + margin[axis]).div_ceil(unit[axis]);
            first.min(n_units[axis])..end.min(n_units[axis])
        });
        let columns = units[0].start * unit[0]..(units[0].end * unit[0]).min(frame.scaled_width);
        let [_, lines] = wanted;
        Self { units, columns, lines: lines.start..lines.end.min(frame.scaled_height) }
    }
}
