//! What the markers of a JPEG file say, read without decoding it.
//!
//! Promises: whether the file has an end, its size, coding, colour model and metadata, at the cost of one pass over the bytes.

use std::ops::Range;

use super::super::error::DecodeError;
use super::Format;

const EXIF: &[u8] = b"Exif\0\0";
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// What the markers say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct JpegLayout {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Colour components: 1 grey, 3 colour, 4 printing colours.
    pub(super) components: u8,
    /// Bits a sample.
    pub(super) precision: u8,
    /// The low nibble of the frame's marker: 0 baseline, 1 extended, 2 progressive, others are not Huffman-coded DCT.
    pub(super) coding: u8,
    /// The bytes of the EXIF block, after its name.
    pub(super) exif: Option<Range<usize>>,
    /// The bytes of the XMP packet, after its name.
    pub(super) xmp: Option<Range<usize>>,
    /// Where the end marker stands.
    pub(super) end: usize,
}

impl JpegLayout {
    /// Walks the markers from the start of the file to its end marker.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let cut = |what: &str| DecodeError::truncated(Format::Jpeg, what);
        let mut layout = Self::default();
        let mut framed = false;
        let mut scanned = false;
        let mut at = 2;
        loop {
            let Some(found) = next_marker(bytes, at) else {
                return Err(cut(if scanned { "the end marker is missing" } else { "the header is cut" }));
            };
            at = found + 1;
            match bytes[found] {
                0xd9 if scanned => {
                    layout.end = found;
                    return Ok(layout);
                }
                0xd9 => return Err(DecodeError::corrupt(Format::Jpeg, "it ends before its first scan")),
                // Restarts and the start marker have no body.
                0x01 | 0xd0..=0xd8 => continue,
                marker => {
                    let length = bytes.get(at..at + 2).map(|length| usize::from(length[0]) << 8 | usize::from(length[1]));
                    let length = length.ok_or_else(|| cut("a segment is cut"))?;
                    if length < 2 {
                        return Err(DecodeError::corrupt(Format::Jpeg, format!("segment {marker:02x} has length {length}")));
                    }
                    let body = at + 2..at + length;
                    if body.end > bytes.len() {
                        return Err(cut("a segment is cut"));
                    }
                    match marker {
                        0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf if !framed => {
                            layout.frame(marker, &bytes[body.clone()])?;
                            framed = true;
                        }
                        0xda if !framed => return Err(DecodeError::corrupt(Format::Jpeg, "a scan stands before the frame")),
                        0xda => scanned = true,
                        0xe1 => layout.metadata(bytes, body.clone()),
                        _ => {}
                    }
                    at = body.end;
                }
            }
        }
    }

    fn frame(&mut self, marker: u8, body: &[u8]) -> Result<(), DecodeError> {
        let &[precision, y1, y0, x1, x0, components, ..] = body else {
            return Err(DecodeError::corrupt(Format::Jpeg, "its frame header is too short"));
        };
        self.coding = marker & 0x0f;
        self.precision = precision;
        self.height = u32::from(y1) << 8 | u32::from(y0);
        self.width = u32::from(x1) << 8 | u32::from(x0);
        self.components = components;
        Ok(())
    }

    fn metadata(&mut self, bytes: &[u8], body: Range<usize>) {
        let named = |name: &[u8]| bytes[body.clone()].starts_with(name).then(|| body.start + name.len()..body.end);
        if self.exif.is_none() {
            self.exif = named(EXIF);
        }
        if self.xmp.is_none() {
            self.xmp = named(XMP);
        }
    }
}

/// The place of the next marker's second byte. Stuffed zeros inside scans and fill bytes are passed over.
fn next_marker(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr(bytes.get(at..)?)? + 1;
        while *bytes.get(at)? == 0xff {
            at += 1;
        }
        if bytes[at] != 0 {
            return Some(at);
        }
        at += 1;
    }
}

/// The place of the first 0xff. Eight at a time: a scan is nearly all of the file.
fn memchr(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut words = bytes.chunks_exact(8);
    for (n, word) in words.by_ref().enumerate() {
        let inverted = !u64::from_le_bytes(word.try_into().expect("a chunk of eight"));
        // A byte of `inverted` is zero exactly where the word has 0xff.
        if inverted.wrapping_sub(ONES) & !inverted & HIGHS != 0 {
            return word.iter().position(|&byte| byte == 0xff).map(|place| n * 8 + place);
        }
    }
    let rest = words.remainder();
    rest.iter().position(|&byte| byte == 0xff).map(|place| bytes.len() - rest.len() + place)
}
