//! WebP, by the `image-webp` crate.

use std::io::{Cursor, ErrorKind};

use image_webp::{DecodingError, WebPDecoder};

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::{Buffers, Format, Limits, Raster, Reading, sized};

pub(super) fn decode(bytes: &[u8], reading: Reading, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    let limits = reading.limits;
    let bytes = whole_container(bytes)?;
    check_frames(&bytes[12..], limits)?;

    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(refusal)?;
    let (width, height) = decoder.dimensions();
    limits.check(Format::WebP, width, height)?;
    let pixels = width as usize * height as usize;
    let raster = sized(&mut buffers.raster, pixels * 3);
    if decoder.has_alpha() {
        let samples = sized(&mut buffers.samples, pixels * 4);
        // An animation's first frame may leave parts of the canvas untouched.
        samples.fill(0);
        decoder.read_image(samples).map_err(refusal)?;
        reading.colours.alpha.apply_all(samples, raster);
    } else {
        raster.fill(0);
        decoder.read_image(raster).map_err(refusal)?;
    }
    // A chunk may say that it is longer than the file, and memory would be taken for it.
    decoder.set_memory_limit(bytes.len());
    // What the metadata say is a hint: reading them may fail without harm.
    let exif = decoder.exif_metadata().ok().flatten();
    let xmp = decoder.xmp_metadata().ok().flatten();
    let orientation = Orientation::from_metadata(exif.as_deref(), xmp.as_deref());
    Ok(Raster::whole([width, height], Format::WebP, orientation))
}

/// The container as long as its header says; what follows it is not looked at.
fn whole_container(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let size = bytes.get(4..8).map(le).ok_or_else(|| DecodeError::truncated(Format::WebP, "the header is cut"))?;
    let end = size as usize + 8;
    if bytes.len() < 16 || end < 16 {
        return Err(DecodeError::truncated(Format::WebP, "the header is cut"));
    }
    bytes
        .get(..end)
        .ok_or_else(|| DecodeError::truncated(Format::WebP, format!("{} of {end} bytes are there", bytes.len())))
}

/// Refuses bitstreams that are themselves too large: they need memory by their own size, whatever the canvas says.
fn check_frames(mut chunks: &[u8], limits: Limits) -> Result<(), DecodeError> {
    while let (Some(name), Some(size)) = (chunks.get(..4), chunks.get(4..8).map(le)) {
        let body = &chunks[8..];
        let size = size as usize;
        let body = &body[..size.min(body.len())];
        match name {
            b"VP8 " if body.len() >= 10 => {
                limits.check(Format::WebP, le(&body[6..8]) & 0x3fff, le(&body[8..10]) & 0x3fff)?;
            }
            b"VP8L" if body.len() >= 5 => {
                let packed = le(&body[1..5]);
                limits.check(Format::WebP, (packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1)?;
            }
            b"ANMF" if body.len() > 16 => check_frames(&body[16..], limits)?,
            _ => {}
        }
        chunks = chunks.get(8 + size + size % 2..).unwrap_or(&[]);
    }
    Ok(())
}

fn le(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

fn refusal(error: DecodingError) -> DecodeError {
    match error {
        DecodingError::IoError(io) if io.kind() == ErrorKind::UnexpectedEof => {
            DecodeError::truncated(Format::WebP, "a chunk is cut")
        }
        DecodingError::UnsupportedFeature(feature) => DecodeError::unsupported(format!("WebP with {feature}")),
        other => DecodeError::corrupt(Format::WebP, other.to_string()),
    }
}
