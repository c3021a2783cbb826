//! Contiguous tensors with the rows as leading dimension.

use std::borrow::Cow;

use half::{bf16, f16};

use super::{Alloc, Buffer, DType, SharedAt};

/// A contiguous tensor, row-major, in shared immutable memory. Clones and row slices share the memory.
#[derive(Clone, Debug)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    buffer: Buffer,
    offset: usize,
}

impl Tensor {
    /// Views `buffer` as a tensor.
    ///
    /// # Panics
    /// If the buffer is too small: the caller allocated it.
    pub fn new(dtype: DType, shape: Vec<usize>, buffer: Buffer) -> Self {
        let needed = shape.iter().product::<usize>() * dtype.size();
        assert!(buffer.bytes().len() >= needed, "a tensor of {needed} bytes in a buffer of {}", buffer.bytes().len());
        Tensor { dtype, shape, buffer, offset: 0 }
    }

    /// Views `buffer` from byte `offset` on as a tensor; `None` if it ends before.
    pub fn at(dtype: DType, shape: Vec<usize>, buffer: Buffer, offset: usize) -> Option<Self> {
        let needed = shape.iter().try_fold(dtype.size(), |product, &dim| product.checked_mul(dim))?;
        let end = offset.checked_add(needed)?;
        (end <= buffer.bytes().len()).then_some(Tensor { dtype, shape, buffer, offset })
    }

    /// A tensor in memory from `alloc`, filled with `values`.
    ///
    /// # Panics
    /// If the number of values is not the product of `shape`.
    pub fn from_slice<T: bytemuck::NoUninit>(alloc: &dyn Alloc, dtype: DType, shape: Vec<usize>, values: &[T]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        assert_eq!(bytes.len(), shape.iter().product::<usize>() * dtype.size(), "values and shape {shape:?} differ");
        let mut buffer = alloc.alloc(bytes.len());
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Tensor::new(dtype, shape, buffer.freeze())
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions; the first is the number of rows.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of rows: the leading dimension, 1 for a scalar.
    pub fn n_rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.shape.iter().skip(1).product::<usize>() * self.dtype.size()
    }

    /// All the bytes.
    pub fn bytes(&self) -> &[u8] {
        let len = self.shape.iter().product::<usize>() * self.dtype.size();
        &self.buffer.bytes()[self.offset..self.offset + len]
    }

    /// Where other processes find the first byte, if the memory is one that they can map.
    pub fn shared(&self) -> Option<SharedAt> {
        let at = self.buffer.shared()?;
        Some(SharedAt { offset: at.offset + self.offset as u64, ..at })
    }

    /// The whole tensor as a reference that knows its type and shape.
    pub fn view(&self) -> TensorRef<'_> {
        TensorRef { dtype: self.dtype, shape: &self.shape, bytes: self.bytes() }
    }

    /// One row, without the leading dimension.
    pub fn row(&self, row_idx: usize) -> TensorRef<'_> {
        let len = self.row_bytes();
        TensorRef { dtype: self.dtype, shape: &self.shape[1..], bytes: &self.bytes()[row_idx * len..][..len] }
    }

    /// Rows `start..start + n_rows`, sharing the memory.
    pub fn rows(&self, start: usize, n_rows: usize) -> Tensor {
        assert!(start + n_rows <= self.n_rows(), "rows {start}+{n_rows} of {}", self.n_rows());
        let mut shape = self.shape.clone();
        shape[0] = n_rows;
        Tensor { shape, offset: self.offset + start * self.row_bytes(), ..self.clone() }
    }

    /// The same memory seen as `n_rows` rows, if the buffer has room for them: how a part batch is computed at the
    /// planned shape without a copy. Rows beyond the original ones hold whatever the buffer does.
    pub fn padded(&self, n_rows: usize) -> Option<Tensor> {
        if self.offset + n_rows * self.row_bytes() > self.buffer.bytes().len() {
            return None;
        }
        let mut shape = self.shape.clone();
        *shape.first_mut()? = n_rows;
        Some(Tensor { shape, ..self.clone() })
    }
}

/// A borrowed tensor: type, shape, bytes.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub shape: &'a [usize],
    /// The elements, row-major, native byte order.
    pub bytes: &'a [u8],
}

impl<'a> TensorRef<'a> {
    /// The elements as `f32`, without a copy where they are that already.
    pub fn to_f32(self) -> Cow<'a, [f32]> {
        match self.dtype {
            DType::F32 => match bytemuck::try_cast_slice(self.bytes) {
                Ok(values) => Cow::Borrowed(values),
                Err(_) => Cow::Owned(self.chunks().map(f32::from_ne_bytes).collect()),
            },
            DType::U8 => Cow::Owned(self.bytes.iter().map(|&value| f32::from(value)).collect()),
            DType::F16 => Cow::Owned(self.chunks().map(|raw| f16::from_ne_bytes(raw).to_f32()).collect()),
            DType::BF16 => Cow::Owned(self.chunks().map(|raw| bf16::from_ne_bytes(raw).to_f32()).collect()),
            DType::I64 => Cow::Owned(self.chunks().map(|raw| i64::from_ne_bytes(raw) as f32).collect()),
        }
    }

    /// Whether no element is NaN or infinite.
    pub fn is_finite(self) -> bool {
        // The exponent's bits are all set in exactly the NaNs and infinities; looking at bits needs no conversion.
        match self.dtype {
            DType::U8 | DType::I64 => true,
            DType::F32 => self.chunks().all(|raw| u32::from_ne_bytes(raw) & 0x7f80_0000 != 0x7f80_0000),
            DType::F16 => self.chunks().all(|raw| u16::from_ne_bytes(raw) & 0x7c00 != 0x7c00),
            DType::BF16 => self.chunks().all(|raw| u16::from_ne_bytes(raw) & 0x7f80 != 0x7f80),
        }
    }

    fn chunks<const N: usize>(self) -> impl Iterator<Item = [u8; N]> + 'a {
        self.bytes.as_chunks::<N>().0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::HeapPool;

    #[test]
    fn rows_share_the_memory_and_keep_their_bytes() {
        let tensor = Tensor::from_slice(&HeapPool::new(), DType::F32, vec![3, 2], &[0f32, 1., 2., 3., 4., 5.]);
        let tail = tensor.rows(1, 2);
        assert_eq!(tail.shape(), [2, 2]);
        assert_eq!(*tail.row(1).to_f32(), [4., 5.]);
        assert_eq!(tail.bytes().as_ptr(), tensor.row(1).bytes.as_ptr());
    }

    #[test]
    fn non_finite_elements_are_seen_in_every_float_type() {
        let check = |dtype, bytes: &[u8]| TensorRef { dtype, shape: &[1], bytes }.is_finite();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!check(DType::F32, &bad.to_ne_bytes()));
            assert!(!check(DType::F16, &f16::from_f32(bad).to_ne_bytes()));
            assert!(!check(DType::BF16, &bf16::from_f32(bad).to_ne_bytes()));
        }
        assert!(check(DType::F32, &f32::MAX.to_ne_bytes()));
        assert!(check(DType::F16, &f16::MAX.to_ne_bytes()));
    }
}
