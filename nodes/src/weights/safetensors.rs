//! safetensors files: eight bytes of header length, a JSON header, then the values.
//!
//! The whole header is checked before a tensor is listed: types, shapes against sizes, sizes against the file, no two
//! tensors over the same bytes, no bytes that belong to none.

use std::fmt;
use std::ops::Range;

use indexmap::IndexMap;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::element::Element;
use super::error::{WeightsFault, grouped, quoted};
use super::layout::{Layout, Region};

const LENGTH_BYTES: usize = 8;

/// Whether the first bytes look like this format: a plausible length and an opening brace.
pub(super) fn is_safetensors(bytes: &[u8]) -> bool {
    bytes.len() > LENGTH_BYTES && bytes[LENGTH_BYTES] == b'{'
}

/// The tensors of a safetensors file, in the order of their values.
pub(super) fn read_header(file: &[u8]) -> Result<IndexMap<String, Layout>, WeightsFault> {
    let (header, values) = split(file)?;
    let header: Header = serde_json::from_slice(header)
        .map_err(|error| WeightsFault::malformed("the header", format!("is not valid: {error}")))?;
    let mut entries = header.tensors;
    entries.sort_by_key(|(_, info)| info.data_offsets);
    let mut layouts = IndexMap::with_capacity(entries.len());
    let mut end_of_last = 0;
    for (name, info) in entries {
        let bytes = place(&name, info.data_offsets, &values, end_of_last)?;
        end_of_last = info.data_offsets.1;
        let Some(element) = element(info.dtype) else {
            let known = "F32, F16, BF16, F64, I64, I32, I16, I8, U8, BOOL";
            return Err(WeightsFault::tensor(&name, format!("holds {:?}, and only {known} are read", info.dtype)));
        };
        let layout = Layout::row_major(&name, info.shape, Region { element, bytes })?;
        if layouts.insert(name.clone(), layout).is_some() {
            return Err(WeightsFault::tensor(&name, "stands twice in the header"));
        }
    }
    if end_of_last != values.len() {
        let surplus = grouped((values.len() - end_of_last) as u64);
        return Err(WeightsFault::malformed("the file", format!("goes on for {surplus} bytes behind its last tensor")));
    }
    Ok(layouts)
}

/// The header's bytes, and where the values are.
fn split(file: &[u8]) -> Result<(&[u8], Range<usize>), WeightsFault> {
    let truncated = |part: &str, end| WeightsFault::Truncated { part: part.into(), end, len: file.len() as u64 };
    let Some((length, rest)) = file.split_first_chunk::<LENGTH_BYTES>() else {
        return Err(truncated("the header's length", LENGTH_BYTES as u64));
    };
    let length = u64::from_le_bytes(*length);
    let header = usize::try_from(length).ok().and_then(|length| rest.get(..length));
    let header = header.ok_or_else(|| truncated("the header", length.saturating_add(LENGTH_BYTES as u64)))?;
    Ok((header, LENGTH_BYTES + header.len()..file.len()))
}

/// The bytes of one tensor in the file, the last tensor before it having ended at `end_of_last`.
fn place(
    name: &str,
    (start, end): (usize, usize),
    values: &Range<usize>,
    end_of_last: usize,
) -> Result<Range<usize>, WeightsFault> {
    if end < start {
        return Err(WeightsFault::tensor(
            name,
            format!("begins at offset {} and ends at {}", grouped(start as u64), grouped(end as u64)),
        ));
    }
    if end > values.len() {
        let part = format!("tensor {}", quoted(name));
        let end = (values.start as u64).saturating_add(end as u64);
        return Err(WeightsFault::Truncated { part, end, len: values.end as u64 });
    }
    if start != end_of_last {
        let relation = if start < end_of_last { "inside of the tensor before it" } else { "behind a gap" };
        let problem =
            format!("begins {relation}, at offset {} and not {}", grouped(start as u64), grouped(end_of_last as u64));
        return Err(WeightsFault::tensor(name, problem));
    }
    Ok(values.start + start..values.start + end)
}

