//! JPEG: baseline, extended and progressive, Huffman-coded or arithmetic-coded, 8 bits a sample.
//!
//! Promises: the RGB that libjpeg-turbo gives Pillow, bit for bit, for every file of these kinds that is whole. A file that is cut,
//! or whose scans end early, is truncated; one whose scans break the code is damaged. Both are refused: libjpeg fills what is
//! missing with grey and only warns, and a model's answer to a half-grey picture helps nobody. The end marker must be there, as
//! for Pillow. Metadata never cost the picture, nor do bytes between segments or behind the end.
//!
//! A picture whose first scan has all components is decoded row by row in small memory; others need all coefficients at once.
//!
//! Pixels are made of the part that is wanted alone, which is what a crop keeps and what its resizing weighs. All of the codes are
//! still read, so what is refused does not depend on the crop.

mod arithmetic;
mod arithmetic_blocks;
mod bits;
mod coefficients;
mod colour;
mod decoder;
mod frame;
mod header;
mod huffman;
mod idct;
#[cfg(target_arch = "x86_64")]
mod idct_avx2;
mod idct_reduced;
mod kernel;
mod part;
mod planes;
mod progressive;
mod scale;
mod scan;
mod segments;
mod sequential;
mod standard_codes;
mod tables;
mod upsample;

use std::ops::Range;

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::{Buffers, Format, Raster, Reading, Wanted, sized};
use coefficients::Coefficients;
use decoder::{Decoder, ReadyCodes};
use frame::{Coding, MAX_COMPONENTS};
use header::Header;
use part::Part;
use planes::{PlaneBuffers, Planes};
pub use scale::{Scale, Scaling};
use scan::Scan;
use segments::Segments;
use tables::Tables;

/// Memory that outlives a picture.
#[derive(Debug, Default)]
pub(in super::super) struct Workspace {
    planes: PlaneBuffers,
    coefficients: [Vec<i16>; MAX_COMPONENTS],
    codes: ReadyCodes,
}

impl Workspace {
    /// Gives back each piece of memory that is larger than `kept_bytes`.
    pub(in super::super) fn give_back_excess(&mut self, kept_bytes: usize) {
        for buffer in self.planes.all().filter(|buffer| buffer.capacity() > kept_bytes) {
            *buffer = Vec::new();
        }
        for buffer in self.coefficients.iter_mut().filter(|buffer| buffer.capacity() > kept_bytes / 2) {
            *buffer = Vec::new();
        }
    }
}

/// Decodes into the raster of `buffers`. The limits are those of the picture as it is stored, whatever the scale.
pub(super) fn decode(
    bytes: &[u8],
    reading: Reading,
    wanted: Wanted<'_>,
    buffers: &mut Buffers,
) -> Result<Raster, DecodeError> {
    let mut segments = Segments::new(bytes);
    let mut tables = Tables::default();
    let header = Header::read(&mut segments, &mut tables)?;
    let mut frame = header.frame;
    reading.limits.check(Format::Jpeg, frame.width as u32, frame.height as u32)?;
    // Before memory is taken for what cannot be there. Arithmetic coding spends less than a bit on the probable.
    if !frame.arithmetic && frame.least_bits() > bytes.len() * 8 {
        return Err(truncated("it has fewer bits than blocks"));
    }
    let block = |range: &Option<Range<usize>>| range.clone().and_then(|range| bytes.get(range));
    let orientation = Orientation::from_metadata(block(&header.exif), block(&header.xmp));
    let stored = [frame.width as u32, frame.height as u32];
    let (width, height) = orientation.size(stored[0], stored[1]);
    let scale = reading.scaling.of(width, height);
    frame.scale_to(scale);
    let size = [frame.scaled_width as u32, frame.scaled_height as u32];
    let covers = stored.map(|side| f64::from(side) / f64::from(scale.denominator()));
    let told = Raster { stored, covers, ..Raster::whole(size, Format::Jpeg, orientation) };
    let raster = sized(&mut buffers.raster, frame.scaled_width * frame.scaled_height * 3);
    let Workspace { planes, coefficients, codes } = &mut buffers.jpeg;
    let planes = Planes::new(planes, &frame, header.model, Part::of(&frame, wanted(&told)));
    let scan = Scan::read(&bytes[header.first_scan.clone()], &frame)?;
    let decoder = Decoder { segments, tables, frame: &frame, codes };
    if frame.coding == Coding::Sequential && scan.components().len() == frame.components().len() {
        decoder.run_at_once(&scan, planes, raster)?;
    } else {
        decoder.run_scans(scan, Coefficients::new(coefficients, &frame), planes, raster)?;
    }
    Ok(told)
}

fn truncated(what: impl Into<String>) -> DecodeError {
    DecodeError::truncated(Format::Jpeg, what)
}

fn corrupt(reason: impl Into<String>) -> DecodeError {
    DecodeError::corrupt(Format::Jpeg, reason)
}
