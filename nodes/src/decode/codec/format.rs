//! Which picture format bytes are in, told by the bytes alone.

use std::fmt;

use super::super::error::DecodeError;
use super::png::PNG_MAGIC;

/// The picture formats that are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG: baseline and progressive, Huffman-coded or arithmetic-coded, 8 bits.
    Jpeg,
    /// PNG; of an animated one the default image.
    Png,
    /// WebP, lossy or lossless; of an animated one the first frame.
    WebP,
    /// GIF; of an animated one the first frame.
    Gif,
    /// Windows and OS/2 bitmaps.
    Bmp,
    /// TIFF; of several pictures the first.
    Tiff,
}

impl Format {
    /// Those that are decoded, as a message lists them.
    const LIST: &'static str = "JPEG, PNG, WebP, GIF, BMP or TIFF";

    /// The name in lower case, as it stands in the column `format`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Png => "png",
            Self::WebP => "webp",
            Self::Gif => "gif",
            Self::Bmp => "bmp",
            Self::Tiff => "tiff",
        }
    }

    /// Tells the format by the first bytes.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\xff\xd8\xff") {
            return Some(Self::Jpeg);
        }
        if bytes.starts_with(PNG_MAGIC) {
            return Some(Self::Png);
        }
        if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return Some(Self::WebP);
        }
        if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            return Some(Self::Gif);
        }
        if bytes.starts_with(b"BM") && bytes.len() > 2 {
            return Some(Self::Bmp);
        }
        TIFF_MAGICS.iter().any(|magic| bytes.starts_with(magic)).then_some(Self::Tiff)
    }

    /// The format of which these few bytes are the whole beginning: a file cut within its first dozen bytes.
    pub(super) fn cut_short(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < 2 || bytes.len() > 11 {
            return None;
        }
        let begins = |magic: &[u8]| magic.starts_with(&bytes[..bytes.len().min(magic.len())]);
        if begins(b"\xff\xd8\xff") {
            return Some(Self::Jpeg);
        }
        if begins(PNG_MAGIC) {
            return Some(Self::Png);
        }
        if begins(b"GIF87a") || begins(b"GIF89a") {
            return Some(Self::Gif);
        }
        if begins(b"RIFF") {
            return Some(Self::WebP);
        }
        if begins(b"BM") {
            return Some(Self::Bmp);
        }
        TIFF_MAGICS.iter().any(|magic| begins(magic)).then_some(Self::Tiff)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
            Self::Gif => "GIF",
            Self::Bmp => "BMP",
            Self::Tiff => "TIFF",
        })
    }
}

/// Plain, with the two bytes of the version swapped, as some writers have it, and BigTIFF.
const TIFF_MAGICS: [&[u8]; 6] = [b"II*\0", b"MM\0*", b"II\0*", b"MM*\0", b"II+\0", b"MM\0+"];

/// What else people keep under a picture's name: where it stands, what stands there, and what it is.
const OTHERS: &[(usize, &[u8], &str)] = &[
    (4, b"ftypavif", "an AVIF picture"),
    (4, b"ftypavis", "an AVIF picture"),
    (4, b"ftypheic", "a HEIF picture"),
    (4, b"ftypheix", "a HEIF picture"),
    (4, b"ftyphevc", "a HEIF picture"),
    (4, b"ftypheim", "a HEIF picture"),
    (4, b"ftypheis", "a HEIF picture"),
    (4, b"ftypmif1", "a HEIF picture"),
    (4, b"ftypmsf1", "a HEIF picture"),
    (4, b"ftypcrx ", "a raw photograph (CR3)"),
    (4, b"ftypqt  ", "a video (QuickTime)"),
    (4, b"ftyp", "a video (MP4)"),
    (0, b"\xff\x0a", "a JPEG XL picture"),
    (0, b"\0\0\0\x0cJXL ", "a JPEG XL picture"),
    (0, b"\0\0\0\x0cjP  ", "a JPEG 2000 picture"),
    (0, b"\xff\x4f\xff\x51", "a JPEG 2000 picture"),
    (0, b"II\xbc", "a JPEG XR picture"),
    (0, b"8BPS", "a Photoshop document (PSD)"),
    (0, b"\0\0\x01\0", "a Windows icon (ICO)"),
    (0, b"\0\0\x02\0", "a Windows cursor (CUR)"),
    (0, b"icns", "a macOS icon (ICNS)"),
    (0, b"DDS ", "a DirectDraw surface (DDS)"),
    (0, b"BLP", "a Blizzard texture (BLP)"),
    (0, b"FTEX", "a texture (FTEX)"),
    (0, b"qoif", "a QOI picture"),
    (0, b"\x01\xda", "an SGI picture"),
    (0, b"\x59\xa6\x6a\x95", "a Sun raster"),
    (0, b"SIMPLE  =", "a FITS file"),
    (0, b"\x76\x2f\x31\x01", "an OpenEXR picture"),
    (0, b"#?RADIANCE", "a Radiance HDR picture"),
    (0, b"/* XPM */", "an XPM picture"),
    (0, b"#define", "an XBM picture"),
    (0, b"gimp xcf", "a GIMP picture (XCF)"),
    (0, b"\xb1\x68\xde\x3a", "a DCX picture"),
    (0, b"%!PS", "a PostScript file"),
    (0, b"\xc5\xd0\xd3\xc6", "a PostScript file"),
    (0, b"%PDF", "a PDF file"),
    (0, b"\xd7\xcd\xc6\x9a", "a Windows metafile"),
    (0, b"FORM", "an IFF file"),
    (0, b"RIFF", "a RIFF file (sound or video)"),
    (0, b"\x1a\x45\xdf\xa3", "a video (Matroska or WebM)"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"Rar!", "a RAR archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a compound document"),
    (0, b"PAR1", "a Parquet file"),
    (0, b"\x80\x04", "a Python pickle"),
    (257, b"ustar", "a tar archive"),
];