fn element(dtype: Dtype) -> Option<Element> {
    Some(match dtype {
        Dtype::F32 => Element::F32,
        Dtype::F16 => Element::F16,
        Dtype::BF16 => Element::Bf16,
        Dtype::F64 => Element::F64,
        Dtype::I64 => Element::I64,
        Dtype::I32 => Element::I32,
        Dtype::I16 => Element::I16,
        Dtype::I8 => Element::I8,
        Dtype::U8 => Element::U8,
        Dtype::BOOL => Element::Bool,
        _ => return None,
    })
}

/// The header's entries in the order written, repeated names and all: a map would hide those.
struct Header {
    tensors: Vec<(String, TensorInfo)>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a map of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut tensors = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IndexMap<String, String>>()?;
                        continue;
                    }
                    let info = map
                        .next_value()
                        .map_err(|error| A::Error::custom(format!("tensor {}: {error}", quoted(&name))))?;
                    tensors.push((name, info));
                }
                Ok(Header { tensors })
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, n_values: usize) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend((0..n_values).map(|value| value as u8));
        file
    }

    fn refused(bytes: &[u8], expected: &str) {
        let error = read_header(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    const A: &str = r#""a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}"#;

    #[test]
    fn tensors_are_listed_in_the_order_of_their_values() {
        let header = format!(
            r#"{{"__metadata__": {{"format": "pt"}}, "b": {{"dtype": "U8", "shape": [3], "data_offsets": [8, 11]}}, {A}}}"#
        );
        let bytes = file(&header, 11);
        let layouts = read_header(&bytes).unwrap();
        assert_eq!(layouts.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(layouts["b"].bytes(&bytes).unwrap().as_ref(), [8, 9, 10]);
    }

    #[test]
    fn what_is_cut_off_is_named() {
        refused(&[1, 2, 3], "truncated: the header's length ends at byte 8 and the file has 3");
        refused(&[255; 20], "truncated: the header ends at byte 18,446,744,073,709,551,615 and the file has 20");
        let whole = file(&format!("{{{A}}}"), 8);
        refused(&whole[..40], &format!("truncated: the header ends at byte {} and the file has 40", whole.len() - 8));
        let (end, len) = (whole.len(), whole.len() - 1);
        refused(&whole[..len], &format!("truncated: tensor `a` ends at byte {end} and the file has {len}"));
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        let one = |info: &str| file(&format!(r#"{{"a": {info}}}"#), 8);
        refused(
            &one(r#"{"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}"#),
            "12 bytes, and 8 bytes are set aside",
        );
        refused(&one(r#"{"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}"#), "16 bytes, and 8 bytes");
        refused(&one(r#"{"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}"#), "begins at offset 8 and ends at 0");
        refused(&one(r#"{"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}"#), "`a` begins behind a gap");
        refused(&one(r#"{"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}"#), "goes on for 4 bytes behind");
        refused(
            &one(r#"{"dtype": "F32", "shape": [4294967296, 4294967296, 2], "data_offsets": [0, 8]}"#),
            "too many bytes",
        );
        refused(
            &one(r#"{"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}"#),
            "tensor `a`: invalid value: integer `-1`",
        );
        refused(
            &one(r#"{"dtype": "F32", "shape": [2], "data_offsets": [0, 99999999999999999999]}"#),
            "the header is not valid",
        );
        refused(&one(r#"{"dtype": "F4", "shape": [16], "data_offsets": [0, 8]}"#), "holds F4, and only F32");
        refused(&one(r#"{"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}"#), "unknown variant `F99`");
        refused(&one("[]"), "the header is not valid: tensor `a`");
        refused(&file("[1]", 0), "the header is not valid");
        refused(&file("{", 0), "the header is not valid");
        refused(
            &file(&format!(r#"{{{A}, "b": {{"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}}}"#), 12),
            "`b` begins inside of the tensor before it",
        );
        refused(
            &file(&format!(r#"{{{A}, "a": {{"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}}}"#), 12),
            "`a` stands twice",
        );
        refused(&file(&"[".repeat(1_000_000), 0), "the header is not valid");
    }
}
