//! The samples of a few rows of blocks, and the way from them to rows of pixels.
//!
//! Only the blocks of one row of units are held, and as many lines above them as a line of pixels may still need. Stretching
//! weighs a line with its neighbour above or below, so the last lines of a row of units wait for the next row.

use std::ops::Range;

use super::super::sized;
use super::colour;
use super::frame::{Component, Frame, MAX_COMPONENTS};
use super::header::Model;
use super::idct::{self, Block};
use super::part::Part;
use super::upsample::Stretch;

/// Lines are read this far beyond their end, by loops that take many samples at once.
pub(super) const SLACK: usize = 64;

/// Memory that outlives a picture.
#[derive(Debug, Default)]
pub(in super::super) struct PlaneBuffers {
    samples: [Vec<u8>; MAX_COMPONENTS],
    lines: [Vec<u8>; MAX_COMPONENTS],
}

impl PlaneBuffers {
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.samples.iter_mut().chain(&mut self.lines)
    }
}

/// The samples of a row of units.
pub(super) struct Planes<'b> {
    planes: [Plane<'b>; MAX_COMPONENTS],
    frame: &'b Frame,
    model: Model,
    part: Part,
    /// Lines of pixels that wait for the next row of units.
    pending: usize,
}

#[derive(Default)]
struct Plane<'b> {
    samples: &'b mut [u8],
    /// What a stretched line is written to.
    line: &'b mut [u8],
    stride: usize,
    /// Samples of a line that become pixels.
    columns: Range<usize>,
    /// Lines that are kept from the row of units before.
    kept: usize,
    component: Component,
    stretch: Stretch,
}

impl<'b> Planes<'b> {
    pub(super) fn new(buffers: &'b mut PlaneBuffers, frame: &'b Frame, model: Model, part: Part) -> Self {
        let mut planes: [Plane<'b>; MAX_COMPONENTS] = Default::default();
        let memory = buffers.samples.iter_mut().zip(&mut buffers.lines);
        for ((plane, component), (samples, line)) in planes.iter_mut().zip(frame.components()).zip(memory) {
            let width = component.h * component.size;
            let stride = frame.units_wide * width;
            // As many as make one row of pixels of each kind, and the one above.
            let kept = component.v * component.size / frame.size + 1;
            let n_lines = kept + component.v * component.size;
            *plane = Plane {
                samples: sized(samples, n_lines * stride + SLACK),
                line: sized(line, frame.units_wide * frame.max_h * frame.size + SLACK),
                stride,
                columns: part.units[0].start * width..(part.units[0].end * width).min(component.width),
                kept,
                component: *component,
                stretch: Stretch::of(component, frame),
            };
        }
        let weighs = planes[..frame.components().len()].iter().any(|plane| plane.stretch.weighs_lines());
        Self { planes, frame, model, part, pending: if weighs { frame.max_v } else { 0 } }
    }

    /// The units that become samples, along and down.
    pub(super) fn units(&self) -> [Range<usize>; 2] {
        self.part.units.clone()
    }

    /// Puts a block of coefficients at column `x` of blocks, and row `y` within the row of units. Behind `last`, in the order of
    /// coding, all coefficients are zero.
    #[inline(always)]
    pub(super) fn put(&mut self, index: usize, x: usize, y: usize, block: &Block, last: usize) {
        let plane = &mut self.planes[index];
        let size = plane.component.size;
        let at = (plane.kept + y * size) * plane.stride + x * size;
        idct::transform(block, last, size, &mut plane.samples[at..], plane.stride);
    }

    /// Writes the lines of pixels that are now known, when the row of units number `unit_y` is there.
    pub(super) fn finish_row(&mut self, unit_y: usize, raster: &mut [u8]) {
        let Self { planes, frame, model, part, pending } = self;
        let n_lines = frame.max_v * frame.size;
        let row_bytes = frame.scaled_width * 3;
        let is_last = unit_y + 1 == frame.units_high;
        let begin = (unit_y * n_lines).saturating_sub(*pending).max(part.lines.start);
        let end = if is_last { frame.scaled_height } else { (unit_y + 1) * n_lines - *pending };
        let end = end.min(part.lines.end).max(begin);
        let columns = part.columns.start * 3..part.columns.end * 3;
        let planes = &mut planes[..frame.components().len()];
        let rows = raster[begin * row_bytes..end * row_bytes].chunks_exact_mut(row_bytes);
        for (y, row) in (begin..end).zip(rows) {
            let row = &mut row[columns.clone()];
            let [first, second, third, fourth] = &mut *planes else {
                match &mut *planes {
                    [luma, cb, cr] => {
                        let lines = [luma.line(y, unit_y, frame), cb.line(y, unit_y, frame), cr.line(y, unit_y, frame)];
                        colour::three(*model, lines, row);
                    }
                    [grey] => colour::grey(grey.line(y, unit_y, frame), row),
                    _ => {}
                }
                continue;
            };
            let lines = [first, second, third, fourth].map(|plane| plane.line(y, unit_y, frame));
            colour::four(*model, lines, row);
        }
        if !is_last {
            planes.iter_mut().for_each(Plane::keep_last_lines);
        }
    }
}

impl Plane<'_> {
    /// The samples for line `y` of the picture, from the part's first column on, as many as it has columns or more.
    fn line(&mut self, y: usize, unit_y: usize, frame: &Frame) -> &[u8] {
        let Self { samples, line, stride, columns, kept, component, stretch } = self;
        let first = (unit_y * component.v * component.size) as isize - *kept as isize;
        // Beyond the picture's edges its outermost lines stand again.
        let at = |y: isize| {
            let y = y.clamp(0, component.height as isize - 1);
            &samples[(y - first) as usize * *stride + columns.start..][..columns.len() + SLACK]
        };
        let near = (y * component.v * component.size / (frame.max_v * frame.size)) as isize;
        if *stretch == Stretch::None {
            return at(near);
        }
        let far = if y.is_multiple_of(2) { near - 1 } else { near + 1 };
        let far = if stretch.weighs_lines() { at(far) } else { at(near) };
        stretch.line(at(near), far, y % 2, columns.len(), line);
        line
    }

    fn keep_last_lines(&mut self) {
        let n = self.kept * self.stride;
        let end = (self.kept + self.component.v * self.component.size) * self.stride;
        self.samples.copy_within(end - n..end, 0);
    }
}
