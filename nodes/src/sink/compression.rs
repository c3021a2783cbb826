//! Compression of outputs that are written row by row, in pieces that end where the output may be cut back.
//!
//! A gzip file is any number of members one after the other, a zstd file any number of frames. A piece is ended at each
//! cut, so that cutting the file back to where it stood leaves a whole file.

use std::io::{self, Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an output is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// As gzip does, at its level 6.
    Gzip,
    /// As zstd does, at its level 3.
    Zstd,
}

const ZSTD_LEVEL: i32 = 3;

impl Compression {
    /// That of an output called `path`, if nothing else was said.
    pub(super) fn of(path: &str, chosen: Option<Compression>) -> Self {
        chosen.unwrap_or_else(|| match path.rsplit_once('.') {
            Some((_, "gz" | "tgz")) => Compression::Gzip,
            Some((_, "zst")) => Compression::Zstd,
            _ => Compression::None,
        })
    }

    /// What `compressed` was before; where it was cut off, what comes before that.
    pub(super) fn reader<'a>(self, compressed: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Compression::None => Box::new(compressed),
            Compression::Gzip => Box::new(MultiGzDecoder::new(compressed)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(compressed)?),
        })
    }
}

/// Compresses pieces.
pub(super) enum Packer {
    /// What is not compressed does not come here.
    Plain,
    Gzip(Option<GzEncoder<Vec<u8>>>),
    Zstd(Option<zstd::stream::write::Encoder<'static, Vec<u8>>>),
}

impl Packer {
    pub(super) fn new(compression: Compression) -> Self {
        match compression {
            Compression::None => Packer::Plain,
            Compression::Gzip => Packer::Gzip(None),
            Compression::Zstd => Packer::Zstd(None),
        }
    }

    /// Whether a piece has begun.
    pub(super) fn is_begun(&self) -> bool {
        matches!(self, Packer::Gzip(Some(_)) | Packer::Zstd(Some(_)))
    }

    /// Compresses `text`, beginning a piece where there is none, and appends to `out` what is ready.
    pub(super) fn write(&mut self, text: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Packer::Plain => out.extend_from_slice(text),
            Packer::Gzip(piece) => {
                let piece = piece.get_or_insert_with(|| GzEncoder::new(Vec::new(), flate2::Compression::default()));
                piece.write_all(text)?;
                out.append(piece.get_mut());
            }
            Packer::Zstd(piece) => {
                let piece = match piece {
                    Some(piece) => piece,
                    None => piece.insert(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?),
                };
                piece.write_all(text)?;
                out.append(piece.get_mut());
            }
        }
        Ok(())
    }

    /// Appends to `out` all that came in, so that a reader has it, without ending the piece.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Packer::Gzip(Some(piece)) => {
                piece.flush()?;
                out.append(piece.get_mut());
            }
            Packer::Zstd(Some(piece)) => {
                piece.flush()?;
                out.append(piece.get_mut());
            }
            Packer::Plain | Packer::Gzip(None) | Packer::Zstd(None) => {}
        }
        Ok(())
    }

    /// Ends the piece, if one has begun, and appends the rest of it to `out`.
    pub(super) fn end_piece(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let rest = match self {
            Packer::Plain => None,
            Packer::Gzip(piece) => piece.take().map(GzEncoder::finish),
            Packer::Zstd(piece) => piece.take().map(zstd::stream::write::Encoder::finish),
        };
        if let Some(rest) = rest {
            out.append(&mut rest?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_how_unless_something_else_was_said() {
        let check = |path: &str, chosen, expected| assert_eq!(Compression::of(path, chosen), expected, "{path}");
        check("out/labels.jsonl", None, Compression::None);
        check("out/labels.jsonl.gz", None, Compression::Gzip);
        check("s3://bucket/labels.csv.zst", None, Compression::Zstd);
        check("labels.tar", Some(Compression::Zstd), Compression::Zstd);
        check("labels.gz", Some(Compression::None), Compression::None);
    }

    #[test]
    fn pieces_one_after_the_other_are_what_came_in() {
        for compression in [Compression::Gzip, Compression::Zstd] {
            let (mut packer, mut out) = (Packer::new(compression), Vec::new());
            packer.write(b"one ", &mut out).unwrap();
            packer.end_piece(&mut out).unwrap();
            let first = out.len();
            packer.end_piece(&mut out).unwrap();
            assert_eq!(out.len(), first, "there was nothing to end");
            packer.write(b"two", &mut out).unwrap();
            packer.flush(&mut out).unwrap();
            packer.write(b" three", &mut out).unwrap();
            packer.end_piece(&mut out).unwrap();
            let read = |bytes: &[u8]| io::read_to_string(compression.reader(bytes).unwrap()).unwrap();
            assert_eq!(read(&out), "one two three");
            assert_eq!(read(&out[..first]), "one ", "cut back to where a piece ends");
        }
    }
}
