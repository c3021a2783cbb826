//! PNG, by the `png` crate, a row at a time.

use std::io::{Cursor, ErrorKind};

use png::{
    BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, InterlaceInfo, Transformations, expand_interlaced_row,
};

use super::super::colours::{Alpha, Colours};
use super::super::error::DecodeError;
use super::{Buffers, Format, Raster, Reading, png_chunks, sized};

pub(super) const PNG_MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Metadata may take this much, beside the rows. Texts and colour profiles are not read at all.
const METADATA_BYTES: usize = 64 << 20;

pub(super) fn decode(bytes: &[u8], reading: Reading, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    // The size stands at a fixed place, and is looked at before the crate sees the file.
    let header = bytes.get(16..24).ok_or_else(|| DecodeError::truncated(Format::Png, "the header is cut"))?;
    let (width, height) = (be32(&header[..4]), be32(&header[4..]));
    reading.limits.check(Format::Png, width, height)?;

    check_header_sum(bytes)?;
    let mut options = DecodeOptions::default();
    // The image data carry the decompressor's own checksum, which is checked; that of their chunks is not, as in Pillow, and
    // that of metadata must not cost the picture.
    options.set_ignore_crc(true);
    options.set_ignore_adler32(false);
    options.set_ignore_iccp_chunk(true);
    options.set_ignore_text_chunk(true);
    let mut cursor = Cursor::new(bytes);
    let mut decoder = Decoder::new_with_options(&mut cursor, options);
    decoder.set_transformations(Transformations::IDENTITY);
    let row_bytes = width as usize * 8 + 1;
    decoder.set_limits(png::Limits { bytes: METADATA_BYTES + row_bytes * 4 });
    let mut reader = decoder.read_info().map_err(refusal)?;
    let info = reader.info();
    if (info.width, info.height) != (width, height) {
        return Err(DecodeError::corrupt(Format::Png, "the header is not the first chunk"));
    }
    let layout = Layout::of(info, reading.colours);
    let bits = layout.color.samples() as u64 * layout.depth as u64;
    png_chunks::check_amount(bytes, (u64::from(width) * bits).div_ceil(8) * u64::from(height))?;

    let raster = sized(&mut buffers.raster, width as usize * height as usize * 3);
    let rows = raster.chunks_exact_mut(width as usize * 3);
    if info.interlaced {
        // Not `next_frame`: it also wants what stands behind the last row.
        let samples_per_pixel = layout.color.samples();
        let pixel_bits = samples_per_pixel as u8 * layout.depth as u8;
        let stride = (width as usize * usize::from(pixel_bits)).div_ceil(8);
        let samples = sized(&mut buffers.samples, stride * height as usize);
        // Samples of less than a byte are put in by "or", and the memory still has the picture before in it.
        samples.fill(0);
        let n_rows = (0..7).map(|pass| pass_rows(width, height, pass)).sum::<u32>();
        for _ in 0..n_rows {
            let row = reader.next_interlaced_row().map_err(refusal)?;
            let row = row.ok_or_else(|| DecodeError::truncated(Format::Png, "rows are missing"))?;
            if let InterlaceInfo::Adam7(place) = row.interlace() {
                expand_interlaced_row(samples, stride, row.data(), place, pixel_bits);
            }
        }
        for (row, out) in samples.chunks_exact(stride).zip(rows) {
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
    drop(reader);
    png_chunks::check_tail(bytes, cursor.position() as usize)?;
    Ok(Raster::whole([width, height], Format::Png, png_chunks::orientation(bytes)))
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// The rows of one of the seven passes of an interlaced picture.
fn pass_rows(width: u32, height: u32, pass: usize) -> u32 {
    const LEFT_TOP_STEP: [(u32, u32, u32); 7] =
        [(0, 0, 8), (4, 0, 8), (0, 4, 8), (2, 0, 4), (0, 2, 4), (1, 0, 2), (0, 1, 2)];
    let (left, top, step) = LEFT_TOP_STEP[pass];
    if width <= left { 0 } else { height.saturating_sub(top).div_ceil(step) }
}

/// How samples lie in a row, and what becomes of them.
struct Layout {
    color: ColorType,
    depth: BitDepth,
    colours: Colours,
    /// What each of the samples of up to eight bits becomes, of palettes and greys.
    table: [[u8; 3]; 256],
    /// The colour that is transparent.
    key: Option<[u8; 3]>,
}

impl Layout {
    fn of(info: &png::Info<'_>, colours: Colours) -> Self {
        let (color, depth) = (info.color_type, info.bit_depth);
        let transparency = info.trns.as_deref().unwrap_or(&[]);
        let key = key(color, depth, transparency).filter(|_| colours.alpha != Alpha::Drop);
        let mut table = match color {
            ColorType::Indexed => palette(info.palette.as_deref()),
            _ => greys(depth),
        };
        if color == ColorType::Indexed {
            for (entry, &opacity) in table.iter_mut().zip(transparency) {
                *entry = colours.alpha.apply(*entry, opacity);
            }
        } else if let Some(key) = key {
            table.iter_mut().filter(|grey| **grey == key).for_each(|grey| *grey = colours.alpha.apply(*grey, 0));
        }
        Self { color, depth, colours, table, key }
    }

    fn to_rgb(&self, row: &[u8], out: &mut [u8]) {
        let pixels = out.chunks_exact_mut(3);
        let alpha = self.colours.alpha;
        match (self.color, self.depth) {
            (ColorType::Rgb, BitDepth::Sixteen) => {
                pixels
                    .zip(row.chunks_exact(6))
                    .for_each(|(rgb, p)| rgb.copy_from_slice(&self.keyed([p[0], p[2], p[4]])));
            }
            (ColorType::Rgb, _) if self.key.is_none() => out.copy_from_slice(&row[..out.len()]),
            (ColorType::Rgb, _) => {
                pixels
                    .zip(row.chunks_exact(3))
                    .for_each(|(rgb, p)| rgb.copy_from_slice(&self.keyed([p[0], p[1], p[2]])));
            }
            (ColorType::Rgba, BitDepth::Sixteen) => pixels
                .zip(row.chunks_exact(8))
                .for_each(|(rgb, p)| rgb.copy_from_slice(&alpha.apply([p[0], p[2], p[4]], p[6]))),
            (ColorType::Rgba, _) => alpha.apply_all(row, out),
            (ColorType::GrayscaleAlpha, BitDepth::Sixteen) => {
                pixels.zip(row.chunks_exact(4)).for_each(|(rgb, p)| rgb.copy_from_slice(&alpha.apply([p[0]; 3], p[2])))
            }
            (ColorType::GrayscaleAlpha, _) => {
                pixels.zip(row.chunks_exact(2)).for_each(|(rgb, p)| rgb.copy_from_slice(&alpha.apply([p[0]; 3], p[1])))
            }
            (ColorType::Grayscale, BitDepth::Sixteen) => pixels.zip(row.chunks_exact(2)).for_each(|(rgb, p)| {
                let grey = self.colours.grey16.apply(u32::from(p[0]) << 8 | u32::from(p[1]), 16);
                rgb.copy_from_slice(&self.keyed([grey; 3]));
            }),
            (ColorType::Grayscale | ColorType::Indexed, depth) => pixels
                .enumerate()
                .for_each(|(x, rgb)| rgb.copy_from_slice(&self.table[usize::from(packed(row, depth, x))])),
        }
    }

    fn keyed(&self, rgb: [u8; 3]) -> [u8; 3] {
        if self.key == Some(rgb) { self.colours.alpha.apply(rgb, 0) } else { rgb }
    }
}

/// The transparent colour of a picture without alpha and without palette. `transparency` comes with one byte a sample, or two
/// where samples have 16 bits.
///
/// As in Pillow, which compares the low eight bits of the key with what the picture has become. For depths of one and eight that
/// is what the standard says.
fn key(color: ColorType, depth: BitDepth, transparency: &[u8]) -> Option<[u8; 3]> {
    match (color, transparency) {
        (ColorType::Grayscale, [grey]) if depth == BitDepth::One => Some([if *grey == 0 { 0 } else { 255 }; 3]),
        (ColorType::Grayscale, [grey] | [_, grey]) => Some([*grey; 3]),
        (ColorType::Rgb, [r, g, b] | [_, r, _, g, _, b]) => Some([*r, *g, *b]),
        _ => None,
    }
}

fn greys(depth: BitDepth) -> [[u8; 3]; 256] {
    let scale = if (depth as usize) < 8 { 255 / ((1u16 << depth as u16) - 1) as u8 } else { 1 };
    std::array::from_fn(|n| [(n as u8).wrapping_mul(scale); 3])
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

/// Entries beyond the file's palette are black, as in Pillow.
fn palette(entries: Option<&[u8]>) -> [[u8; 3]; 256] {
    let mut palette = [[0; 3]; 256];
    for (slot, entry) in palette.iter_mut().zip(entries.unwrap_or(&[]).chunks_exact(3)) {
        slot.copy_from_slice(entry);
    }
    palette
}

/// The header decides everything, so its checksum counts.
fn check_header_sum(bytes: &[u8]) -> Result<(), DecodeError> {
    let cut = || DecodeError::truncated(Format::Png, "the header is cut");
    let header = bytes.get(12..29).ok_or_else(cut)?;
    let stated = be32(bytes.get(29..33).ok_or_else(cut)?);
    let mut sum = u32::MAX;
    for &byte in header {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    if !sum != stated {
        return Err(DecodeError::corrupt(Format::Png, "the checksum of its header is wrong"));
    }
    Ok(())
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
