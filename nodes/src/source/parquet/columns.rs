//! Which columns of a Parquet file become which columns of rows.

use arrow_schema::{DataType, Schema};
use engine::data::{ColumnType, DType, Dim};

/// What `bytes` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageForm {
    /// A struct of `bytes` and, mostly, `path`, as Hugging Face `datasets` writes images.
    Struct,
    /// The bytes of a file.
    Binary,
    /// The path or the URL of a file.
    Reference,
}

impl ImageForm {
    /// The form of a column of this type, if it can hold images.
    pub(super) fn of(ty: &DataType) -> Option<Self> {
        match ty {
            DataType::Struct(fields) => {
                let bytes = fields.iter().find(|field| field.name() == "bytes")?;
                (ImageForm::of(bytes.data_type()) == Some(ImageForm::Binary)).then_some(ImageForm::Struct)
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                Some(ImageForm::Binary)
            }
            ty if is_text(ty) => Some(ImageForm::Reference),
            _ => None,
        }
    }
}

/// A column that is carried along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CarriedColumn {
    pub(super) name: String,
    pub(super) ty: ColumnType,
}

/// The type that a column has in rows; `None` if rows have none of that kind.
pub(super) fn column_type(ty: &DataType) -> Option<ColumnType> {
    let is_float = |ty: &DataType| matches!(ty, DataType::Float16 | DataType::Float32 | DataType::Float64);
    Some(match ty {
        ty if is_text(ty) => ColumnType::Text,
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => ColumnType::Int,
        ty if is_float(ty) => ColumnType::Float,
        DataType::FixedSizeList(field, n) if is_float(field.data_type()) => {
            ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(usize::try_from(*n).ok()?)] }
        }
        DataType::List(field) | DataType::LargeList(field) if is_float(field.data_type()) => {
            ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Any] }
        }
        _ => return None,
    })
}

fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The names of the columns of a file, for messages.
pub(super) fn names(schema: &Schema) -> String {
    let names: Vec<_> =
        schema.fields().iter().take(50).map(|field| format!("`{}` ({})", field.name(), field.data_type())).collect();
    names.join(", ")
}
