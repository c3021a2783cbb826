//! From the samples of a TIFF row to RGB.

use super::super::colours::{Colours, Grey16};
use super::super::ifd::ByteOrder;
use super::tiff_layout::{Layout, Model, Numbers, Opacity};

/// What a sample of up to eight bits becomes.
pub(super) type Table = [[u8; 3]; 256];

/// Undoes the differences in a row of one strip or tile.
pub(super) fn add_up(row: &mut [u8], layout: &Layout) {
    let samples = if layout.is_planar { 1 } else { layout.samples };
    match layout.bits {
        8 => {
            for at in samples..row.len() {
                row[at] = row[at].wrapping_add(row[at - samples]);
            }
        }
        bits => {
            let bytes = bits / 8;
            let step = samples * bytes;
            for at in (step..row.len() / bytes * bytes).step_by(bytes) {
                let before = layout.order.number(&row[at - step..at - step + bytes]);
                let sum = layout.order.number(&row[at..at + bytes]).wrapping_add(before).to_le_bytes();
                for (n, byte) in row[at..at + bytes].iter_mut().enumerate() {
                    *byte = sum[if layout.order == ByteOrder::Little { n } else { bytes - 1 - n }];
                }
            }
        }
    }
}

/// The greys of a depth of up to eight bits.
pub(super) fn greys(bits: usize, is_inverted: bool) -> Table {
    let most = (1u16 << bits.min(8)) - 1;
    std::array::from_fn(|n| {
        let grey = ((n as u16 & most) * (255 / most)) as u8;
        [if is_inverted { 255 - grey } else { grey }; 3]
    })
}

/// Writes the first pixels of an interleaved row as RGB, as many as `out` has.
pub(super) fn to_rgb(row: &[u8], layout: &Layout, table: &Table, colours: Colours, out: &mut [u8]) {
    let eight = |at: usize| match (layout.bits, layout.order) {
        (16, ByteOrder::Little) => row[at * 2 + 1],
        (16, ByteOrder::Big) => row[at * 2],
        _ => row[at],
    };
    let pixels = out.chunks_exact_mut(3).enumerate().map(|(x, rgb)| (x * layout.samples, rgb));
    match layout.model {
        Model::Grey { .. } if layout.bits > 8 => {
            for (at, rgb) in pixels {
                rgb.fill(long_grey(row, at, layout, colours));
            }
        }
        Model::Grey { .. } | Model::Palette { has_alpha: false } => {
            for (at, rgb) in pixels {
                rgb.copy_from_slice(&table[bits_at(row, at, layout.bits) as usize]);
            }
        }
        Model::Palette { has_alpha: true } => {
            for (at, rgb) in pixels {
                rgb.copy_from_slice(&colours.alpha.apply(table[usize::from(row[at])], row[at + 1]));
            }
        }
        Model::GreyAlpha => {
            for (at, rgb) in pixels {
                rgb.copy_from_slice(&colours.alpha.apply([row[at]; 3], row[at + 1]));
            }
        }
        Model::Rgb(Opacity::None) if layout.bits == 8 && layout.samples == 3 => {
            let len = out.len();
            out.copy_from_slice(&row[..len]);
        }
        Model::Rgb(opacity) => {
            for (at, rgb) in pixels {
                let mut colour = [eight(at), eight(at + 1), eight(at + 2)];
                let alpha = if opacity == Opacity::None { 255 } else { eight(at + 3) };
                if opacity == Opacity::Multiplied {
                    colour = colour.map(|sample| divided(sample, alpha));
                }
                rgb.copy_from_slice(&colours.alpha.apply(colour, alpha));
            }
        }
        Model::Cmyk => {
            for (at, rgb) in pixels {
                let light = 255 - eight(at + 3);
                for (n, out) in rgb.iter_mut().enumerate() {
                    *out = light - scaled(eight(at + n), light);
                }
            }
        }
        // Comes as RGB from the JPEG decoder.
        Model::Ycc => {}
    }
}

/// A colour that was multiplied with its opacity, as it was before; black where nothing is left of it.
fn divided(sample: u8, alpha: u8) -> u8 {
    match alpha {
        0 => 0,
        255 => sample,
        _ => (u32::from(sample) * 255 / u32::from(alpha)).min(255) as u8,
    }
}

/// a·b/255, rounded.
fn scaled(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product + (product >> 8)) >> 8) as u8
}

/// Sample `at` of a row of samples of up to 16 bits, of which the first is in the high bits.
fn bits_at(row: &[u8], at: usize, bits: usize) -> u32 {
    if bits == 8 {
        return u32::from(row[at]);
    }
    let from = at * bits;
    let byte = |n: usize| row.get(n).map_or(0, |&byte| u32::from(byte));
    let window = byte(from / 8) << 16 | byte(from / 8 + 1) << 8 | byte(from / 8 + 2);
    window >> (24 - from % 8 - bits) & ((1 << bits) - 1)
}

/// A grey of 12, 16 or 32 bits.
fn long_grey(row: &[u8], at: usize, layout: &Layout, colours: Colours) -> u8 {
    if layout.bits == 12 {
        return colours.grey16.apply(bits_at(row, at, 12), 12);
    }
    let bytes = layout.bits / 8;
    let sample = layout.order.number(&row[at * bytes..(at + 1) * bytes]) as u32;
    match (layout.numbers, layout.bits) {
        (Numbers::Float, _) => f32::from_bits(sample) as u8,
        (Numbers::Signed, 16) => (sample as u16 as i16).clamp(0, 255) as u8,
        (Numbers::Signed, _) => (sample as i32).clamp(0, 255) as u8,
        // Pillow has no unsigned numbers of 32 bits, and takes the upper half for negative.
        (Numbers::Unsigned, 32) if colours.grey16 == Grey16::Clip => (sample as i32).clamp(0, 255) as u8,
        (Numbers::Unsigned, bits) => colours.grey16.apply(sample, bits as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::{bits_at, divided, greys};

    #[test]
    fn samples_of_any_depth_are_found_in_their_row() {
        let row = [0b1011_0001, 0xab, 0xcd, 0xef];
        assert_eq!((0..8).map(|x| bits_at(&row, x, 1)).collect::<Vec<_>>(), [1, 0, 1, 1, 0, 0, 0, 1]);
        assert_eq!((0..4).map(|x| bits_at(&row, x, 2)).collect::<Vec<_>>(), [2, 3, 0, 1]);
        assert_eq!((0..4).map(|x| bits_at(&row, x, 4)).collect::<Vec<_>>(), [11, 1, 10, 11]);
        assert_eq!((0..2).map(|x| bits_at(&row, x, 12)).collect::<Vec<_>>(), [0xb1a, 0xbcd]);
    }

    #[test]
    fn greys_reach_from_black_to_white() {
        assert_eq!(greys(1, false)[..2], [[0; 3], [255; 3]]);
        assert_eq!(greys(2, true)[..4], [[255; 3], [170; 3], [85; 3], [0; 3]]);
        assert_eq!(greys(4, false)[15], [255; 3]);
        assert_eq!(greys(8, true)[10], [245; 3]);
    }

    #[test]
    fn multiplied_colours_are_divided_and_clipped() {
        assert_eq!((divided(50, 100), divided(90, 0), divided(90, 255), divided(200, 100)), (127, 0, 90, 255));
    }
}
