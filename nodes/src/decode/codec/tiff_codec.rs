//! The compressions of TIFF: from the bytes of a strip or tile to its samples.
//!
//! Deflate is flate2's, zstd that of the library; LZW and the fax coding come from the `tiff` crate, which is handed each strip as a whole little file of
//! its own, so that what else the file says is read by one set of rules, Pillow's. A strip must be filled to its last byte.

use std::io::{Cursor, ErrorKind, Read};

use flate2::read::ZlibDecoder;
use tiff::TiffError;
use tiff::decoder::Decoder;

use super::super::error::DecodeError;
use super::Format;
use super::tiff_layout::unsupported;

/// How strips and tiles are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Lzw,
    Deflate,
    PackBits,
    /// CCITT group 4.
    Fax4,
    Jpeg,
    Zstd,
}

impl Compression {
    pub(super) fn of(value: u64) -> Result<Self, DecodeError> {
        Ok(match value {
            1 => Self::None,
            4 => Self::Fax4,
            5 => Self::Lzw,
            7 => Self::Jpeg,
            8 | 32946 => Self::Deflate,
            32773 => Self::PackBits,
            2 | 3 => return Err(unsupported("CCITT group 3 compression")),
            6 => return Err(unsupported("old-style JPEG compression")),
            50000 => Self::Zstd,
            34925 => return Err(unsupported("LZMA compression")),
            50001 => return Err(unsupported("WebP compression")),
            other => return Err(unsupported(format!("compression {other}"))),
        })
    }

    /// Those for which the tag of the predictor has a meaning.
    pub(super) fn has_predictor(self) -> bool {
        matches!(self, Self::Lzw | Self::Deflate | Self::Zstd)
    }

    /// No strip becomes smaller than by this factor.
    pub(super) fn max_ratio(self) -> u64 {
        match self {
            Self::None => 1,
            Self::PackBits => 64,
            Self::Deflate => 1032,
            Self::Lzw => 4096,
            // A block of 128 KiB takes four bytes.
            Self::Zstd => 32_768,
            // A row that repeats the one above is a single bit, and a row has at most 65,535 pixels.
            Self::Fax4 => 65_536,
            // A block of 64 pixels of three colours takes six bits.
            Self::Jpeg => 256,
        }
    }

    /// Fills `rows`, of `width` samples of one bit in each row of `row_bytes` where the coding knows of pixels.
    pub(super) fn unpack(
        self,
        packed: &[u8],
        width: u32,
        row_bytes: usize,
        rows: &mut [u8],
    ) -> Result<(), DecodeError> {
        match self {
            Self::None => {
                rows.copy_from_slice(packed.get(..rows.len()).ok_or_else(cut)?);
                Ok(())
            }
            Self::Deflate => fill(ZlibDecoder::new(packed), rows),
            Self::Zstd => fill(zstd::Decoder::with_buffer(packed).map_err(damaged)?, rows),
            Self::PackBits => unpack_bits(packed, rows).ok_or_else(cut),
            Self::Lzw => unpack_alone(5, packed, [row_bytes as u32, (rows.len() / row_bytes) as u32], 8, rows),
            Self::Fax4 => unpack_alone(4, packed, [width, (rows.len() / row_bytes) as u32], 1, rows),
            Self::Jpeg => Err(unsupported("JPEG compression")),
        }
    }
}

fn fill(mut unpacked: impl Read, rows: &mut [u8]) -> Result<(), DecodeError> {
    unpacked.read_exact(rows).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => cut(),
        _ => damaged(error),
    })
}

fn cut() -> DecodeError {
    DecodeError::truncated(Format::Tiff, "a strip or tile is cut")
}

fn damaged(reason: impl std::fmt::Display) -> DecodeError {
    DecodeError::corrupt(Format::Tiff, reason.to_string())
}

