//! Encoded images that are made up.

use image::codecs::jpeg::JpegEncoder;

/// A JPEG file of the size given; another one for each `index` and `seed`.
pub(crate) fn jpeg(index: u64, width: u32, height: u32, seed: u64) -> Vec<u8> {
    let tint = (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed.wrapping_mul(0xbf58_476d_1ce4_e5b9)) >> 32;
    let pixels = image::RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x + tint as u32) as u8, (y + (tint >> 8) as u32) as u8, (tint >> 16) as u8])
    });
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, 90).encode_image(&pixels).expect("memory can be written to");
    file
}
