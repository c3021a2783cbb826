//! The types of elements, ONNX's and ours.

use std::fmt;

use engine::data::DType;

/// The type of a tensor's elements in a file, by its number in `TensorProto.DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element(pub i32);

impl Element {
    /// IEEE single precision.
    pub const FLOAT: Self = Self(1);
    /// Unsigned bytes.
    pub const UINT8: Self = Self(2);
    /// Signed 32-bit integers.
    pub const INT32: Self = Self(6);
    /// Signed 64-bit integers.
    pub const INT64: Self = Self(7);
    /// Truth values, a byte each.
    pub const BOOL: Self = Self(9);
    /// IEEE half precision.
    pub const FLOAT16: Self = Self(10);
    /// IEEE double precision.
    pub const DOUBLE: Self = Self(11);
    /// Brain float.
    pub const BFLOAT16: Self = Self(16);

    /// What a column of such elements has: 32-bit integers become 64-bit ones, double precision becomes single.
    pub fn dtype(self) -> Option<DType> {
        Some(match self {
            Self::FLOAT | Self::DOUBLE => DType::F32,
            Self::FLOAT16 => DType::F16,
            Self::BFLOAT16 => DType::BF16,
            Self::UINT8 | Self::BOOL => DType::U8,
            Self::INT32 | Self::INT64 => DType::I64,
            _ => return None,
        })
    }

    /// Bytes of an element, where [`Element::dtype`] is known.
    pub(super) fn size(self) -> usize {
        match self {
            Self::UINT8 | Self::BOOL => 1,
            Self::FLOAT16 | Self::BFLOAT16 => 2,
            Self::FLOAT | Self::INT32 => 4,
            _ => 8,
        }
    }
}

/// By the names of numpy.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            1 => "float32",
            2 => "uint8",
            3 => "int8",
            4 => "uint16",
            5 => "int16",
            6 => "int32",
            7 => "int64",
            8 => "string",
            9 => "bool",
            10 => "float16",
            11 => "float64",
            12 => "uint32",
            13 => "uint64",
            16 => "bfloat16",
            number => return write!(f, "type {number}"),
        })
    }
}
