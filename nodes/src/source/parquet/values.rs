//! Values out of Arrow's columns.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bytes::Bytes;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Text(String),
    Int(i64),
    Float(f64),
    Floats(Vec<f32>),
}

/// Where the bytes of a row come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Image {
    Bytes(Bytes),
    Reference(String),
    Missing,
}

/// The value of row `row_idx` of a column of a type that rows have.
pub(super) fn cell(array: &ArrayRef, row_idx: usize) -> Cell {
    if array.is_null(row_idx) {
        return Cell::Null;
    }
    match array.data_type() {
        DataType::Boolean => Cell::Int(array.as_boolean().value(row_idx).into()),
        DataType::Int8 => Cell::Int(array.as_primitive::<Int8Type>().value(row_idx).into()),
        DataType::Int16 => Cell::Int(array.as_primitive::<Int16Type>().value(row_idx).into()),
        DataType::Int32 => Cell::Int(array.as_primitive::<Int32Type>().value(row_idx).into()),
        DataType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row_idx)),
        DataType::UInt8 => Cell::Int(array.as_primitive::<UInt8Type>().value(row_idx).into()),
        DataType::UInt16 => Cell::Int(array.as_primitive::<UInt16Type>().value(row_idx).into()),
        DataType::UInt32 => Cell::Int(array.as_primitive::<UInt32Type>().value(row_idx).into()),
        DataType::UInt64 => {
            i64::try_from(array.as_primitive::<UInt64Type>().value(row_idx)).map_or(Cell::Null, Cell::Int)
        }
        DataType::Float16 => Cell::Float(array.as_primitive::<Float16Type>().value(row_idx).into()),
        DataType::Float32 => Cell::Float(array.as_primitive::<Float32Type>().value(row_idx).into()),
        DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row_idx)),
        DataType::FixedSizeList(..) => floats(&array.as_fixed_size_list().value(row_idx)),
        DataType::List(_) => floats(&array.as_list::<i32>().value(row_idx)),
        DataType::LargeList(_) => floats(&array.as_list::<i64>().value(row_idx)),
        _ => text(array, row_idx).map_or(Cell::Null, Cell::Text),
    }
}

fn floats(array: &ArrayRef) -> Cell {
    if array.null_count() > 0 {
        return Cell::Null;
    }
    Cell::Floats(match array.data_type() {
        DataType::Float16 => array.as_primitive::<Float16Type>().values().iter().map(|value| value.to_f32()).collect(),
        DataType::Float32 => array.as_primitive::<Float32Type>().values().to_vec(),
        DataType::Float64 => array.as_primitive::<Float64Type>().values().iter().map(|&value| value as f32).collect(),
        _ => return Cell::Null,
    })
}

/// Text, if there is one.
pub(super) fn text(array: &ArrayRef, row_idx: usize) -> Option<String> {
    if array.is_null(row_idx) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(row_idx).to_owned()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row_idx).to_owned()),
        DataType::Utf8View => Some(array.as_string_view().value(row_idx).to_owned()),
        _ => None,
    }
}

/// Bytes, if there are some.
fn bytes(array: &ArrayRef, row_idx: usize) -> Option<Bytes> {
    if array.is_null(row_idx) {
        return None;
    }
    let bytes = match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row_idx),
        DataType::LargeBinary => array.as_binary::<i64>().value(row_idx),
        DataType::BinaryView => array.as_binary_view().value(row_idx),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row_idx),
        _ => return None,
    };
    Some(Bytes::copy_from_slice(bytes))
}

/// The image of row `row_idx`, and its path where that is known.
pub(super) fn image(array: &ArrayRef, row_idx: usize) -> (Image, Option<String>) {
    if array.is_null(row_idx) {
        return (Image::Missing, None);
    }
    if let Some(fields) = array.as_struct_opt() {
        let path = fields.column_by_name("path").and_then(|paths| text(paths, row_idx)).filter(|path| !path.is_empty());
        let image = match fields.column_by_name("bytes").and_then(|column| bytes(column, row_idx)) {
            Some(bytes) => Image::Bytes(bytes),
            None => path.clone().map_or(Image::Missing, Image::Reference),
        };
        return (image, path);
    }
    match bytes(array, row_idx) {
        Some(bytes) => (Image::Bytes(bytes), None),
        None => match text(array, row_idx) {
            Some(text) => (Image::Reference(text.clone()), Some(text)),
            None => (Image::Missing, None),
        },
    }
}