/// Runs and stretches of bytes. `None` if they end too early.
fn unpack_bits(packed: &[u8], mut rows: &mut [u8]) -> Option<()> {
    let mut packed = packed;
    while !rows.is_empty() {
        let (&head, rest) = packed.split_first()?;
        packed = rest;
        let head = head as i8;
        if head == i8::MIN {
            continue;
        }
        let wanted = usize::from(head.unsigned_abs()) + 1;
        let count = wanted.min(rows.len());
        let (now, later) = std::mem::take(&mut rows).split_at_mut(count);
        if head < 0 {
            let (&value, rest) = packed.split_first()?;
            now.fill(value);
            packed = rest;
        } else {
            now.copy_from_slice(packed.get(..count)?);
            packed = packed.get(wanted..).unwrap_or(&[]);
        }
        rows = later;
    }
    Some(())
}

/// Has the `tiff` crate unpack a file of one strip of grey.
fn unpack_alone(
    compression: u16,
    packed: &[u8],
    size: [u32; 2],
    bits: u16,
    rows: &mut [u8],
) -> Result<(), DecodeError> {
    let refused = |error: TiffError| match error {
        TiffError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => cut(),
        other => damaged(other),
    };
    let mut decoder = Decoder::new(Cursor::new(lone_strip(compression, packed, size, bits))).map_err(refused)?;
    // What it takes is what `rows` has, which was checked.
    decoder = decoder.with_limits(tiff::decoder::Limits::unlimited());
    decoder.read_chunk_bytes(0, rows).map_err(refused)
}

fn lone_strip(compression: u16, packed: &[u8], [width, height]: [u32; 2], bits: u16) -> Vec<u8> {
    const LONG: u16 = 4;
    let entries = [
        (256u16, width),
        (257, height),
        (258, u32::from(bits)),
        (259, u32::from(compression)),
        // Zero is black: bits come as they are.
        (262, 1),
        (273, 8 + 2 + 9 * 12 + 4),
        (277, 1),
        (278, height),
        (279, packed.len() as u32),
    ];
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend((entries.len() as u16).to_le_bytes());
    for (tag, value) in entries {
        file.extend(tag.to_le_bytes());
        file.extend(LONG.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file.extend_from_slice(packed);
    file
}

#[cfg(test)]
mod tests {
    use super::Compression;

    fn check(compression: Compression, packed: &[u8], expected: Result<&[u8], &str>) {
        let mut rows = vec![0; expected.map_or(6, <[u8]>::len)];
        let got = compression.unpack(packed, 8, 1, &mut rows).map(|()| &rows[..]);
        assert_eq!(got.map_err(|error| error.code()), expected);
    }

    #[test]
    fn runs_and_stretches_are_unpacked() {
        // A run of three, nothing, a stretch of two, a run that goes on behind the end.
        check(Compression::PackBits, &[0xfe, 7, 0x80, 1, 8, 9, 0xf0, 5], Ok(&[7, 7, 7, 8, 9, 5]));
        check(Compression::PackBits, &[0xfe, 7, 5, 8, 9], Err("truncated"));
        check(Compression::PackBits, &[], Err("truncated"));
    }

    #[test]
    fn codes_of_growing_length_are_unpacked() {
        // Clear, 1, 2, the pair of both, end: nine bits each.
        check(Compression::Lzw, &[0x80, 0x00, 0x40, 0x50, 0x28, 0x08], Ok(&[1, 2, 1, 2]));
        check(Compression::Lzw, &[0x80, 0x00, 0x40, 0x50], Err("truncated"));
    }

    #[test]
    fn plain_and_deflated_strips_must_be_whole() {
        check(Compression::None, &[1, 2, 3, 4], Ok(&[1, 2, 3]));
        check(Compression::None, &[1, 2, 3, 4], Err("truncated"));
        check(Compression::Deflate, b"noise!", Err("corrupt"));
        check(Compression::Deflate, &[], Err("truncated"));
    }
}
