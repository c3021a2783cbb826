//! PNG, by the `png` crate, a row at a time.

use std::io::{Cursor, ErrorKind};

use png::{
    BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, InterlaceInfo, Transformations, expand_interlaced_row,
};

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::{Buffers, Format, Limits, PNG_MAGIC, Raster, sized};

/// Metadata and compressed text may take this much, beside the rows.
const METADATA_BYTES: usize = 64 << 20;

pub(super) fn decode(bytes: &[u8], limits: Limits, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    // The size stands at a fixed place, and is looked at before the crate sees the file.
    let header = bytes.get(16..24).ok_or_else(|| DecodeError::truncated(Format::Png, "the header is cut"))?;
    let (width, height) = (be32(&header[..4]), be32(&header[4..]));
    limits.check(Format::Png, width, height)?;

    check_header_sum(bytes)?;
    let mut options = DecodeOptions::default();
    // The image data carry the decompressor's own checksum, which is checked; that of their chunks is not, as in Pillow, and
    // that of metadata must not cost the picture.
    options.set_ignore_crc(true);
    options.set_ignore_adler32(false);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
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
    check_tail(bytes)?;
    let orientation = orientation(reader.info());
    Ok(Raster { width, height, format: Format::Png, orientation })
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

/// A chunk of metadata that is cut betrays a file that is cut, even if the rows are all there. A missing end does no harm.
fn check_tail(bytes: &[u8]) -> Result<(), DecodeError> {
    let mut at = PNG_MAGIC.len();
    let mut image_data = false;
    while let Some(header) = bytes.get(at..at + 8) {
        let end = at + 8 + be32(&header[..4]) as usize;
        match &header[4..] {
            b"IEND" => break,
            // The next picture of an animation.
            b"fcTL" if image_data => break,
            b"IDAT" => image_data = true,
            _ if end > bytes.len() => {
                return Err(DecodeError::truncated(Format::Png, "a chunk is cut"));
            }
            _ => {}
        }
        at = end + 4;
    }
    Ok(())
}

fn orientation(info: &png::Info<'_>) -> Orientation {
    let profile = raw_profile(info);
    let exif = info.exif_metadata.as_deref().or(profile.as_deref());
    let xmp = info.utf8_text.iter().find(|chunk| chunk.keyword == "XML:com.adobe.xmp");
    let xmp = xmp.and_then(|chunk| chunk.get_text().ok());
    Orientation::from_metadata(exif, xmp.as_deref().map(str::as_bytes))
}

/// ImageMagick's way of keeping EXIF: text of a name, a length and then hexadecimal digits.
fn raw_profile(info: &png::Info<'_>) -> Option<Vec<u8>> {
    const KEYWORD: &str = "Raw profile type exif";
    let compressed = info.compressed_latin1_text.iter().find(|chunk| chunk.keyword == KEYWORD);
    let plain = info.uncompressed_latin1_text.iter().find(|chunk| chunk.keyword == KEYWORD);
    let text = match (compressed, plain) {
        (Some(chunk), _) => chunk.get_text().ok()?,
        (None, chunk) => chunk?.text.clone(),
    };
    let digits: Vec<u8> =
        text.lines().skip(3).flat_map(str::chars).filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
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
