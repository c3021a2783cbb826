//! The header of a `.npy` file: a Python dictionary as text, padded so that the number of rows can be filled in later.
//!
//! The format is version 1.0 of NumPy's: a magic string, the version, the header's length in two bytes, the header, whose
//! end lies at a multiple of 64 bytes.

use engine::data::{DType, TensorRef};

/// What precedes the dictionary: magic, version, length.
const LEAD: usize = 10;
/// The multiple at which the data begin.
const ALIGN: usize = 64;

/// The element type in which a column is written: NumPy has no bf16.
pub(super) fn written_as(dtype: DType) -> DType {
    if dtype == DType::BF16 { DType::F32 } else { dtype }
}

/// The header of an array of `n_rows` rows; as long for any number of rows.
pub(super) fn header(dtype: DType, shape: &[usize], n_rows: u64) -> Vec<u8> {
    let whole = |n_rows: u64| shape_text([n_rows].into_iter().chain(shape.iter().map(|&dim| dim as u64)));
    padded(&dictionary(dtype, &whole(n_rows)), dictionary(dtype, &whole(u64::MAX)).len())
}

/// The header of one array of a shape.
pub(super) fn array_header(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let dictionary = dictionary(dtype, &shape_text(shape.iter().map(|&dim| dim as u64)));
    padded(&dictionary, dictionary.len())
}

/// Appends the elements of an array.
pub(super) fn append_elements(bytes: &mut Vec<u8>, tensor: TensorRef<'_>) {
    match written_as(tensor.dtype) == tensor.dtype {
        true => bytes.extend_from_slice(tensor.bytes),
        false => bytes.extend_from_slice(bytemuck::cast_slice(&tensor.to_f32())),
    }
}

/// The header with room for a dictionary of `longest` bytes.
fn padded(dictionary: &str, longest: usize) -> Vec<u8> {
    // One more for the line end.
    let end = (LEAD + longest + 1).next_multiple_of(ALIGN);
    let length = u16::try_from(end - LEAD).expect("a header of few dimensions is short");
    let mut header = Vec::with_capacity(end);
    header.extend_from_slice(b"\x93NUMPY\x01\x00");
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(dictionary.as_bytes());
    header.resize(end - 1, b' ');
    header.push(b'\n');
    header
}

/// A tuple: one of one has a comma behind it.
fn shape_text(dims: impl Iterator<Item = u64>) -> String {
    let dims: Vec<_> = dims.map(|dim| format!("{dim},")).collect();
    dims.join(" ")
}

fn dictionary(dtype: DType, shape: &str) -> String {
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let descr = match written_as(dtype) {
        DType::U8 => "|u1".to_owned(),
        DType::F16 => format!("{order}f2"),
        DType::F32 | DType::BF16 => format!("{order}f4"),
        DType::I64 => format!("{order}i8"),
    };
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_begin_at_a_multiple_of_64_whatever_the_number_of_rows() {
        for shape in [&[][..], &[1280], &[224, 224, 3], &[1; 40]] {
            let lengths: Vec<_> = [0, 1, u64::MAX].map(|n_rows| header(DType::F32, shape, n_rows).len()).into();
            assert_eq!(lengths[0] % 64, 0);
            assert!(lengths.iter().all(|length| *length == lengths[0]));
        }
    }

    #[test]
    fn the_header_is_what_numpy_writes() {
        let header = header(DType::F16, &[3, 4], 5);
        assert_eq!(&header[..8], b"\x93NUMPY\x01\x00");
        assert_eq!(usize::from(u16::from_le_bytes([header[8], header[9]])), header.len() - 10);
        let text = std::str::from_utf8(&header[10..]).unwrap();
        assert_eq!(text.trim_end(), "{'descr': '<f2', 'fortran_order': False, 'shape': (5, 3, 4,), }");
        assert!(text.ends_with(" \n"));
    }
}
