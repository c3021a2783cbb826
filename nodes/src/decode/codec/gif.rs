//! GIF, by the `gif` crate: the first frame on its canvas.

use std::io::ErrorKind;
use std::num::NonZeroU64;

use gif::{ColorOutput, DecodeOptions, DecodingError, MemoryLimit};

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::{Buffers, Format, Raster, Reading, sized};

pub(super) fn decode(bytes: &[u8], reading: Reading, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    let limits = reading.limits;
    let cut = || DecodeError::truncated(Format::Gif, "its frame is cut");
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.allow_unknown_blocks(true);
    if let Some(most) = NonZeroU64::new(limits.max_pixels.saturating_mul(4)) {
        options.set_memory_limit(MemoryLimit::Bytes(most));
    }
    // The frame must be whole; whether anything follows it does not matter.
    let (end, has_palette) = first_frame(bytes).ok_or_else(cut)?;
    let stream = &mut buffers.stream;
    stream.clear();
    if has_palette {
        stream.extend_from_slice(&bytes[..end]);
    } else {
        // Without any palette the indices are greys; the crate would refuse.
        stream.extend_from_slice(&bytes[..10]);
        stream.extend_from_slice(&[bytes[10] | 0x87, bytes[11], bytes[12]]);
        stream.extend((0..=255).flat_map(|grey| [grey; 3]));
        stream.extend_from_slice(&bytes[13..end]);
    }
    stream.extend_from_slice(b"\0;");
    let mut decoder = options.read_info(&buffers.stream[..]).map_err(refusal)?;
    let screen = (u32::from(decoder.width()), u32::from(decoder.height()));
    let frame = decoder.next_frame_info().map_err(refusal)?;
    let frame = frame.ok_or_else(|| DecodeError::truncated(Format::Gif, "it has no frame"))?;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (frame_width, frame_height) = (usize::from(frame.width), usize::from(frame.height));
    let transparent = frame.transparent;
    // A frame that leaves its screen widens it.
    let width = screen.0.max((left + frame_width) as u32);
    let height = screen.1.max((top + frame_height) as u32);
    limits.check(Format::Gif, width, height)?;
    limits.check(Format::Gif, frame_width as u32, frame_height as u32)?;

    // A code of twelve bits, and fewer, stands for 4,096 pixels at most.
    let n_pixels = frame_width as u64 * frame_height as u64;
    if (buffers.stream.len() as u64).saturating_mul(4096) < n_pixels {
        return Err(DecodeError::truncated(
            Format::Gif,
            format!("{} bytes cannot hold {n_pixels} pixels", bytes.len()),
        ));
    }
    let mut palette = palette(decoder.palette().unwrap_or(&[]));
    if let Some(index) = transparent {
        let entry = &mut palette[usize::from(index)];
        *entry = reading.colours.alpha.apply(*entry, 0);
    }
    let indices = sized(&mut buffers.samples, frame_width * frame_height);
    if decoder.buffer_size() != indices.len() {
        return Err(DecodeError::corrupt(Format::Gif, "its frame changes size"));
    }
    decoder.read_into_buffer(indices).map_err(refusal)?;

    let width = width as usize;
    let raster = sized(&mut buffers.raster, width * height as usize * 3);
    if frame_width != width || frame_height != height as usize {
        let around = palette[usize::from(transparent.unwrap_or(0))];
        raster.chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&around));
    }
    for (row, out) in indices.chunks_exact(frame_width).zip(raster.chunks_exact_mut(width * 3).skip(top)) {
        for (&index, pixel) in row.iter().zip(out[left * 3..].chunks_exact_mut(3)) {
            pixel.copy_from_slice(&palette[usize::from(index)]);
        }
    }
    Ok(Raster::whole([width as u32, height], Format::Gif, Orientation::Upright))
}

/// Where the data of the first frame end, without the empty block that closes them; and whether it has a palette.
fn first_frame(bytes: &[u8]) -> Option<(usize, bool)> {
    let table_bytes = |flags: u8| {
        if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
    };
    let global = table_bytes(*bytes.get(10)?);
    let mut at = 13 + global;
    loop {
        match bytes.get(at)? {
            b',' => {
                let local = table_bytes(*bytes.get(at + 9)?);
                let end = blocks_end(bytes, at + 10 + local + 1)?;
                return Some((end, global + local > 0));
            }
            b'!' => at = blocks_end(bytes, at + 2)? + 1,
            b';' => return Some((at, true)),
            _ => at += 1,
        }
    }
}

/// Where a chain of blocks has its empty one, or the end of the data if that alone is missing.
fn blocks_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at) {
            None if at == bytes.len() => return Some(at),
            Some(0) => return Some(at),
            length => at += 1 + usize::from(*length?),
        }
        if at > bytes.len() {
            return None;
        }
    }
}

/// Entries beyond the file's palette are black, as in Pillow.
fn palette(entries: &[u8]) -> [[u8; 3]; 256] {
    let mut palette = [[0; 3]; 256];
    for (slot, entry) in palette.iter_mut().zip(entries.chunks_exact(3)) {
        slot.copy_from_slice(entry);
    }
    palette
}

fn refusal(error: DecodingError) -> DecodeError {
    match error {
        DecodingError::Io(io) if io.kind() == ErrorKind::UnexpectedEof => {
            DecodeError::truncated(Format::Gif, "its frame is cut")
        }
        DecodingError::UnexpectedEof => DecodeError::truncated(Format::Gif, "its frame is cut"),
        // The codes end before the picture is full; the crate has no kind of its own for it.
        other if other.to_string() == "image truncated" => DecodeError::truncated(Format::Gif, "pixels are missing"),
        other => DecodeError::corrupt(Format::Gif, other.to_string()),
    }
}
