//! From a file's bytes to RGB.
//!
//! The format is told by content, never by name. What comes out is what Pillow's `convert("RGB")` makes of the first frame:
//! alpha is dropped, palettes are looked up, 16-bit grey is clipped and 16-bit colour halved, unless [`Colours`] say otherwise.
//! The size is checked against [`Limits`] from the header, before any memory for pixels is taken, and metadata that are broken or
//! too large cost the orientation and not the picture.

mod bmp;
mod bmp_rle;
mod format;
mod gif;
mod jpeg;
mod png;
mod png_chunks;
mod tiff;
mod tiff_codec;
mod tiff_layout;
mod tiff_samples;
mod webp;

use std::ops::Range;

use super::colours::Colours;
use super::error::DecodeError;
use super::orientation::Orientation;

pub use format::Format;
pub use jpeg::{Scale, Scaling};

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// What it may cost.
    pub limits: Limits,
    /// How its colours become RGB.
    pub colours: Colours,
    /// How much smaller than it is stored a JPEG is decoded. Other formats are decoded whole; limits count stored pixels.
    pub scaling: Scaling,
}

/// Of full size, with colours as Pillow has them.
impl From<Limits> for Reading {
    fn from(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }
}

/// What a file may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pictures of more pixels are refused by their header.
    pub max_pixels: u64,
}

impl Limits {
    /// The number of pixels from which Pillow refuses a picture as a decompression bomb.
    pub const DEFAULT_MAX_PIXELS: u64 = 178_956_970;

    /// Refuses a picture that is too large, or that has no pixels.
    pub(crate) fn check(&self, format: Format, width: u32, height: u32) -> Result<(), DecodeError> {
        if width == 0 || height == 0 {
            return Err(DecodeError::corrupt(format, format!("its size is {width}×{height}")));
        }
        // The second test keeps three bytes a pixel within the address space, whatever limit was set.
        let pixels = u64::from(width) * u64::from(height);
        if pixels > self.max_pixels || pixels > (isize::MAX as u64) / 8 {
            return Err(DecodeError::TooLarge { width, height, max_pixels: self.max_pixels });
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_pixels: Self::DEFAULT_MAX_PIXELS }
    }
}

/// A decoded picture, upright.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Red, green, blue, row by row, without padding.
    pub pixels: Vec<u8>,
    /// Columns, after [`Decoded::orientation`] was applied.
    pub width: u32,
    /// Rows, after [`Decoded::orientation`] was applied.
    pub height: u32,
    /// What the bytes were.
    pub format: Format,
    /// How the stored picture was turned to get this one.
    pub orientation: Orientation,
}

/// Decodes a picture and sets it upright.
///
/// The pipeline uses [`decode_into`](super::pixels::decode_into), which reuses memory; this is the plain way.
///
/// # Errors
/// [`DecodeError`], for everything that is no whole picture of a known format within the limits.
pub fn decode(bytes: &[u8], reading: impl Into<Reading>) -> Result<Decoded, DecodeError> {
    let mut buffers = Buffers::default();
    let raster = decode_raster(bytes, reading.into(), &Raster::all, &mut buffers)?;
    let mut pixels = buffers.raster;
    pixels.truncate(raster.len());
    let (width, height) = raster.orientation.size(raster.width, raster.height);
    if raster.orientation != Orientation::Upright {
        let mut upright = vec![0; pixels.len()];
        raster.orientation.apply(&pixels, raster.width as usize, raster.height as usize, &mut upright);
        pixels = upright;
    }
    Ok(Decoded { pixels, width, height, format: raster.format, orientation: raster.orientation })
}

/// The picture as it is stored in the file; its pixels are in [`Buffers::raster`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Raster {
    pub(super) width: u32,
    pub(super) height: u32,
    /// The size that the file has, which is another one if it was decoded at a scale.
    pub(super) stored: [u32; 2],
    /// How many columns and rows of the raster the file's own fill: the last ones may reach beyond its edge.
    pub(super) covers: [f64; 2],
    pub(super) format: Format,
    pub(super) orientation: Orientation,
}

impl Raster {
    /// A picture of the size that it is stored with.
    pub(super) fn whole(size: [u32; 2], format: Format, orientation: Orientation) -> Self {
        let [width, height] = size;
        Self { width, height, stored: size, covers: size.map(f64::from), format, orientation }
    }

    /// All columns and rows.
    pub(super) fn all(&self) -> [Range<usize>; 2] {
        [0..self.width as usize, 0..self.height as usize]
    }

    /// Bytes of the RGB raster.
    pub(super) fn len(&self) -> usize {
        self.width as usize * self.height as usize * 3
    }
}

/// Says of a picture whose size is known by now which columns and rows of its raster will be looked at. All others may be left as
/// they are.
pub(super) type Wanted<'a> = &'a dyn Fn(&Raster) -> [Range<usize>; 2];

/// Memory that outlives a picture. Freshly mapped pages cost more than decoding into them, so these only grow.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// The RGB raster: what decoding is for.
    pub(super) raster: Vec<u8>,
    /// Samples before they are RGB.
    pub(super) samples: Vec<u8>,
    /// The file, cleaned of what a decoder should not see.
    pub(super) stream: Vec<u8>,
    /// What decoding JPEG needs.
    pub(super) jpeg: jpeg::Workspace,
}

/// The first `len` bytes of a buffer, grown if need be. What was in them is not cleared.
pub(super) fn sized(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// Decodes into [`Buffers::raster`], as stored, without turning it upright.
pub(super) fn decode_raster(
    bytes: &[u8],
    reading: Reading,
    wanted: Wanted<'_>,
    buffers: &mut Buffers,
) -> Result<Raster, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    match Format::of(bytes) {
        Some(Format::Jpeg) => jpeg::decode(bytes, reading, wanted, buffers),
        Some(Format::Png) => png::decode(bytes, reading, buffers),
        Some(Format::WebP) => webp::decode(bytes, reading, buffers),
        Some(Format::Gif) => gif::decode(bytes, reading, buffers),
        Some(Format::Bmp) => bmp::decode(bytes, reading, buffers),
        Some(Format::Tiff) => tiff::decode(bytes, reading, buffers),
        None => match Format::cut_short(bytes) {
            Some(format) => Err(DecodeError::truncated(format, format!("it is {} bytes long", bytes.len()))),
            None => Err(format::unknown(bytes)),
        },
    }
}
