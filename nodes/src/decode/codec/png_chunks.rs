//! The chunks of a PNG file, as far as they must be looked at before or beside the decoder: how much image data there is, whether
//! the file is cut, and what its metadata say of the orientation.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;

use super::super::error::DecodeError;
use super::super::orientation::Orientation;
use super::Format;
use super::png::PNG_MAGIC;

/// Compressed text is not unpacked beyond this, which is also where Pillow stops.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Nothing that deflate packs becomes smaller than by this factor.
const MAX_DEFLATE_RATIO: u64 = 1032;

/// One chunk. Its body may be shorter than it says, at the end of a file that is cut.
struct Chunk<'a> {
    name: [u8; 4],
    /// Where its body begins in the file.
    at: usize,
    body: &'a [u8],
    is_whole: bool,
}

/// The chunks up to the end of the picture; what follows in an animation or behind the end is not looked at.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = bytes.get(PNG_MAGIC.len()..).unwrap_or(&[]);
    let mut image_data = false;
    std::iter::from_fn(move || {
        let (head, behind) = rest.split_first_chunk::<8>()?;
        let [length @ .., a, b, c, d] = *head;
        let name = [a, b, c, d];
        image_data |= &name == b"IDAT";
        if &name == b"IEND" || (&name == b"fcTL" && image_data) {
            return None;
        }
        let length = u32::from_be_bytes(length) as usize;
        let at = bytes.len() - behind.len();
        let is_whole = length <= behind.len();
        let body = &behind[..length.min(behind.len())];
        // The checksum follows.
        rest = behind.get(body.len() + 4..).unwrap_or(&[]);
        Some(Chunk { name, at, body, is_whole })
    })
}

/// Refuses a file whose image data cannot fill `raw_bytes`, however well they are packed: its header lies.
pub(super) fn check_amount(bytes: &[u8], raw_bytes: u64) -> Result<(), DecodeError> {
    let packed: u64 = chunks(bytes).filter(|chunk| &chunk.name == b"IDAT").map(|chunk| chunk.body.len() as u64).sum();
    if (packed + 1).saturating_mul(MAX_DEFLATE_RATIO) < raw_bytes {
        return Err(DecodeError::truncated(Format::Png, format!("{packed} bytes of image data cannot be all of it")));
    }
    Ok(())
}

/// A chunk that is cut betrays a file that is cut, even if the rows are all there: they were once the decoder had read `used`
/// bytes. Only the chunk in which the last row ended may be cut, and a missing end does no harm.
pub(super) fn check_tail(bytes: &[u8], used: usize) -> Result<(), DecodeError> {
    match chunks(bytes).find(|chunk| !chunk.is_whole && (&chunk.name != b"IDAT" || chunk.at > used)) {
        Some(_) => Err(DecodeError::truncated(Format::Png, "a chunk is cut")),
        None => Ok(()),
    }
}

/// From EXIF, wherever it is kept, or XMP.
pub(super) fn orientation(bytes: &[u8]) -> Orientation {
    let mut exif = None;
    let mut profile = None;
    let mut xmp = None;
    for chunk in chunks(bytes).filter(|chunk| chunk.is_whole) {
        if &chunk.name == b"eXIf" {
            exif = Some(chunk.body);
        } else if let Some((keyword, text)) = text(&chunk) {
            match keyword {
                b"Raw profile type exif" => profile = Some(text),
                b"XML:com.adobe.xmp" => xmp = Some(text),
                _ => {}
            }
        }
    }
    let profile = profile.filter(|_| exif.is_none()).map(|text| raw_profile(&text));
    Orientation::from_metadata(exif.or(profile.as_deref()), xmp.as_deref())
}

/// Keyword and text of a chunk of text whose keyword matters.
fn text<'a>(chunk: &Chunk<'a>) -> Option<(&'a [u8], Cow<'a, [u8]>)> {
    let is_known = |keyword: &&[u8]| matches!(*keyword, b"Raw profile type exif" | b"XML:com.adobe.xmp");
    let (keyword, rest) = at_zero(chunk.body)?;
    let keyword = Some(keyword).filter(is_known)?;
    let text = match &chunk.name {
        b"tEXt" => Cow::Borrowed(rest),
        b"zTXt" => Cow::Owned(unpacked(rest.get(1..)?)?),
        b"iTXt" => {
            let is_packed = *rest.first()? != 0;
            let (_language, rest) = at_zero(rest.get(2..)?)?;
            let (_translated, rest) = at_zero(rest)?;
            if is_packed { Cow::Owned(unpacked(rest)?) } else { Cow::Borrowed(rest) }
        }
        _ => return None,
    };
    Some((keyword, text))
}

