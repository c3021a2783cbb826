//! From a file's bytes to the pixels that a model gets, in one go over reused memory.

use std::cell::RefCell;

use super::codec::{Buffers, Format, Raster, Reading, decode_raster, sized};
use super::error::DecodeError;
use super::geometry::Geometry;
use super::orientation::Orientation;
use super::preprocess::Preprocess;
use super::resample::{ResampleBuffers, Target, Window, resample};

/// What the picture was, before it was resized and cropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Original {
    /// Columns of the upright picture.
    pub width: u32,
    /// Rows of the upright picture.
    pub height: u32,
    /// What the bytes were.
    pub format: Format,
    /// How the stored picture was turned.
    pub orientation: Orientation,
}

/// Memory that a thread keeps from picture to picture.
#[derive(Debug, Default)]
pub struct Scratch {
    buffers: Buffers,
    upright: Vec<u8>,
    resample: ResampleBuffers,
}

impl Scratch {
    /// A thread keeps this much; what one huge picture needed beyond it is given back.
    const KEPT_BYTES: usize = 64 << 20;

    fn give_back_excess(&mut self) {
        for buffer in [&mut self.buffers.raster, &mut self.buffers.samples, &mut self.buffers.stream, &mut self.upright]
        {
            if buffer.capacity() > Self::KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
        self.buffers.jpeg.give_back_excess(Self::KEPT_BYTES);
        self.resample.give_back_excess(Self::KEPT_BYTES);
    }
}

/// Lends the calling thread's own [`Scratch`].
pub fn with_scratch<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => work(&mut scratch),
        // Lent already, further up this thread's stack: rayon may run one row's work inside another's.
        Err(_) => work(&mut Scratch::default()),
    })
}

/// Decodes, sets upright, resizes and crops; the result is written once, into memory of the caller's.
///
/// `out` is called once, when height and width of the result are known, and gives that many RGB pixels of memory; whatever is in
/// it is overwritten. It is not called for input that turns out to be no picture.
///
/// # Errors
/// [`DecodeError`], for everything that is no whole picture of a known format within the limits. A result of more pixels than
/// the limit is refused too.
///
/// # Panics
/// If `out` gives memory of another size.
pub fn decode_into<'out>(
    bytes: &[u8],
    options: &Preprocess,
    reading: impl Into<Reading>,
    scratch: &mut Scratch,
    out: impl FnOnce(usize, usize) -> &'out mut [u8],
) -> Result<Original, DecodeError> {
    let result = decode_with(bytes, options, reading.into(), scratch, out);
    scratch.give_back_excess();
    result
}

fn decode_with<'out>(
    bytes: &[u8],
    options: &Preprocess,
    reading: Reading,
    scratch: &mut Scratch,
    out: impl FnOnce(usize, usize) -> &'out mut [u8],
) -> Result<Original, DecodeError> {
    let wanted = |raster: &Raster| {
        let (_, window) = plan(raster, options);
        let (width, height) = raster.orientation.size(raster.width, raster.height);
        raster.orientation.stored([raster.width, raster.height], window.reach([width, height], options.interpolation))
    };
    let raster = decode_raster(bytes, reading, &wanted, &mut scratch.buffers)?;
    let (geometry, window) = plan(&raster, options);
    let [out_width, out_height] = geometry.out.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    reading.limits.check(raster.format, out_width, out_height)?;

    let stored = &scratch.buffers.raster[..raster.len()];
    let upright = if raster.orientation == Orientation::Upright {
        stored
    } else {
        let upright = sized(&mut scratch.upright, stored.len());
        let size = [raster.width, raster.height].map(|side| side as usize);
        raster.orientation.apply_part(stored, size, wanted(&raster), upright);
        upright
    };

    let row_bytes = out_width as usize * 3;
    let pixels = out(out_height as usize, out_width as usize);
    assert_eq!(pixels.len(), row_bytes * out_height as usize, "the memory for the pixels has the wrong size");
    geometry.fill_edges(pixels);
    let [left, top] = geometry.place.map(|place| place as usize);
    let target = Target { bytes: &mut pixels[top * row_bytes + left * 3..], stride: row_bytes };
    let size = raster.orientation.size(raster.width, raster.height);
    resample(upright, size.into(), window, options.interpolation, &mut scratch.resample, target);
    let (width, height) = raster.orientation.size(raster.stored[0], raster.stored[1]);
    Ok(Original { width, height, format: raster.format, orientation: raster.orientation })
}

/// What is made of a picture, and of which part of its raster.
fn plan(raster: &Raster, options: &Preprocess) -> (Geometry, Window) {
    let (width, height) = raster.orientation.size(raster.stored[0], raster.stored[1]);
    let geometry = Geometry::of(width, height, options);
    let from = raster.orientation.spans([raster.width, raster.height], raster.covers);
    (geometry, Window { from, resized: geometry.resized, origin: geometry.origin, size: geometry.kept })
}
