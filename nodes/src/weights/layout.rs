//! Where one tensor's values lie in a file, proven to lie inside it.

use std::borrow::Cow;
use std::ops::Range;

use super::element::Element;
use super::error::{WeightsFault, grouped};

/// More than any model has.
pub(super) const MAX_DIMS: usize = 16;

/// A tensor's shape and place. One that exists lies inside its region: reading it never leaves the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    pub element: Element,
    pub shape: Vec<usize>,
    /// Bytes of the tensor in row-major order; fits in memory if the file does.
    pub n_bytes: usize,
    /// The bytes of the file between the first and the last element.
    span: Range<usize>,
    /// In elements; `None` when the values already lie in row-major order.
    strides: Option<Vec<usize>>,
}

/// A part of the file that holds elements, such as one torch storage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Region {
    pub element: Element,
    pub bytes: Range<usize>,
}

impl Layout {
    /// A tensor that fills `region` in row-major order.
    pub fn row_major(name: &str, shape: Vec<usize>, region: Region) -> Result<Self, WeightsFault> {
        let strides = row_major_strides(name, &shape)?;
        let n_bytes = shape.iter().try_fold(region.element.size(), |product, dim| product.checked_mul(*dim));
        if n_bytes != Some(region.bytes.len()) {
            let wanted = n_bytes.map_or("too many".into(), |n_bytes| grouped(n_bytes as u64));
            let set_aside = grouped(region.bytes.len() as u64);
            let problem = format!(
                "has shape {shape:?} of {:?}, which is {wanted} bytes, and {set_aside} bytes are set aside for it",
                region.element
            );
            return Err(WeightsFault::tensor(name, problem));
        }
        Self::strided(name, shape, &strides, 0, &region)
    }

    /// A tensor that takes elements out of `region`, from `offset` on, `strides` apart.
    pub fn strided(
        name: &str,
        shape: Vec<usize>,
        strides: &[usize],
        offset: usize,
        region: &Region,
    ) -> Result<Self, WeightsFault> {
        let fail = |problem: String| Err(WeightsFault::tensor(name, problem));
        if shape.len() > MAX_DIMS {
            return fail(format!("has {} dimensions; at most {MAX_DIMS} are read", shape.len()));
        }
        if shape.len() != strides.len() {
            return fail(format!("has {} dimensions and {} strides", shape.len(), strides.len()));
        }
        let size = region.element.size();
        let Some(n_elements) = shape.iter().try_fold(1usize, |product, dim| product.checked_mul(*dim)) else {
            return fail(format!("has shape {shape:?}, more elements than any memory holds"));
        };
        let available = region.bytes.len() / size;
        let furthest = shape
            .iter()
            .zip(strides)
            .try_fold(offset, |sum, (dim, stride)| dim.saturating_sub(1).checked_mul(*stride)?.checked_add(sum));
        // One behind the last element; an empty tensor has no last element.
        let end =
            if n_elements == 0 { Some(offset.min(available)) } else { furthest.and_then(|last| last.checked_add(1)) };
        let Some(end) = end.filter(|end| *end <= available) else {
            let strides = format!("shape {shape:?} with strides {strides:?} from element {offset}");
            return fail(format!("reaches out of its storage of {available} elements: {strides}"));
        };
        // A stride of zero repeats values without bytes behind them. A file may do so up to its storage's own size
        // (torch expands scalars), and no further: otherwise a small file could ask for all memory.
        if n_elements > available.max(1 << 16) {
            return fail(format!("has shape {shape:?} and a storage of only {available} elements"));
        }
        let start = region.bytes.start + offset.min(end) * size;
        let span = start..region.bytes.start + end * size;
        let row_major = row_major_strides(name, &shape)?;
        let is_row_major =
            shape.iter().zip(strides).zip(&row_major).all(|((dim, have), want)| *dim <= 1 || have == want);
        let strides = (n_elements > 0 && !is_row_major).then(|| strides.to_vec());
        Ok(Self { element: region.element, shape, n_bytes: n_elements * size, span, strides })
    }

