//! What the markers of a JPEG file say, read without decoding it.
//!
//! Promises: whether the file has an end, its size, coding, colour model and metadata, and the file again with only what a decoder
//! needs: no metadata, no junk between segments, nothing behind the end. Broken metadata then cannot cost a picture. The price is
//! one pass over the bytes and one copy of them.

use std::ops::Range;

use super::super::error::DecodeError;
use super::Format;

const EXIF: &[u8] = b"Exif\0\0";
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// How the components make colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    Grey,
    Ycc,
    Rgb,
    Cmyk,
    Ycck,
}

/// What the markers say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct JpegLayout {
    pub(super) width: u32,
    pub(super) height: u32,
    /// The identifiers of the colour components: 1 for grey, 3 for colour, 4 for printing inks.
    pub(super) components: Vec<u8>,
    /// Bits a sample.
    pub(super) precision: u8,
    /// The low nibble of the frame's marker: 0 baseline, 1 extended, 2 progressive, others are not Huffman-coded DCT.
    pub(super) coding: u8,
    /// The bytes of the EXIF block, after its name.
    pub(super) exif: Option<Range<usize>>,
    /// The bytes of the XMP packet, after its name.
    pub(super) xmp: Option<Range<usize>>,
    /// How many scans there are: more than one if progressive, or if each component has its own.
    pub(super) n_scans: usize,
    jfif: bool,
    adobe_transform: Option<u8>,
}

impl JpegLayout {
    /// Walks the markers to the end marker, and copies what matters to `essence`.
    pub(super) fn read(bytes: &[u8], essence: &mut Vec<u8>) -> Result<Self, DecodeError> {
        let cut = |what: &str| DecodeError::truncated(Format::Jpeg, what);
        let corrupt = |reason: &str| DecodeError::corrupt(Format::Jpeg, reason);
        essence.clear();
        essence.extend_from_slice(b"\xff\xd8");
        let mut layout = Self::default();
        let mut at = 2;
        loop {
            let Some(found) = next_marker(bytes, at) else {
                return Err(cut(if layout.n_scans > 0 { "the end marker is missing" } else { "the header is cut" }));
            };
            at = found + 1;
            let marker = bytes[found];
            match marker {
                0xd9 if layout.n_scans > 0 => {
                    essence.extend_from_slice(b"\xff\xd9");
                    return Ok(layout);
                }
                0xd9 => return Err(corrupt("it ends before its first scan")),
                0xd8 => return Err(corrupt("another picture begins inside it")),
                // These have no body.
                0x01 | 0xd0..=0xd7 => continue,
                _ => {}
            }
            let length = bytes.get(at..at + 2).map(|length| usize::from(length[0]) << 8 | usize::from(length[1]));
            let length = length.ok_or_else(|| cut("a segment is cut"))?;
            if length < 2 {
                return Err(DecodeError::corrupt(Format::Jpeg, format!("segment {marker:02x} has length {length}")));
            }
            let body = at + 2..at + length;
            if body.end > bytes.len() {
                return Err(cut("a segment is cut"));
            }
            at = body.end;
            match marker {
                // Frames; those between are tables.
                0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                    if !layout.components.is_empty() {
                        return Err(corrupt("it has two frame headers"));
                    }
                    layout.frame(marker, &bytes[body.clone()])?;
                }
                0xda => {
                    if layout.components.is_empty() {
                        return Err(corrupt("a scan stands before the frame header"));
                    }
                    layout.n_scans += 1;
                    at = scan_end(bytes, body.end).ok_or_else(|| cut("the end marker is missing"))?;
                }
                // Huffman and quantisation tables, restart interval.
                0xc4 | 0xdb | 0xdd => {}
                _ => {
                    layout.metadata(marker, bytes, body);
                    continue;
                }
            }
            essence.push(0xff);
            essence.extend_from_slice(&bytes[found..at]);
        }
    }

    /// The colour model, found as libjpeg finds it.
    pub(super) fn model(&self) -> Option<Model> {
        match (&*self.components, self.adobe_transform) {
            ([_], _) => Some(Model::Grey),
            ([_, _, _], _) if self.jfif => Some(Model::Ycc),
            ([_, _, _], Some(0)) => Some(Model::Rgb),
            ([b'R', b'G', b'B'], None) => Some(Model::Rgb),
            ([_, _, _], _) => Some(Model::Ycc),
            ([_, _, _, _], None | Some(0)) => Some(Model::Cmyk),
            ([_, _, _, _], Some(_)) => Some(Model::Ycck),
            _ => None,
        }
    }

    fn frame(&mut self, marker: u8, body: &[u8]) -> Result<(), DecodeError> {
        let short = || DecodeError::corrupt(Format::Jpeg, "its frame header is too short");
        let &[precision, y1, y0, x1, x0, n, ref components @ ..] = body else {
            return Err(short());
        };
        let components = components.get(..usize::from(n) * 3).ok_or_else(short)?;
        if n == 0 {
            return Err(DecodeError::corrupt(Format::Jpeg, "it has no components"));
        }
        self.coding = marker & 0x0f;
        self.precision = precision;
        self.height = u32::from(y1) << 8 | u32::from(y0);
        self.width = u32::from(x1) << 8 | u32::from(x0);
        self.components = components.chunks_exact(3).map(|component| component[0]).collect();
        Ok(())
    }

    fn metadata(&mut self, marker: u8, bytes: &[u8], body: Range<usize>) {
        let content = &bytes[body.clone()];
        let named = |name: &[u8]| content.starts_with(name).then(|| body.start + name.len()..body.end);
        match marker {
            0xe0 if content.len() >= 12 && content.starts_with(b"JFIF\0") => self.jfif = true,
            0xe1 => {
                self.exif = self.exif.take().or_else(|| named(EXIF));
                self.xmp = self.xmp.take().or_else(|| named(XMP));
            }
            0xee if content.len() >= 12 && content.starts_with(b"Adobe") => self.adobe_transform = Some(content[11]),
            _ => {}
        }
    }
}

/// Where the scan that begins at `at` ends: at the 0xff of a marker that is no restart.
fn scan_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = next_marker(bytes, at)?;
        if !matches!(bytes[at], 0xd0..=0xd7) {
            return Some(at - 1);
        }
    }
}

/// The place of the next marker's second byte. Stuffed zeros inside scans and fill bytes are passed over.
fn next_marker(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += first_ff(bytes.get(at..)?)? + 1;
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
fn first_ff(bytes: &[u8]) -> Option<usize> {
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
