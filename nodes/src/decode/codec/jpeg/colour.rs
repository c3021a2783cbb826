//! From lines of samples to pixels.

use super::header::Model;
use super::kernel;

/// The conversion of the JPEG file format, in 16-bit fixed point: the factors beyond whole multiples of the sample.
pub(super) mod factors {
    const fn fixed(factor: f64) -> i32 {
        (factor * 65536.0 + 0.5) as i32
    }
    pub(in super::super) const CR_TO_RED: i32 = fixed(1.402);
    pub(in super::super) const CB_TO_GREEN: i32 = -fixed(0.344_14);
    pub(in super::super) const CR_TO_GREEN: i32 = -fixed(0.714_14);
    pub(in super::super) const CB_TO_BLUE: i32 = fixed(1.772);
}

/// Grey: the same in all three.
pub(super) fn grey(line: &[u8], row: &mut [u8]) {
    for (pixel, &sample) in row.chunks_exact_mut(3).zip(line) {
        pixel.fill(sample);
    }
}

/// Three components.
pub(super) fn three(model: Model, lines: [&[u8]; 3], row: &mut [u8]) {
    match model {
        Model::Ycc => kernel::ycc_to_rgb(lines, row),
        _ => {
            let [red, green, blue] = lines;
            for (((pixel, &red), &green), &blue) in row.chunks_exact_mut(3).zip(red).zip(green).zip(blue) {
                pixel.copy_from_slice(&[red, green, blue]);
            }
        }
    }
}

/// Four components: printing inks. Stored values are inverted, which is Adobe's habit and, by now, everybody's: 255 is no ink.
pub(super) fn four(model: Model, lines: [&[u8]; 4], row: &mut [u8]) {
    let [first, second, third, light] = lines;
    let inks = first.iter().zip(second).zip(third).zip(light);
    for (pixel, (((&first, &second), &third), &light)) in row.chunks_exact_mut(3).zip(inks) {
        let colour = match model {
            // The three colours of YCCK are inverted once more than those of CMYK: they are what RGB would be.
            Model::Ycck => ycc_pixel(first, second, third),
            _ => [first, second, third].map(|ink| 255 - ink),
        };
        pixel.copy_from_slice(&colour.map(|colour| light - scaled(colour, light)));
    }
}

/// a·b/255, rounded.
fn scaled(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product + (product >> 8)) >> 8) as u8
}

/// One pixel.
#[inline(always)]
pub(super) fn ycc_pixel(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + ((factors::CR_TO_RED * cr + HALF) >> 16);
    let green = y + ((factors::CB_TO_GREEN * cb + factors::CR_TO_GREEN * cr + HALF) >> 16);
    let blue = y + ((factors::CB_TO_BLUE * cb + HALF) >> 16);
    [red, green, blue].map(|value| value.clamp(0, 255) as u8)
}
