//! JPEG, by zune-jpeg, after a look at the markers of our own.
//!
//! The look settles what the decoder is lenient about: a file without its end marker is truncated, as it is for libjpeg reading
//! from a stream. Damage inside a scan costs pixels and not the picture, as with libjpeg.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::jpeg_layout::JpegLayout;
use super::{Buffers, Format, Limits, Raster, sized};

pub(super) fn decode(bytes: &[u8], limits: Limits, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    let layout = JpegLayout::read(bytes)?;
    check_kind(&layout)?;
    let (width, height) = (layout.width, layout.height);
    limits.check(Format::Jpeg, width, height)?;

    let options = DecoderOptions::default()
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .set_strict_mode(false)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let refusal = |error: zune_jpeg::errors::DecodeErrors| DecodeError::corrupt(Format::Jpeg, format!("{error:?}"));
    // Nothing behind the end marker is the decoder's business.
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&bytes[..=layout.end]), options);
    decoder.decode_headers().map_err(refusal)?;
    if decoder.dimensions() != Some((width as usize, height as usize)) {
        return Err(DecodeError::corrupt(Format::Jpeg, "it has two frame headers"));
    }

    let pixels = width as usize * height as usize;
    let raster = sized(&mut buffers.raster, pixels * 3);
    match decoder.input_colorspace() {
        Some(inks @ (ColorSpace::CMYK | ColorSpace::YCCK)) if layout.components == 4 => {
            decoder.set_options(options.jpeg_set_out_colorspace(inks));
            let samples = sized(&mut buffers.samples, pixels * 4);
            decoder.decode_into(samples).map_err(refusal)?;
            match inks {
                ColorSpace::CMYK => cmyk_to_rgb(samples, raster),
                _ => ycck_to_rgb(samples, raster),
            }
        }
        _ => decoder.decode_into(raster).map_err(refusal)?,
    }
    let block = |range: &Option<std::ops::Range<usize>>| range.clone().and_then(|range| bytes.get(range));
    let orientation = Orientation::from_metadata(block(&layout.exif), block(&layout.xmp));
    Ok(Raster { width, height, format: Format::Jpeg, orientation })
}

fn check_kind(layout: &JpegLayout) -> Result<(), DecodeError> {
    let kind = match layout.coding {
        0..=2 => None,
        3 | 7 | 11 | 15 => Some("lossless"),
        5 | 6 => Some("hierarchical"),
        _ => Some("arithmetic-coded"),
    };
    if let Some(kind) = kind {
        return Err(DecodeError::unsupported(format!("{kind} JPEG is not decoded: save it as baseline or progressive")));
    }
    if layout.precision != 8 {
        return Err(DecodeError::unsupported(format!("JPEG with {} bits a sample is not decoded", layout.precision)));
    }
    if !matches!(layout.components, 1 | 3 | 4) {
        return Err(DecodeError::unsupported(format!("JPEG with {} components is not decoded", layout.components)));
    }
    Ok(())
}

/// Stored values are inverted, which is Adobe's habit and, by now, everybody's: 255 is no ink.
fn cmyk_to_rgb(samples: &[u8], raster: &mut [u8]) {
    for (rgb, inks) in raster.chunks_exact_mut(3).zip(samples.chunks_exact(4)) {
        let light = inks[3];
        for (out, &ink) in rgb.iter_mut().zip(inks) {
            *out = light - scaled(255 - ink, light);
        }
    }
}

/// The three colours of YCCK are inverted once more than those of CMYK: they are what RGB would be.
fn ycck_to_rgb(samples: &[u8], raster: &mut [u8]) {
    for (rgb, ycck) in raster.chunks_exact_mut(3).zip(samples.chunks_exact(4)) {
        let light = ycck[3];
        let colour = ycc_to_rgb(ycck[0], ycck[1], ycck[2]);
        for (out, colour) in rgb.iter_mut().zip(colour) {
            *out = light - scaled(colour, light);
        }
    }
}

/// a·b/255, rounded.
fn scaled(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product + (product >> 8)) >> 8) as u8
}

/// The conversion of the JPEG file format, in 16-bit fixed point.
fn ycc_to_rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const fn fixed(factor: f64) -> i32 {
        (factor * 65536.0 + 0.5) as i32
    }
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + ((fixed(1.402) * cr + HALF) >> 16);
    let green = y + ((-fixed(0.344_136_286) * cb - fixed(0.714_136_286) * cr + HALF) >> 16);
    let blue = y + ((fixed(1.772) * cb + HALF) >> 16);
    [red, green, blue].map(|value| value.clamp(0, 255) as u8)
}
