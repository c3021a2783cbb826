//! From a file's bytes to RGB.
//!
//! The format is told by content, never by name. What comes out is what Pillow's `convert("RGB")` makes of the first frame:
//! alpha is dropped, palettes are looked up, 16-bit grey is clipped and 16-bit colour halved. The size is checked against
//! [`Limits`] from the header, before any memory for pixels is taken.

mod bmp;
mod bmp_rle;
mod gif;
mod jpeg;
mod png;
mod webp;

use std::fmt;

use super::error::DecodeError;
use super::orientation::Orientation;

/// The picture formats that are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG: baseline and progressive, Huffman-coded, 8 bits.
    Jpeg,
    /// PNG; of an animated one the default image.
    Png,
    /// WebP, lossy or lossless; of an animated one the first frame.
    WebP,
    /// GIF; of an animated one the first frame.
    Gif,
    /// Windows and OS/2 bitmaps.
    Bmp,
}

impl Format {
    /// The name in lower case, as it stands in the column `format`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Png => "png",
            Self::WebP => "webp",
            Self::Gif => "gif",
            Self::Bmp => "bmp",
        }
    }

    /// Tells the format by the first bytes.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\xff\xd8\xff") {
            return Some(Self::Jpeg);
        }
        if bytes.starts_with(PNG_MAGIC) {
            return Some(Self::Png);
        }
        if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return Some(Self::WebP);
        }
        if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            return Some(Self::Gif);
        }
        if bytes.starts_with(b"BM") && bytes.len() > 2 {
            return Some(Self::Bmp);
        }
        None
    }

    /// The format of which these few bytes are the whole beginning: a file cut within its first dozen bytes.
    fn cut_short(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < 2 || bytes.len() > 11 {
            return None;
        }
        let begins = |magic: &[u8]| magic.starts_with(&bytes[..bytes.len().min(magic.len())]);
        if begins(b"\xff\xd8\xff") {
            return Some(Self::Jpeg);
        }
        if begins(PNG_MAGIC) {
            return Some(Self::Png);
        }
        if begins(b"GIF87a") || begins(b"GIF89a") {
            return Some(Self::Gif);
        }
        if begins(b"RIFF") {
            return Some(Self::WebP);
        }
        begins(b"BM").then_some(Self::Bmp)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
            Self::Gif => "GIF",
            Self::Bmp => "BMP",
        })
    }
}

const PNG_MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";

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
pub fn decode(bytes: &[u8], limits: Limits) -> Result<Decoded, DecodeError> {
    let mut buffers = Buffers::default();
    let raster = decode_raster(bytes, limits, &mut buffers)?;
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
    pub(super) format: Format,
    pub(super) orientation: Orientation,
}

impl Raster {
    /// Bytes of the RGB raster.
    pub(super) fn len(&self) -> usize {
        self.width as usize * self.height as usize * 3
    }
}

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
pub(super) fn decode_raster(bytes: &[u8], limits: Limits, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    match Format::of(bytes) {
        Some(Format::Jpeg) => jpeg::decode(bytes, limits, buffers),
        Some(Format::Png) => png::decode(bytes, limits, buffers),
        Some(Format::WebP) => webp::decode(bytes, limits, buffers),
        Some(Format::Gif) => gif::decode(bytes, limits, buffers),
        Some(Format::Bmp) => bmp::decode(bytes, limits, buffers),
        None => match Format::cut_short(bytes) {
            Some(format) => Err(DecodeError::truncated(format, format!("it is {} bytes long", bytes.len()))),
            None => Err(unknown(bytes)),
        },
    }
}

/// Says what the bytes look like, because a name ending in `.jpg` had promised otherwise.
fn unknown(bytes: &[u8]) -> DecodeError {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"II*\0", "a TIFF file"),
        (b"MM\0*", "a TIFF file"),
        (b"%PDF", "a PDF file"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"\xff\x0a", "a JPEG XL file"),
        (b"\0\0\0\x0cJXL ", "a JPEG XL file"),
        (b"\0\0\0\x0cjP  ", "a JPEG 2000 file"),
        (b"8BPS", "a Photoshop file"),
        (b"\0\0\x01\0", "a Windows icon"),
    ];
    let what = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| *name);
    let what = what.or_else(|| match bytes.get(4..12) {
        Some(b"ftypavif" | b"ftypavis") => Some("an AVIF file"),
        Some(b"ftypheic" | b"ftypheix" | b"ftypmif1") => Some("a HEIF file"),
        _ => None,
    });
    let head = &bytes[..bytes.len().min(256)];
    let text = head.iter().all(|&byte| byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c));
    let lower: Vec<u8> = head.iter().map(u8::to_ascii_lowercase).collect();
    let html = [&b"<!doctype html"[..], b"<html"].iter().any(|tag| lower.windows(tag.len()).any(|part| part == *tag));
    let what = what.unwrap_or(match (text, html) {
        (_, true) => "an HTML page",
        (true, false) => "text",
        (false, false) => "of no known format",
    });
    DecodeError::unsupported(format!("the data are {what}, and not a JPEG, PNG, WebP, GIF or BMP picture"))
}
