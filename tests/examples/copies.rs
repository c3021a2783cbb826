//! The same photographs in other clothes.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageFormat};

use crate::workplace::Workplace;

/// The names of the copies, each in a folder named after the photograph.
pub const KINDS: [&str; 5] = ["mirrored.png", "quality85.jpg", "lossless.webp", "renamed", "screen.bmp"];

/// Writes every kind of copy of `photos/NAME` to `copies/NAME`.
pub fn make(workplace: &Workplace, name: &str) {
    let file = workplace.read(&format!("photos/{name}"));
    let picture = DynamicImage::from(image::load_from_memory(&file).expect("a photograph").to_rgb8());
    for kind in KINDS {
        let copy = match kind {
            "mirrored.png" => encoded(&picture.fliph(), ImageFormat::Png),
            "lossless.webp" => encoded(&picture, ImageFormat::WebP),
            "screen.bmp" => encoded(&picture, ImageFormat::Bmp),
            "quality85.jpg" => {
                let mut copy = Vec::new();
                JpegEncoder::new_with_quality(&mut copy, 85).encode_image(&picture).expect("a JPEG file");
                copy
            }
            _ => file.clone(),
        };
        workplace.write(&format!("copies/{name}/{kind}"), copy);
    }
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut copy = Cursor::new(Vec::new());
    picture.write_to(&mut copy, format).expect("an encoded picture");
    copy.into_inner()
}

/// Whether the copy has exactly the pixels of its photograph. Of a JPEG file only the renamed copy does: decoders differ
/// in how they round.
pub fn keeps_pixels(name: &str, kind: &str) -> bool {
    match kind {
        "renamed" => true,
        "lossless.webp" | "screen.bmp" => name.ends_with(".png"),
        _ => false,
    }
}
