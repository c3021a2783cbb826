//! Values as JSON text, appended to a buffer.

use std::io::Write;

use engine::data::{Column, DType, TensorRef};
use half::{bf16, f16};

/// Appends the value that `column` has in a row.
pub(super) fn write_value(text: &mut Vec<u8>, column: &Column, row_idx: usize) {
    match column {
        Column::Text(values) => write_text(text, values.get(row_idx)),
        Column::Int(values) => write_int(text, values.values()[row_idx]),
        Column::Float(values) => write_float(text, values.values()[row_idx]),
        Column::Dense(tensor) => write_tensor(text, tensor.row(row_idx)),
        Column::Ragged(tensors) => write_tensor(text, tensors.values()[row_idx].row(0)),
        Column::List(list) => {
            text.push(b'[');
            for (position, item_idx) in list.range(row_idx).enumerate() {
                if position > 0 {
                    text.push(b',');
                }
                for (field_idx, (name, values)) in list.fields().enumerate() {
                    text.push(if field_idx == 0 { b'{' } else { b',' });
                    write_text(text, name);
                    text.push(b':');
                    write_value(text, values, item_idx);
                }
                text.push(b'}');
            }
            text.push(b']');
        }
        Column::Bytes(_) => unreachable!("columns of bytes are refused before the run"),
    }
}

/// Appends a string in quotes.
pub(super) fn write_text(text: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(text, value).expect("a string can be written to memory");
}

fn write_int(text: &mut Vec<u8>, value: i64) {
    write!(text, "{value}").expect("memory can be written to");
}

/// The shortest text that reads back as the same number; JSON has no NaN and no infinity.
fn write_float<F: ryu::Float + Into<f64>>(text: &mut Vec<u8>, value: F) {
    if value.into().is_finite() {
        text.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else {
        text.extend_from_slice(b"null");
    }
}

fn write_tensor(text: &mut Vec<u8>, tensor: TensorRef<'_>) {
    if let [n_parts, shape @ ..] = tensor.shape {
        let part_bytes = shape.iter().product::<usize>() * tensor.dtype.size();
        text.push(b'[');
        for part_idx in 0..*n_parts {
            if part_idx > 0 {
                text.push(b',');
            }
            write_tensor(
                text,
                TensorRef { shape, bytes: &tensor.bytes[part_idx * part_bytes..][..part_bytes], ..tensor },
            );
        }
        text.push(b']');
        return;
    }
    match tensor.dtype {
        DType::U8 => write_int(text, tensor.bytes[0].into()),
        DType::I64 => write_int(text, i64::from_ne_bytes(element(tensor))),
        DType::F32 => write_float(text, f32::from_ne_bytes(element(tensor))),
        DType::F16 => write_float(text, f16::from_ne_bytes(element(tensor)).to_f32()),
        DType::BF16 => write_float(text, bf16::from_ne_bytes(element(tensor)).to_f32()),
    }
}

fn element<const N: usize>(tensor: TensorRef<'_>) -> [u8; N] {
    *tensor.bytes.first_chunk().expect("an element has the size of its type")
}

#[cfg(test)]
mod tests {
    use engine::data::{HeapPool, Slice, Tensor};
    use proptest::prelude::*;

    use super::*;

    fn text_of(column: &Column) -> String {
        let mut text = Vec::new();
        write_value(&mut text, column, 0);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn tensors_are_nested_arrays_of_the_shortest_numbers() {
        let alloc = HeapPool::new();
        let check = |tensor: Tensor, expected: &str| assert_eq!(text_of(&Column::Dense(tensor)), expected);
        check(
            Tensor::from_slice(&alloc, DType::F32, vec![1, 2, 2], &[0.1f32, 1e-9, 1., f32::NAN]),
            "[[0.1,1e-9],[1.0,null]]",
        );
        check(Tensor::from_slice(&alloc, DType::U8, vec![1, 3], &[0u8, 128, 255]), "[0,128,255]");
        check(Tensor::from_slice(&alloc, DType::I64, vec![1, 2], &[i64::MIN, 7]), "[-9223372036854775808,7]");
        check(Tensor::from_slice(&alloc, DType::F16, vec![1, 1], &[f16::from_f32(1.5)]), "[1.5]");
        check(Tensor::from_slice(&alloc, DType::BF16, vec![1, 1], &[bf16::from_f32(-2.)]), "[-2.0]");
        check(Tensor::from_slice(&alloc, DType::F32, vec![1], &[0.25f32]), "0.25");
        check(Tensor::from_slice(&alloc, DType::F32, vec![1, 0, 3], &[] as &[f32]), "[]");
    }

    proptest! {
        #[test]
        fn numbers_read_back_as_themselves(double: f64, single: f32, int: i64) {
            prop_assume!(double.is_finite() && single.is_finite());
            let text = text_of(&Column::Float(Slice::new(vec![double])));
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), double.to_bits());
            let tensor = Tensor::from_slice(&HeapPool::new(), DType::F32, vec![1], &[single]);
            prop_assert_eq!(text_of(&Column::Dense(tensor)).parse::<f32>().unwrap().to_bits(), single.to_bits());
            prop_assert_eq!(text_of(&Column::Int(Slice::new(vec![int]))).parse::<i64>().unwrap(), int);
        }
    }
}
