//! The types of numbers that weight files hold, and how their bytes become candle tensors.

use candle_core::{Device, Result, Tensor};
use half::{bf16, f16};

/// What one element of a stored tensor is; little-endian, as all formats read here store them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// 32-bit float.
    F32,
    /// IEEE half.
    F16,
    /// The upper half of a 32-bit float.
    Bf16,
    /// 64-bit float.
    F64,
    /// 64-bit integer: batch counters and position ids.
    I64,
    /// 32-bit integer.
    I32,
    /// 16-bit integer.
    I16,
    /// 8-bit integer.
    I8,
    /// A byte.
    U8,
    /// A byte that is 0 or 1.
    Bool,
}

impl Element {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether these are numbers that a model computes with, and not counters or masks.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16 | Self::F64)
    }

    /// A tensor of `shape` on the CPU from its bytes in row-major order, in the candle type that holds every value:
    /// 8-bit integers become 16-bit ones, and truth values bytes.
    pub(super) fn tensor(self, bytes: &[u8], shape: &[usize]) -> Result<Tensor> {
        macro_rules! decode {
            ($t:ty, $n:literal) => {{
                let (elements, _) = bytes.as_chunks::<$n>();
                let values: Vec<$t> = elements.iter().map(|element| <$t>::from_le_bytes(*element)).collect();
                Tensor::from_vec(values, shape, &Device::Cpu)
            }};
        }
        match self {
            Self::F32 => decode!(f32, 4),
            Self::F16 => decode!(f16, 2),
            Self::Bf16 => decode!(bf16, 2),
            Self::F64 => decode!(f64, 8),
            Self::I64 => decode!(i64, 8),
            Self::I32 => decode!(i32, 4),
            Self::I16 => decode!(i16, 2),
            Self::I8 => {
                let values: Vec<i16> = bytes.iter().map(|byte| i16::from(byte.cast_signed())).collect();
                Tensor::from_vec(values, shape, &Device::Cpu)
            }
            Self::U8 | Self::Bool => Tensor::from_vec(bytes.to_vec(), shape, &Device::Cpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(element: Element, bytes: &[u8], expected: &[f64]) {
        let tensor = element.tensor(bytes, &[expected.len()]).unwrap();
        let values: Vec<f64> = tensor.to_dtype(candle_core::DType::F64).unwrap().to_vec1().unwrap();
        assert_eq!(values, expected, "{element:?}");
        assert_eq!(bytes.len(), element.size() * expected.len());
    }

    #[test]
    fn every_element_type_is_read_little_endian() {
        check(Element::F32, &[0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0], &[1.0, -2.5]);
        check(Element::F16, &[0, 0x3c, 0, 0xc1], &[1.0, -2.5]);
        check(Element::Bf16, &[0x80, 0x3f, 0x20, 0xc0], &[1.0, -2.5]);
        check(Element::F64, &[0, 0, 0, 0, 0, 0, 0x04, 0xc0], &[-2.5]);
        check(Element::I64, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &[-2.0]);
        check(Element::I32, &[0, 1, 0, 0], &[256.0]);
        check(Element::I16, &[0, 0x80], &[-32768.0]);
        check(Element::I8, &[0x80, 1], &[-128.0, 1.0]);
        check(Element::U8, &[0x80, 1], &[128.0, 1.0]);
        check(Element::Bool, &[0, 1], &[0.0, 1.0]);
    }
}
