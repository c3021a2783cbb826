//! The fields of a protobuf message as they stand there, for changing one and copying the rest byte for byte, known or not.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field};

/// The fields of a message.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

/// A field as it stands there.
pub(super) struct Field<'a> {
    pub(super) number: u32,
    /// All of its bytes.
    pub(super) whole: &'a [u8],
    /// Those behind its length, of a field that has one.
    pub(super) body: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, prost::DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = read_field(&mut self.0);
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn read_field<'a>(rest: &mut &'a [u8]) -> Result<Field<'a>, prost::DecodeError> {
    let start = *rest;
    let (number, wire) = decode_key(rest)?;
    let mut body: &[u8] = &[];
    if wire == WireType::LengthDelimited {
        let length = decode_varint(&mut { *rest })?;
        let before = *rest;
        skip_field(wire, number, rest, DecodeContext::default())?;
        let used = before.len() - rest.remaining();
        body = usize::try_from(length)
            .ok()
            .and_then(|length| before[..used].get(used.checked_sub(length)?..))
            .unwrap_or(&[]);
    } else {
        skip_field(wire, number, rest, DecodeContext::default())?;
    }
    Ok(Field { number, whole: &start[..start.len() - rest.len()], body })
}

/// Puts a field that is a message, or bytes, behind `out`.
pub(super) fn put(number: u32, body: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(body.len() as u64, out);
    out.extend_from_slice(body);
}
