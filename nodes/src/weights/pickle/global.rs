//! The only names that a pickle may ask for. None of them is run: each stands for data that is built here.

use crate::weights::element::Element;

/// A name out of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Size,
    Storage(Element),
    /// `torch.float32` and its like, which say nothing that a storage does not.
    Dtype,
}

impl Global {
    /// `None` for every name that is not on the list.
    pub fn find(module: &str, name: &str) -> Option<Self> {
        Some(match (module, name) {
            ("collections", "OrderedDict") => Self::OrderedDict,
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Self::RebuildTensor,
            ("torch._utils", "_rebuild_parameter") => Self::RebuildParameter,
            ("torch", "Size") => Self::Size,
            ("torch", "FloatStorage") => Self::Storage(Element::F32),
            ("torch", "HalfStorage") => Self::Storage(Element::F16),
            ("torch", "BFloat16Storage") => Self::Storage(Element::Bf16),
            ("torch", "DoubleStorage") => Self::Storage(Element::F64),
            ("torch", "LongStorage") => Self::Storage(Element::I64),
            ("torch", "IntStorage") => Self::Storage(Element::I32),
            ("torch", "ShortStorage") => Self::Storage(Element::I16),
            ("torch", "CharStorage") => Self::Storage(Element::I8),
            ("torch", "ByteStorage") => Self::Storage(Element::U8),
            ("torch", "BoolStorage") => Self::Storage(Element::Bool),
            (
                "torch",
                "float32" | "float16" | "bfloat16" | "float64" | "int64" | "int32" | "int16" | "int8" | "uint8"
                | "bool",
            ) => Self::Dtype,
            _ => return None,
        })
    }
}
