//! BMP: Windows and OS/2 headers; 1, 4, 8, 16, 24 and 32 bits; run-length coding.

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::{Buffers, Format, Raster, Reading, bmp_rle, sized};

pub(super) fn decode(bytes: &[u8], reading: Reading, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    let header = Header::read(bytes)?;
    reading.limits.check(Format::Bmp, header.width, header.height)?;
    let width = header.width as usize;
    let height = header.height as usize;
    let data = bytes.get(header.data..).unwrap_or(&[]);
    let cut = || DecodeError::truncated(Format::Bmp, "rows are missing");

    let pixels = width * height;
    let runs = matches!(header.coding, Coding::Runs { .. });
    if let Coding::Runs { four_bits } = header.coding {
        let indices = sized(&mut buffers.samples, pixels);
        bmp_rle::unpack(data, four_bits, width, indices).ok_or_else(cut)?;
    }
    let stride = (width * usize::from(header.bits)).div_ceil(32) * 4;
    let row_bytes = (width * usize::from(header.bits)).div_ceil(8);
    // The padding of the last row may be missing.
    if !runs && data.len() < stride * (height - 1) + row_bytes {
        return Err(cut());
    }

    let raster = sized(&mut buffers.raster, pixels * 3);
    for (n, out) in raster.chunks_exact_mut(width * 3).enumerate() {
        let row = if header.top_down { n } else { height - 1 - n };
        let rgb = out.chunks_exact_mut(3);
        if runs {
            for (rgb, &index) in rgb.zip(&buffers.samples[row * width..][..width]) {
                rgb.copy_from_slice(&header.palette[usize::from(index)]);
            }
            continue;
        }
        let row = &data[row * stride..][..row_bytes];
        match header.coding {
            Coding::Indexed => {
                let bits = usize::from(header.bits);
                for (x, rgb) in rgb.enumerate() {
                    let shift = 8 - bits - x * bits % 8;
                    let index = usize::from(row[x * bits / 8] >> shift) & ((1 << bits) - 1);
                    rgb.copy_from_slice(&header.palette[index]);
                }
            }
            Coding::Packed { masks, opacity } => {
                for (rgb, packed) in rgb.zip(row.chunks_exact(usize::from(header.bits / 8))) {
                    let packed = le(packed);
                    let colour = masks.map(|mask| mask.sample(packed));
                    let opacity = opacity.map_or(255, |mask| mask.sample(packed));
                    rgb.copy_from_slice(&reading.colours.alpha.apply(colour, opacity));
                }
            }
            Coding::Runs { .. } => {}
        }
    }
    Ok(Raster::whole([header.width, header.height], Format::Bmp, Orientation::Upright))
}

struct Header {
    width: u32,
    height: u32,
    top_down: bool,
    bits: u16,
    coding: Coding,
    palette: [[u8; 3]; 256],
    /// Where the rows begin.
    data: usize,
}

#[derive(Clone, Copy)]
enum Coding {
    Indexed,
    Runs {
        four_bits: bool,
    },
    /// Red, green and blue in one little-endian number, and perhaps opacity.
    Packed {
        masks: [Mask; 3],
        opacity: Option<Mask>,
    },
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let cut = || DecodeError::truncated(Format::Bmp, "the header is cut");
        let field = |at: usize, len: usize| bytes.get(at..at + len).map(le).ok_or_else(cut);
        let size = field(14, 4)? as usize;
        let (width, height, top_down, bits, compression, colors, entry) = match size {
            12 => (field(18, 2)?, field(20, 2)?, false, field(24, 2)?, 0, 0, 3),
            40 | 52 | 56 | 64 | 108 | 124 => {
                let height = field(22, 4)? as i32;
                let top_down = height < 0;
                (field(18, 4)?, height.unsigned_abs(), top_down, field(28, 2)?, field(30, 4)?, field(46, 4)?, 4)
            }
            other => {
                return Err(DecodeError::unsupported(format!("BMP with a header of {other} bytes is not decoded")));
            }
        };
        if bytes.len() < 14 + size {
            return Err(cut());
        }
        let bits = bits as u16;
        let packed = |masks: [u32; 3], opacity: u32| Coding::Packed {
            masks: masks.map(Mask::new),
            opacity: (opacity != 0).then(|| Mask::new(opacity)),
        };
        let coding = match (compression, bits) {
            (0, 1 | 4 | 8) => Coding::Indexed,
            (0, 16) => packed([0x7c00, 0x3e0, 0x1f], 0),
            (0, 24 | 32) => packed([0xff_0000, 0xff00, 0xff], 0),
            (1, 8) => Coding::Runs { four_bits: false },
            (2, 4) => Coding::Runs { four_bits: true },
            // The masks stand behind the short header and inside the longer ones, at the same place; the one for opacity only
            // in those.
            (3, 16 | 24 | 32) => {
                let masks = [field(54, 4)?, field(58, 4)?, field(62, 4)?];
                match (masks, if size >= 56 { field(66, 4)? } else { 0 }) {
                    // No masks at all: the usual ones.
                    ([0, 0, 0], 0) if bits == 32 => packed([0xff_0000, 0xff00, 0xff], 0xff00_0000),
                    (masks, opacity) => packed(masks, opacity),
                }
            }
            (4, _) => {
                return Err(DecodeError::unsupported("BMP with a JPEG inside is not decoded"));
            }
            (5, _) => {
                return Err(DecodeError::unsupported("BMP with a PNG inside is not decoded"));
            }
            (compression, bits) => {
                return Err(DecodeError::unsupported(format!(
                    "BMP of {bits} bits with compression {compression} is not decoded"
                )));
            }
        };
        let mut data = field(10, 4)? as usize;
        // Black beyond the file's own entries.
        let mut palette = [[0; 3]; 256];
        if bits <= 8 {
            let count = if colors == 0 { 1 << bits } else { colors as usize };
            if count > 65_536 {
                return Err(DecodeError::corrupt(Format::Bmp, format!("its palette has {count} entries")));
            }
            if data == 14 + size {
                data += 4 * count;
            }
            let entries = bytes.get(14 + size..14 + size + count * entry).ok_or_else(cut)?;
            for (slot, bgr) in palette.iter_mut().zip(entries.chunks_exact(entry)) {
                *slot = [bgr[2], bgr[1], bgr[0]];
            }
        }
        Ok(Self { width, height, top_down, bits, coding, palette, data })
    }
}

/// The bits of one colour.
#[derive(Clone, Copy)]
struct Mask {
    shift: u32,
    most: u32,
}

impl Mask {
    fn new(mask: u32) -> Self {
        let shift = mask.trailing_zeros().min(31);
        Self { shift, most: mask >> shift }
    }

    fn sample(self, packed: u32) -> u8 {
        let value = (packed >> self.shift) & self.most;
        if self.most == 255 || self.most == 0 {
            return value as u8;
        }
        (u64::from(value) * 255 / u64::from(self.most)) as u8
    }
}

fn le(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}
