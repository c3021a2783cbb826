//! `transform.test_tensor`: tensors without an image.

use std::sync::Arc;

use engine::data::{ColumnType, DType, Dim, Reject, Role, RowMut, RowRef};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::element;

/// Adds a column of tensors whose elements follow from the row's index.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeTensor {
    /// The shape of a row.
    #[serde(default = "default_shape")]
    shape: Vec<usize>,
    /// The type of an element.
    #[serde(default)]
    dtype: Element,
    /// Rows, by index, whose first element is a NaN; only for `f32`.
    #[serde(default)]
    non_finite: Vec<u64>,
    /// Whether each row bears its index, by which `infer.test` finds chosen rows: as its first element, or with `u8` as
    /// its first four, little-endian.
    #[serde(default)]
    numbered: bool,
    /// The name of the new column.
    #[serde(default = "default_as", rename = "as")]
    output: String,
}

/// The type of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Element {
    /// Bytes.
    U8,
    /// Single precision.
    #[default]
    F32,
}

fn default_shape() -> Vec<usize> {
    vec![4]
}

fn default_as() -> String {
    "tensor".to_owned()
}

impl MakeTensor {
    fn dtype(&self) -> DType {
        match self.dtype {
            Element::U8 => DType::U8,
            Element::F32 => DType::F32,
        }
    }
}

impl NodeKind for MakeTensor {
    const NAME: &'static str = "transform.test_tensor";
    const EXAMPLE: &'static str = "tensors: {kind: transform.test_tensor, with: {shape: [3, 2]}}";
}

impl Node for MakeTensor {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let least = if self.dtype == Element::U8 { 4 } else { 1 };
        if self.numbered && self.shape.iter().product::<usize>() < least {
            let message = format!("a row bears its index in {least} elements, and has fewer");
            return Err(SpecError::new(message).at(&["shape"]));
        }
        let shape = self.shape.iter().map(|&dim| Dim::Fixed(dim)).collect();
        let spec = NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[]) };
        spec.with_new(&self.output, ColumnType::Tensor { dtype: self.dtype(), shape }, Role::Result)
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Rows(Arc::new(self.clone())))
    }
}

impl RowMap for MakeTensor {
    fn map_row(&self, row: RowRef<'_>, out: &mut RowMut<'_>) -> Result<(), Reject> {
        let index = row.pos().index;
        let n_elements = self.shape.iter().product();
        let mut buffer = out.alloc(self.dtype(), &self.shape);
        match self.dtype {
            Element::U8 => {
                (0..n_elements).for_each(|at| buffer.bytes_mut()[at] = element(index, at));
                if self.numbered {
                    buffer.bytes_mut()[..4].copy_from_slice(&(index as u32).to_le_bytes());
                }
            }
            Element::F32 => {
                let values = buffer.bytes_mut().as_chunks_mut::<4>().0;
                (0..n_elements).for_each(|at| values[at] = f32::from(element(index, at)).to_ne_bytes());
                if self.numbered {
                    values[0] = (index as f32).to_ne_bytes();
                }
                if self.non_finite.contains(&index) {
                    values[0] = f32::NAN.to_ne_bytes();
                }
            }
        }
        out.tensor(0, self.dtype(), &self.shape, buffer);
        Ok(())
    }
}