fn at_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == 0)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// The text, if it is no longer than text is.
fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    ZlibDecoder::new(packed).take(MAX_TEXT_BYTES + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= MAX_TEXT_BYTES).then_some(text)
}

/// ImageMagick's way of keeping EXIF: lines of a name and a length, and then hexadecimal digits.
fn raw_profile(text: &[u8]) -> Vec<u8> {
    let lines = text.split(|&byte| byte == b'\n').skip(3).flatten();
    let digits: Vec<u8> = lines.filter_map(|&byte| char::from(byte).to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::super::orientation::Orientation;
    use super::{check_amount, check_tail, orientation};

    fn file(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (name, body) in chunks {
            file.extend((body.len() as u32).to_be_bytes());
            file.extend([&name[..], body, b"\0\0\0\0"].concat());
        }
        file
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    const TURNED: &[u8] = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0";

    fn check(chunks: &[(&[u8; 4], &[u8])], expected: Orientation) {
        assert_eq!(orientation(&file(chunks)), expected);
    }

    #[test]
    fn exif_is_found_in_its_chunk_and_in_text() {
        check(&[(b"eXIf", TURNED)], Orientation::Clockwise);
        // Behind the image data too.
        check(&[(b"IDAT", b"x"), (b"eXIf", TURNED), (b"IEND", b"")], Orientation::Clockwise);
        let digits: String = TURNED.iter().map(|byte| format!("{byte:02x}")).collect();
        let profile = format!("\nexif\n      26\n{}\n{}\n", &digits[..20], &digits[20..]);
        let plain = [b"Raw profile type exif\0", profile.as_bytes()].concat();
        check(&[(b"tEXt", &plain)], Orientation::Clockwise);
        let packed = [b"Raw profile type exif\0\0", &zlib(profile.as_bytes())[..]].concat();
        check(&[(b"zTXt", &packed)], Orientation::Clockwise);
    }

    #[test]
    fn xmp_is_found_packed_and_plain() {
        let packet = b"\xfe<rdf tiff:Orientation=\"3\"/>";
        let plain = [b"XML:com.adobe.xmp\0\0\0\0\0", &packet[..]].concat();
        check(&[(b"iTXt", &plain)], Orientation::Half);
        let packed = [b"XML:com.adobe.xmp\0\x01\0en\0\0", &zlib(packet)[..]].concat();
        check(&[(b"iTXt", &packed)], Orientation::Half);
    }

    #[test]
    fn broken_and_exploding_text_means_upright() {
        let bomb = [b"XML:com.adobe.xmp\0\x01\0\0\0", &zlib(&vec![b' '; 64 << 20])[..]].concat();
        check(&[(b"iTXt", &bomb)], Orientation::Upright);
        check(&[(b"zTXt", b"Raw profile type exif\0\0noise"), (b"iTXt", b"XML:com.adobe.xmp\0")], Orientation::Upright);
        check(&[(b"tEXt", b"Raw profile type exif"), (b"eXIf", b"")], Orientation::Upright);
    }

    #[test]
    fn a_header_that_promises_too_much_is_found_out() {
        let bytes = file(&[(b"IDAT", &[0; 60]), (b"IDAT", &[0; 39])]);
        assert!(check_amount(&bytes, 100 * 1032).is_ok());
        assert_eq!(check_amount(&bytes, 100 * 1032 + 1).unwrap_err().code(), "truncated");
    }

    #[test]
    fn only_a_cut_chunk_of_metadata_is_a_cut() {
        let bytes = file(&[(b"IDAT", b"data"), (b"tEXt", b"some text")]);
        assert!(check_tail(&bytes, 18).is_ok());
        assert!(check_tail(&bytes[..bytes.len() - 5], 18).is_err());
        assert!(check_tail(&bytes[..18], 18).is_ok());
        let bytes = file(&[(b"IDAT", b"data"), (b"IDAT", b"more")]);
        assert!(check_tail(&bytes[..bytes.len() - 6], 20).is_err());
    }
}
