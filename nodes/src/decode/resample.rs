//! Changing the size of an RGB raster, with the very bytes that Pillow's `resize` gives.
//!
//! A pass along the rows and one along the columns; each weighs the pixels that an output pixel covers, in fixed point with
//! 22 bits behind the point, and rounds to a byte. Only the wanted part of the result is computed, and only from the rows that
//! it needs: every output pixel is independent of the others, so the bytes are those of a crop from the whole.

use std::f64::consts::PI;
use std::ops::Range;

use super::codec::sized;
use super::preprocess::Interpolation;
use super::resample_kernel::{Quad, horizontal, vertical};

/// Bits behind the point of a weight: 32 less 8 for the sample and 2 for sign and overshoot.
pub(super) const WEIGHT_BITS: u32 = 32 - 8 - 2;

/// The places along one axis of the source that the resized picture is made of, in pixels and fractions of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The first one.
    pub start: f64,
    /// How many.
    pub length: f64,
}

impl Span {
    /// All of a side.
    pub fn whole(side: u32) -> Self {
        Self { start: 0.0, length: f64::from(side) }
    }
}

/// A part of the resized picture, and what it is made of.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The part of the source that becomes the whole resized picture: columns, rows. Pillow's `box`.
    pub from: [Span; 2],
    /// The size of the whole resized picture: columns, rows.
    pub resized: [u64; 2],
    /// The first column and row that are wanted.
    pub origin: [u64; 2],
    /// The number of columns and rows that are wanted.
    pub size: [u32; 2],
}

impl Window {
    /// The columns and rows of a source of `size` that anything in the window is made of, and perhaps a few more.
    pub fn reach(&self, size: [u32; 2], interpolation: Interpolation) -> [Range<usize>; 2] {
        let support = Filter::of(interpolation).map_or(0.0, |filter| filter.support);
        [0, 1].map(|axis| {
            let Span { start, length } = self.from[axis];
            let scale = length / self.resized[axis] as f64;
            let margin = support * scale.max(1.0) + 1.0;
            let place = |place: u64| start + place as f64 * scale;
            let first = place(self.origin[axis]) - margin;
            let end = place(self.origin[axis] + u64::from(self.size[axis])) + margin;
            // `as` stops at zero.
            let end = (end.ceil() as usize).min(size[axis] as usize);
            (first as usize).min(end)..end
        })
    }
}

/// Where rows of the result are written.
#[derive(Debug)]
pub struct Target<'a> {
    /// The bytes, from the first byte of the first row on.
    pub bytes: &'a mut [u8],
    /// Bytes from the start of one row to the start of the next.
    pub stride: usize,
}

impl Target<'_> {
    fn row(&mut self, y: usize, len: usize) -> &mut [u8] {
        &mut self.bytes[y * self.stride..][..len]
    }
}

/// Buffers that outlive a picture.
#[derive(Debug, Default)]
pub struct ResampleBuffers {
    rows: Vec<u8>,
    columns: Weights,
    lines: Weights,
}

impl ResampleBuffers {
    /// Lets go of what is larger than `most` bytes.
    pub(super) fn give_back_excess(&mut self, most: usize) {
        if self.rows.capacity() > most {
            self.rows = Vec::new();
        }
        for weights in [&mut self.columns, &mut self.lines] {
            if weights.quads.capacity() > most / size_of::<Quad>()
                || weights.weights.capacity() > most / size_of::<i32>()
            {
                *weights = Weights::default();
            }
        }
    }
}

