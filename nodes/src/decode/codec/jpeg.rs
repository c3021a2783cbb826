//! JPEG, by zune-jpeg, from what [`JpegLayout`] leaves of the file.
//!
//! A file without its end marker is truncated, and one whose scans end early or break the code is damaged; both are refused.
//! (libjpeg fills what is missing with grey and only warns; a model's answer to a half-grey picture helps nobody.) Metadata never
//! cost the picture.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::jpeg_layout::{JpegLayout, Model};
use super::{Buffers, Format, Limits, Raster, sized};

pub(super) fn decode(bytes: &[u8], limits: Limits, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    let layout = JpegLayout::read(bytes, &mut buffers.stream)?;
    let model = check_kind(&layout)?;
    let (width, height) = (layout.width, layout.height);
    limits.check(Format::Jpeg, width, height)?;

    if layout.n_scans == 1 && layout.coding < 2 {
        // Behind an end marker the decoder reads zeros for ever, and so makes up the rest of a scan that ends early. Behind the end
        // of its input it complains. Eight bytes are what it reads ahead of a whole scan.
        let end = buffers.stream.len() - 2;
        buffers.stream.truncate(end);
        buffers.stream.extend_from_slice(&[0; 8]);
    }
    let options = DecoderOptions::default()
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&buffers.stream), options);
    decoder.decode_headers().map_err(refusal)?;
    // Without the Adobe marker the decoder has its own idea of the model. Samples come unconverted where input and output agree.
    let native = decoder.input_colorspace().unwrap_or(ColorSpace::Unknown);
    let expected = usize::from(layout.components.len() as u8);
    if decoder.dimensions() != Some((width as usize, height as usize)) || native.num_components() != expected {
        return Err(DecodeError::corrupt(Format::Jpeg, "its header contradicts itself"));
    }

    let pixels = width as usize * height as usize;
    let raster = sized(&mut buffers.raster, pixels * 3);
    match model {
        Model::Grey => decoder.decode_into(raster).map_err(refusal)?,
        Model::Ycc if native == ColorSpace::YCbCr => decoder.decode_into(raster).map_err(refusal)?,
        Model::Ycc | Model::Rgb => {
            decoder.set_options(options.jpeg_set_out_colorspace(native));
            decoder.decode_into(raster).map_err(refusal)?;
            if model == Model::Ycc {
                for pixel in raster.chunks_exact_mut(3) {
                    pixel.copy_from_slice(&ycc_to_rgb(pixel[0], pixel[1], pixel[2]));
                }
            }
        }
        Model::Cmyk | Model::Ycck => {
            decoder.set_options(options.jpeg_set_out_colorspace(native));
            let samples = sized(&mut buffers.samples, pixels * 4);
            decoder.decode_into(samples).map_err(refusal)?;
            if model == Model::Cmyk {
                cmyk_to_rgb(samples, raster);
            } else {
                ycck_to_rgb(samples, raster);
            }
        }
    }
    let block = |range: &Option<std::ops::Range<usize>>| range.clone().and_then(|range| bytes.get(range));
    let orientation = Orientation::from_metadata(block(&layout.exif), block(&layout.xmp));
    Ok(Raster { width, height, format: Format::Jpeg, orientation })
}

fn refusal(error: DecodeErrors) -> DecodeError {
    match error {
        DecodeErrors::ExhaustedData => DecodeError::truncated(Format::Jpeg, "a scan ends early"),
        DecodeErrors::Format(reason) if reason.contains("No more bytes left") => {
            DecodeError::truncated(Format::Jpeg, "a scan ends early")
        }
        DecodeErrors::Format(reason) => DecodeError::corrupt(Format::Jpeg, reason.trim_end_matches('.')),
        DecodeErrors::FormatStatic("Premature end of buffer") => {
            DecodeError::truncated(Format::Jpeg, "a scan ends early")
        }
        DecodeErrors::FormatStatic(reason) => DecodeError::corrupt(Format::Jpeg, reason),
        other => DecodeError::corrupt(Format::Jpeg, format!("{other:?}").trim()),
    }
}

fn check_kind(layout: &JpegLayout) -> Result<Model, DecodeError> {
    let kind = match layout.coding {
        0..=2 => None,
        3 | 7 | 11 | 15 => Some("lossless"),
        5 | 6 => Some("hierarchical"),
        _ => Some("arithmetic-coded"),
    };
    if let Some(kind) = kind {
        return Err(DecodeError::unsupported(format!(
            "{kind} JPEG is not decoded: save it as baseline or progressive"
        )));
    }
    if layout.precision != 8 {
        return Err(DecodeError::unsupported(format!("JPEG with {} bits a sample is not decoded", layout.precision)));
    }
    layout.model().ok_or_else(|| {
        DecodeError::unsupported(format!("JPEG with {} components is not decoded", layout.components.len()))
    })
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
