//! From marker to marker.
//!
//! Knows how segments are delimited and nothing of what is in them. Junk between segments is passed over, as libjpeg does.

use std::ops::Range;

use super::super::super::error::DecodeError;
use super::{corrupt, truncated};

/// The markers that matter here, by their second byte.
pub(super) mod marker {
    pub(in super::super) const DHT: u8 = 0xc4;
    pub(in super::super) const DAC: u8 = 0xcc;
    pub(in super::super) const RST0: u8 = 0xd0;
    pub(in super::super) const RST7: u8 = 0xd7;
    pub(in super::super) const SOI: u8 = 0xd8;
    pub(in super::super) const EOI: u8 = 0xd9;
    pub(in super::super) const SOS: u8 = 0xda;
    pub(in super::super) const DQT: u8 = 0xdb;
    pub(in super::super) const DRI: u8 = 0xdd;
    pub(in super::super) const APP0: u8 = 0xe0;
    pub(in super::super) const APP1: u8 = 0xe1;
    pub(in super::super) const APP14: u8 = 0xee;
    pub(in super::super) const APP15: u8 = 0xef;
    pub(in super::super) const TEM: u8 = 0x01;

    /// Whether a marker begins a frame, of whichever coding.
    pub(in super::super) fn is_frame(marker: u8) -> bool {
        matches!(marker, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf)
    }
}

/// A marker and where its body lies, without the two bytes of length. Markers that have none have an empty one.
pub(super) struct Segment {
    pub(super) marker: u8,
    pub(super) body: Range<usize>,
}

/// A place in a file, always between two segments.
#[derive(Clone)]
pub(super) struct Segments<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Segments<'a> {
    /// Behind the marker that begins the file.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 2 }
    }

    /// The next segment, or what is missing of it.
    pub(super) fn next(&mut self) -> Result<Segment, DecodeError> {
        loop {
            let found = next_marker(self.bytes, self.at).ok_or_else(|| truncated("the end marker is missing"))?;
            self.at = found + 1;
            let marker = self.bytes[found];
            match marker {
                marker::EOI => return Ok(Segment { marker, body: self.at..self.at }),
                marker::SOI => return Err(corrupt("another picture begins inside it")),
                marker::TEM | marker::RST0..=marker::RST7 => continue,
                // Reserved, or of the hierarchical mode.
                0x02..=0xbf | 0xc8 | 0xde..=0xdf | 0xf0..=0xfd => {
                    return Err(corrupt(format!("marker {marker:02x} has no meaning here")));
                }
                _ => {}
            }
            let length = self.bytes.get(self.at..self.at + 2).ok_or_else(|| truncated("a segment is cut"))?;
            let length = usize::from(length[0]) << 8 | usize::from(length[1]);
            // Metadata never cost the picture: as libjpeg, pass over what little there is.
            let length = if marker >= marker::APP0 { length.max(2) } else { length };
            if length < 2 {
                return Err(corrupt(format!("segment {marker:02x} has length {length}")));
            }
            let body = self.at + 2..self.at + length;
            if body.end > self.bytes.len() {
                return Err(truncated("a segment is cut"));
            }
            self.at = body.end;
            return Ok(Segment { marker, body });
        }
    }

    /// The bytes of a segment's body.
    pub(super) fn body(&self, segment: &Segment) -> &'a [u8] {
        &self.bytes[segment.body.clone()]
    }

    /// Goes on to the end marker, whatever stands before it but another scan.
    pub(super) fn expect_end(&mut self) -> Result<(), DecodeError> {
        loop {
            match self.next()?.marker {
                marker::EOI => return Ok(()),
                marker::SOS => return Err(corrupt("a scan follows the one that has all of the picture")),
                _ => {}
            }
        }
    }
}

/// The place behind the next marker, which must be the restart marker number `n` (of 8).
pub(super) fn behind_restart(bytes: &[u8], at: usize, n: u8) -> Result<usize, DecodeError> {
    let found = next_marker(bytes, at).ok_or_else(|| truncated("a scan ends early"))?;
    match bytes[found] {
        marker if marker == marker::RST0 + n % 8 => Ok(found + 1),
        marker::RST0..=marker::RST7 => Err(corrupt("a restart marker has the wrong number")),
        _ => Err(truncated("a scan ends early")),
    }
}

/// The place of the next marker's second byte. Stuffed zeros inside scans and fill bytes are passed over.
fn next_marker(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == 0xff)? + 1;
        while *bytes.get(at)? == 0xff {
            at += 1;
        }
        if bytes[at] != 0 {
            return Some(at);
        }
        at += 1;
    }
}
