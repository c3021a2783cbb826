//! PNG, by the `png` crate, a row at a time.

use std::io::{Cursor, ErrorKind};

use png::{BitDepth, ColorType, Decoder, DecodingError, Transformations};

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::{Buffers, Format, Limits, Raster, sized};

/// Metadata and compressed text may take this much, beside the rows.
const METADATA_BYTES: usize = 64 << 20;

pub(super) fn decode(bytes: &[u8], limits: Limits, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    // The size stands at a fixed place, and is looked at before the crate sees the file.
    let header = bytes.get(16..24).ok_or_else(|| DecodeError::truncated(Format::Png, "the header is cut"))?;
    let (width, height) = (be32(&header[..4]), be32(&header[4..]));
    limits.check(Format::Png, width, height)?;

    let mut decoder = Decoder::new(Cursor::new(bytes));
    // As Pillow: the checks of the image data are left to the decompressor's own.
    decoder.ignore_checksums(true);
    decoder.set_ignore_text_chunk(false);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::IDENTITY);
    let row_bytes = width as usize * 8 + 1;
    decoder.set_limits(png::Limits { bytes: METADATA_BYTES + row_bytes * 4 });
    let mut reader = decoder.read_info().map_err(refusal)?;
    let info = reader.info();
    if (info.width, info.height) != (width, height) {
        return Err(DecodeError::corrupt(Format::Png, "the header is not the first chunk"));
    }
    let layout = Layout { color: info.color_type, depth: info.bit_depth, palette: palette(info.palette.as_deref()) };

    let raster = sized(&mut buffers.raster, width as usize * height as usize * 3);
    let rows = raster.chunks_exact_mut(width as usize * 3);
    if info.interlaced {
        let too_large = || DecodeError::TooLarge { width, height, max_pixels: limits.max_pixels };
        let len = reader.output_buffer_size().ok_or_else(too_large)?;
        let samples = sized(&mut buffers.samples, len);
        let frame = reader.next_frame(samples).map_err(refusal)?;
        for (row, out) in samples.chunks_exact(frame.line_size).zip(rows) {
            layout.to_rgb(row, out);
        }
    } else {
        for out in rows {
            match reader.next_row().map_err(refusal)? {
                Some(row) => layout.to_rgb(row.data(), out),
                None => return Err(DecodeError::truncated(Format::Png, "rows are missing")),
            }
        }
    }
    let orientation = orientation(reader.info());
    Ok(Raster { width, height, format: Format::Png, orientation })
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// How samples lie in a row.
struct Layout {
    color: ColorType,
    depth: BitDepth,
    palette: [[u8; 3]; 256],
}

impl Layout {
    fn to_rgb(&self, row: &[u8], out: &mut [u8]) {
        let pixels = out.chunks_exact_mut(3);
        match (self.color, self.depth) {
            (ColorType::Rgb, BitDepth::Sixteen) => {
                pixels.zip(row.chunks_exact(6)).for_each(|(rgb, p)| rgb.copy_from_slice(&[p[0], p[2], p[4]]));
            }
            (ColorType::Rgb, _) => pixels.zip(row.chunks_exact(3)).for_each(|(rgb, p)| rgb.copy_from_slice(p)),
            (ColorType::Rgba, BitDepth::Sixteen) => {
                pixels.zip(row.chunks_exact(8)).for_each(|(rgb, p)| rgb.copy_from_slice(&[p[0], p[2], p[4]]));
            }
            (ColorType::Rgba, _) => pixels.zip(row.chunks_exact(4)).for_each(|(rgb, p)| rgb.copy_from_slice(&p[..3])),
            (ColorType::GrayscaleAlpha, BitDepth::Sixteen) => {
                pixels.zip(row.chunks_exact(4)).for_each(|(rgb, p)| rgb.fill(p[0]));
            }
            (ColorType::GrayscaleAlpha, _) => pixels.zip(row.chunks_exact(2)).for_each(|(rgb, p)| rgb.fill(p[0])),
            (ColorType::Grayscale, BitDepth::Sixteen) => {
                // Clipped, not scaled: Pillow keeps the 16 bits as an integer and cuts it at 255.
                pixels.zip(row.chunks_exact(2)).for_each(|(rgb, p)| rgb.fill(if p[0] == 0 { p[1] } else { 255 }));
            }
            (ColorType::Grayscale, depth) => {
                let scale = 255 / ((1u16 << depth as u8) - 1) as u8;
                pixels.enumerate().for_each(|(x, rgb)| rgb.fill(packed(row, depth, x) * scale));
            }
            (ColorType::Indexed, depth) => pixels
                .enumerate()
                .for_each(|(x, rgb)| rgb.copy_from_slice(&self.palette[usize::from(packed(row, depth, x))])),
        }
    }
}

/// Sample `x` of a row in which a byte holds 8, 4, 2 or 1 of them, the first in the high bits.
fn packed(row: &[u8], depth: BitDepth, x: usize) -> u8 {
    let bits = depth as usize;
    let bit = x * bits;
    let byte = row.get(bit / 8).copied().unwrap_or(0);
    if bits >= 8 {
        return byte;
    }
    (byte >> (8 - bits - bit % 8)) & ((1 << bits) - 1)
}

/// Entries beyond the file's palette are greys, as in Pillow.
fn palette(entries: Option<&[u8]>) -> [[u8; 3]; 256] {
    let mut palette: [[u8; 3]; 256] = std::array::from_fn(|n| [n as u8; 3]);
    for (slot, entry) in palette.iter_mut().zip(entries.unwrap_or(&[]).chunks_exact(3)) {
        slot.copy_from_slice(entry);
    }
    palette
}

fn orientation(info: &png::Info<'_>) -> Orientation {
    let xmp = info.utf8_text.iter().find(|chunk| chunk.keyword == "XML:com.adobe.xmp");
    let xmp = xmp.and_then(|chunk| chunk.get_text().ok());
    Orientation::from_metadata(info.exif_metadata.as_deref(), xmp.as_deref().map(str::as_bytes))
}

fn refusal(error: DecodingError) -> DecodeError {
    match error {
        DecodingError::IoError(io) if io.kind() == ErrorKind::UnexpectedEof => {
            DecodeError::truncated(Format::Png, "rows are missing")
        }
        DecodingError::LimitsExceeded => DecodeError::corrupt(Format::Png, "its metadata are too large"),
        other => DecodeError::corrupt(Format::Png, other.to_string()),
    }
}