/// Resizes `source`, RGB of `size`, and writes the wanted part into `target`.
pub fn resample(
    source: &[u8],
    size: [u32; 2],
    window: Window,
    interpolation: Interpolation,
    buffers: &mut ResampleBuffers,
    mut target: Target<'_>,
) {
    let [width, height] = size.map(|side| side as usize);
    let [out_width, out_height] = window.size.map(|side| side as usize);
    if out_width == 0 || out_height == 0 {
        return;
    }
    let source_row = |y: usize| &source[y * width * 3..][..width * 3];
    let same = [0, 1]
        .map(|axis| window.resized[axis] == u64::from(size[axis]) && window.from[axis] == Span::whole(size[axis]));
    if same == [true, true] {
        let [left, top] = window.origin.map(|place| place as usize);
        for y in 0..out_height {
            target.row(y, out_width * 3).copy_from_slice(&source_row(top + y)[left * 3..][..out_width * 3]);
        }
        return;
    }
    let Some(filter) = Filter::of(interpolation) else {
        let columns = nearest(width, window, 0);
        let lines = nearest(height, window, 1);
        for (y, &line) in lines.iter().enumerate() {
            let row = source_row(line);
            for (pixel, &column) in target.row(y, out_width * 3).chunks_exact_mut(3).zip(&columns) {
                pixel.copy_from_slice(&row[column * 3..][..3]);
            }
        }
        return;
    };

    let row_bytes = out_width * 3;
    if !same[0] {
        buffers.columns.compute(width, window, 0, &filter);
        buffers.columns.pack();
    }
    if same[1] {
        let top = window.origin[1] as usize;
        for y in 0..out_height {
            horizontal(source_row(top + y), 0, &buffers.columns, target.row(y, row_bytes));
        }
        return;
    }
    buffers.lines.compute(height, window, 1, &filter);
    if same[0] {
        let left = window.origin[0] as usize;
        for y in 0..out_height {
            let (start, weights) = buffers.lines.at(y);
            vertical(&source[(start * width + left) * 3..], width * 3, weights, target.row(y, row_bytes));
        }
        return;
    }
    if vertical_first(size, window.resized) {
        let needed = buffers.columns.reach();
        let row = sized(&mut buffers.rows, needed.len() * 3);
        for y in 0..out_height {
            let (start, weights) = buffers.lines.at(y);
            vertical(&source[(start * width + needed.start) * 3..], width * 3, weights, row);
            horizontal(row, needed.start, &buffers.columns, target.row(y, row_bytes));
        }
        return;
    }
    let needed = buffers.lines.reach();
    let rows = sized(&mut buffers.rows, needed.len() * row_bytes);
    for (row, y) in rows.chunks_exact_mut(row_bytes).zip(needed.clone()) {
        horizontal(source_row(y), 0, &buffers.columns, row);
    }
    for y in 0..out_height {
        let (start, weights) = buffers.lines.at(y);
        vertical(&rows[(start - needed.start) * row_bytes..], row_bytes, weights, target.row(y, row_bytes));
    }
}

/// Which pass comes first shows in the rounding between them. The rule is Pillow 13's: the columns, if the height loses more than
/// twice the pixels that the width loses.
fn vertical_first(size: [u32; 2], resized: [u64; 2]) -> bool {
    let [width, height] = [0, 1].map(|axis| i128::from(size[axis]) - i128::from(resized[axis]));
    height > 0 && height > width * 2
}

/// The source place of each wanted output place. The steps are summed up and not multiplied, for the same rounding errors.
fn nearest(source: usize, window: Window, axis: usize) -> Vec<usize> {
    let Span { start, length } = window.from[axis];
    let step = length / window.resized[axis] as f64;
    let (first, n) = (window.origin[axis], window.size[axis] as usize);
    let mut place = start + step * 0.5;
    for _ in 0..first {
        place += step;
    }
    let mut places = Vec::with_capacity(n);
    for _ in 0..n {
        places.push((place as usize).min(source - 1));
        place += step;
    }
    places
}

/// A curve of weights around zero.
struct Filter {
    support: f64,
    curve: fn(f64) -> f64,
}

impl Filter {
    fn of(interpolation: Interpolation) -> Option<Self> {
        match interpolation {
            Interpolation::Nearest => None,
            Interpolation::Bilinear => Some(Self { support: 1.0, curve: triangle }),
            Interpolation::Bicubic => Some(Self { support: 2.0, curve: cubic }),
            Interpolation::Lanczos => Some(Self { support: 3.0, curve: lanczos }),
            Interpolation::Box => Some(Self { support: 0.5, curve: square }),
            Interpolation::Hamming => Some(Self { support: 1.0, curve: hamming }),
        }
    }
}