/// Says what the bytes look like, because a name ending in `.jpg` had promised otherwise.
pub(super) fn unknown(bytes: &[u8]) -> DecodeError {
    let known = OTHERS.iter().find(|(at, magic, _)| bytes.get(*at..).is_some_and(|part| part.starts_with(magic)));
    let what = known.map(|(_, _, name)| *name).or_else(|| structured(bytes)).unwrap_or_else(|| text_or_not(bytes));
    DecodeError::unsupported(format!("the data are {what}, and not a {} picture", Format::LIST))
}

/// Formats whose beginning is told by more than fixed bytes.
fn structured(bytes: &[u8]) -> Option<&'static str> {
    let netpbm = matches!(bytes, [b'P', b'1'..=b'7' | b'F' | b'f', b' ' | b'\t' | b'\r' | b'\n', ..]);
    if netpbm {
        return Some("a PPM, PGM or PBM picture");
    }
    let first = bytes.first_chunk::<4>()?;
    if let [12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0] = first {
        return Some("a Windows bitmap without its file header (DIB)");
    }
    // Maker, version, coding, bits.
    if let [10, 0 | 2 | 3 | 4 | 5, 0 | 1, 1 | 2 | 4 | 8] = first {
        return Some("a PCX picture");
    }
    if bytes.ends_with(b"TRUEVISION-XFILE.\0") {
        return Some("a TGA picture");
    }
    matches!(bytes.get(4..6), Some(b"\x11\xaf" | b"\x12\xaf")).then_some("a FLI or FLC animation")
}

fn text_or_not(bytes: &[u8]) -> &'static str {
    let head = &bytes[..bytes.len().min(1024)];
    let lower: Vec<u8> = head.iter().map(u8::to_ascii_lowercase).collect();
    let has = |tag: &[u8]| lower.windows(tag.len()).any(|part| part == tag);
    if has(b"<!doctype html") || has(b"<html") {
        return "an HTML page";
    }
    if has(b"<svg") {
        return "an SVG drawing";
    }
    let plain = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c);
    if !head.iter().all(plain) {
        return if bytes.iter().all(|&byte| byte == 0) { "zeros" } else { "of no known format" };
    }
    match lower.iter().find(|byte| !byte.is_ascii_whitespace() && byte.is_ascii()) {
        Some(b'<') => "an XML document",
        Some(b'{' | b'[') => "JSON or other text",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::{Format, unknown};

    fn check(bytes: &[u8], named: &str) {
        assert_eq!(Format::of(bytes), None);
        let error = unknown(bytes);
        assert_eq!(error.code(), "unsupported");
        assert_eq!(error.to_string(), format!("the data are {named}, and not a {} picture", Format::LIST));
    }

    #[test]
    fn what_is_no_picture_is_named() {
        check(b"just words\n", "text");
        check(b"\r\n<!DOCTYPE HTML><title>404</title>", "an HTML page");
        check(b"<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>", "an XML document");
        check(b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>", "an SVG drawing");
        check(b"{\"error\": 403}", "JSON or other text");
        check(&[0; 600], "zeros");
        check(b"\0\0\0\x1cftypavif\0\0\0\0", "an AVIF picture");
        check(b"\0\0\0\x1cftypheic\0\0\0\0", "a HEIF picture");
        check(b"\0\0\0\x1cftypisom\0\0\0\0", "a video (MP4)");
        check(b"\xff\x0a\x01\x02", "a JPEG XL picture");
        check(b"8BPS\0\x01", "a Photoshop document (PSD)");
        check(b"P6\n2 2\n255\n", "a PPM, PGM or PBM picture");
        check(b"RIFF\x10\0\0\0WAVEfmt ", "a RIFF file (sound or video)");
        check(&[0x17; 9], "of no known format");
    }

    #[test]
    fn a_name_promises_nothing() {
        assert_eq!(Format::of(b"II*\0\x08\0\0\0"), Some(Format::Tiff));
        assert_eq!(Format::of(b"MM\0+\0\x08\0\0"), Some(Format::Tiff));
        assert_eq!(Format::of(b"II\xbc\x01"), None);
        assert_eq!(Format::cut_short(b"MM\0"), Some(Format::Tiff));
        assert_eq!(Format::cut_short(b"\x89PN"), Some(Format::Png));
        assert_eq!(Format::cut_short(b"ok"), None);
    }
}