    /// Where in its file it lies.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The tensor's bytes in row-major order out of the file's bytes; `None` if the file is not the one measured.
    pub fn bytes<'a>(&self, file: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let span = file.get(self.span.clone())?;
        match &self.strides {
            None => Some(Cow::Borrowed(span)),
            Some(strides) => Some(Cow::Owned(self.gather(span, strides))),
        }
    }

    fn gather(&self, span: &[u8], strides: &[usize]) -> Vec<u8> {
        let size = self.element.size();
        let (Some((inner_dim, outer_dims)), Some((inner_stride, outer_strides))) =
            (self.shape.split_last(), strides.split_last())
        else {
            return span.to_vec();
        };
        let mut gathered = Vec::with_capacity(self.n_bytes);
        let mut index = vec![0; outer_dims.len()];
        let mut start = 0;
        loop {
            for place in 0..*inner_dim {
                let at = (start + place * inner_stride) * size;
                gathered.extend_from_slice(&span[at..at + size]);
            }
            // Counts the outer indices up like an odometer, the last fastest.
            let mut dim = outer_dims.len();
            loop {
                if dim == 0 {
                    return gathered;
                }
                dim -= 1;
                index[dim] += 1;
                start += outer_strides[dim];
                if index[dim] < outer_dims[dim] {
                    break;
                }
                start -= outer_strides[dim] * outer_dims[dim];
                index[dim] = 0;
            }
        }
    }
}

fn row_major_strides(name: &str, shape: &[usize]) -> Result<Vec<usize>, WeightsFault> {
    let mut strides = vec![1usize; shape.len()];
    for dim in (1..shape.len()).rev() {
        let Some(stride) = strides[dim].checked_mul(shape[dim].max(1)) else {
            return Err(WeightsFault::tensor(
                name,
                format!("has shape {shape:?}, more elements than any memory holds"),
            ));
        };
        strides[dim - 1] = stride;
    }
    Ok(strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(n_elements: u8) -> Region {
        Region { element: Element::U8, bytes: 2..2 + usize::from(n_elements) }
    }

    /// What a tensor over the bytes 0, 1, 2, … reads, the region beginning at byte 2.
    fn check(shape: &[usize], strides: &[usize], offset: usize, expected: &[u8]) {
        let file: Vec<u8> = (0..32).collect();
        let layout = Layout::strided("t", shape.to_vec(), strides, offset, &bytes_of(24)).unwrap();
        assert_eq!(layout.bytes(&file).unwrap().as_ref(), expected, "{shape:?} {strides:?} {offset}");
        assert_eq!(layout.n_bytes, expected.len());
    }

    #[test]
    fn strided_tensors_come_out_row_major() {
        check(&[2, 3], &[3, 1], 1, &[3, 4, 5, 6, 7, 8]);
        check(&[2, 3], &[1, 2], 0, &[2, 4, 6, 3, 5, 7]);
        check(&[2, 1, 2], &[12, 99, 5], 0, &[2, 7, 14, 19]);
        check(&[3], &[0], 4, &[6, 6, 6]);
        check(&[2, 2, 2], &[1, 2, 4], 0, &[2, 6, 4, 8, 3, 7, 5, 9]);
        check(&[], &[], 23, &[25]);
        check(&[0, 5], &[5, 1], 0, &[]);
        check(&[5, 0], &[1, 5], 24, &[]);
    }

    #[test]
    fn row_major_tensors_are_not_copied() {
        let layout = Layout::row_major("t", vec![4, 6], bytes_of(24)).unwrap();
        let file = [7; 32];
        assert!(matches!(layout.bytes(&file), Some(Cow::Borrowed(bytes)) if bytes.len() == 24));
    }

    #[test]
    fn a_tensor_cannot_reach_out_of_its_storage() {
        let refused = |shape: &[usize], strides: &[usize], offset, expected: &str| {
            let error = Layout::strided("t", shape.to_vec(), strides, offset, &bytes_of(24)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(&[25], &[1], 0, "reaches out of its storage of 24 elements");
        refused(&[2], &[24], 0, "reaches out");
        refused(&[2], &[usize::MAX], 0, "reaches out");
        refused(&[3], &[usize::MAX / 2], 0, "reaches out");
        refused(&[1], &[1], usize::MAX, "reaches out");
        refused(&[2, 2], &[1], 0, "2 dimensions and 1 strides");
        refused(&[usize::MAX, 2], &[0, 0], 0, "more elements than any memory holds");
        refused(&[1 << 40], &[0], 0, "a storage of only 24 elements");
        refused(&[1; 17], &[1; 17], 0, "17 dimensions");
    }

    #[test]
    fn a_row_major_tensor_fills_its_region() {
        let error = Layout::row_major("t", vec![5, 5], bytes_of(24)).unwrap_err().to_string();
        assert!(error.contains("25 bytes, and 24 bytes are set aside"), "{error}");
        let error = Layout::row_major("t", vec![4, 5], bytes_of(24)).unwrap_err().to_string();
        assert!(error.contains("20 bytes, and 24 bytes are set aside"), "{error}");
    }
}
