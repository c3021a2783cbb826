//! What stands before the first scan: the frame, the colour model, metadata, tables.

use std::ops::Range;

use super::super::super::error::DecodeError;
use super::corrupt;
use super::frame::Frame;
use super::segments::{Segments, marker};
use super::tables::Tables;

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

/// What the markers before the first scan say.
pub(super) struct Header {
    pub(super) frame: Frame,
    pub(super) model: Model,
    /// The bytes of the EXIF block, after its name.
    pub(super) exif: Option<Range<usize>>,
    /// The bytes of the XMP packet, after its name.
    pub(super) xmp: Option<Range<usize>>,
    /// The body of the first scan's header.
    pub(super) first_scan: Range<usize>,
}

#[derive(Default)]
struct Metadata {
    jfif: bool,
    adobe_transform: Option<u8>,
    exif: Option<Range<usize>>,
    xmp: Option<Range<usize>>,
}

impl Header {
    /// Leaves `segments` behind the header of the first scan.
    pub(super) fn read(segments: &mut Segments<'_>, tables: &mut Tables) -> Result<Self, DecodeError> {
        let mut metadata = Metadata::default();
        let mut frame = None;
        loop {
            let segment = segments.next()?;
            let body = segments.body(&segment);
            match segment.marker {
                marker::EOI => return Err(corrupt("it ends before its first scan")),
                marker::SOS => {
                    let frame = frame.ok_or_else(|| corrupt("a scan stands before the frame header"))?;
                    let model = metadata.model(&frame);
                    let Metadata { exif, xmp, .. } = metadata;
                    return Ok(Self { frame, model, exif, xmp, first_scan: segment.body });
                }
                marker if marker::is_frame(marker) => {
                    if frame.is_some() {
                        return Err(corrupt("it has two frame headers"));
                    }
                    frame = Some(Frame::read(marker, body)?);
                }
                marker::APP0..=marker::APP15 => metadata.read(segment.marker, body, segment.body.start),
                _ => tables.read(segment.marker, body)?,
            }
        }
    }
}

impl Metadata {
    fn read(&mut self, marker: u8, content: &[u8], at: usize) {
        let named = |name: &[u8]| content.starts_with(name).then(|| at + name.len()..at + content.len());
        match marker {
            marker::APP0 if content.len() >= 14 && content.starts_with(b"JFIF\0") => self.jfif = true,
            marker::APP1 => {
                self.exif = self.exif.take().or_else(|| named(EXIF));
                self.xmp = self.xmp.take().or_else(|| named(XMP));
            }
            marker::APP14 if content.len() >= 12 && content.starts_with(b"Adobe") => {
                self.adobe_transform = Some(content[11]);
            }
            _ => {}
        }
    }

    /// The colour model, found as libjpeg finds it.
    fn model(&self, frame: &Frame) -> Model {
        let ids = frame.components().iter().map(|component| component.id);
        match (frame.components().len(), self.adobe_transform) {
            (1, _) => Model::Grey,
            (4, None | Some(0)) => Model::Cmyk,
            (4, Some(_)) => Model::Ycck,
            _ if self.jfif => Model::Ycc,
            (_, Some(0)) => Model::Rgb,
            (_, None) if ids.eq(*b"RGB") => Model::Rgb,
            _ => Model::Ycc,
        }
    }
}