fn triangle(x: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 { 1.0 - x } else { 0.0 }
}

/// Keys' cubic with a = -0.5.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

fn square(x: f64) -> f64 {
    if x > -0.5 && x <= 0.5 { 1.0 } else { 0.0 }
}

/// Its two figures have single precision where the bytes are compared with, so they have it here.
fn hamming(x: f64) -> f64 {
    let x = x.abs();
    if x == 0.0 {
        1.0
    } else if x < 1.0 {
        let x = x * PI;
        x.sin() / x * (f64::from(0.54_f32) + f64::from(0.46_f32) * x.cos())
    } else {
        0.0
    }
}

fn lanczos(x: f64) -> f64 {
    if (-3.0..3.0).contains(&x) { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) }
}

/// The weights of each wanted output place along one axis.
///
/// Every place has the same number of weights, the surplus ones being zero, so that the inner loops have a fixed length.
#[derive(Debug, Default)]
pub(super) struct Weights {
    taps: usize,
    starts: Vec<usize>,
    weights: Vec<i32>,
    quads: Vec<Quad>,
    curve: Vec<f64>,
}

impl Weights {
    /// The first source place of an output place, and its weights.
    pub(super) fn at(&self, place: usize) -> (usize, &[i32]) {
        (self.starts[place], &self.weights[place * self.taps..][..self.taps])
    }

    /// The source places that have any weight.
    fn reach(&self) -> Range<usize> {
        let first = self.starts.iter().min().copied().unwrap_or(0);
        let last = self.starts.iter().max().copied().unwrap_or(0);
        first..last + self.taps
    }

    /// The number of weights at each place.
    pub(super) fn taps(&self) -> usize {
        self.taps
    }

    /// The first source places, one per output place.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The weights packed in fours, each place beginning with a new four.
    pub(super) fn quads(&self) -> &[Quad] {
        &self.quads
    }

    fn pack(&mut self) {
        self.quads.clear();
        self.quads.extend(self.weights.chunks_exact(self.taps).flat_map(Quad::pack));
    }

    fn compute(&mut self, source: usize, window: Window, axis: usize, filter: &Filter) {
        let Span { start, length } = window.from[axis];
        let scale = length / window.resized[axis] as f64;
        let stretch = scale.max(1.0);
        let support = filter.support * stretch;
        let inverse = 1.0 / stretch;
        let n = window.size[axis] as usize;
        // `as` cuts towards zero and stops at zero, which is the clamp that is wanted here.
        let touched = |place: usize| {
            let center = start + ((window.origin[axis] + place as u64) as f64 + 0.5) * scale;
            let first = (center - support + 0.5) as usize;
            (center, first..((center + support + 0.5) as usize).min(source))
        };
        let taps = (0..n).map(|place| touched(place).1.len()).fold(1, usize::max);
        self.taps = taps;
        self.starts.clear();
        self.weights.clear();
        self.weights.resize(n * taps, 0);
        self.curve.resize(taps, 0.0);
        for place in 0..n {
            let (center, Range { start: first, end }) = touched(place);
            let curve = &mut self.curve[..end.saturating_sub(first)];
            let mut sum = 0.0;
            for (offset, weight) in curve.iter_mut().enumerate() {
                *weight = (filter.curve)(((offset + first) as f64 - center + 0.5) * inverse);
                sum += *weight;
            }
            let start = first.min(source - taps);
            let slots = &mut self.weights[place * taps + (first - start)..];
            for (slot, weight) in slots.iter_mut().zip(curve.iter()) {
                let weight = if sum != 0.0 { weight / sum } else { *weight };
                let scaled = weight * f64::from(1 << WEIGHT_BITS);
                *slot = if weight < 0.0 { scaled - 0.5 } else { scaled + 0.5 } as i32;
            }
            self.starts.push(start);
        }
    }
}
