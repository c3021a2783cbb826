//! `batch`: rows put together for a model.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use engine::data::{Alloc, Batch, BufferMut, Column, ColumnBuilder, ColumnType, DType, RowPos, Schema, Tensor};
use engine::node::{BuildCx, Fault, Fold, Node, NodeKind, NodeSpec, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use engine::config::Duration;

/// Puts rows together into batches of a fixed size, so that a model computes many at once.
///
/// A batch leaves when it is full; the last one, and with `max_wait` others, may have fewer rows. An `infer` node that
/// has none before it gets one of these by itself.
///
/// # Input
/// Any columns.
///
/// # Output
/// The same columns. Tensors of a fixed shape become one tensor a batch.
///
/// # Example
/// ```yaml
/// batches: {kind: batch, with: {size: 64}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// Rows of a batch.
    #[serde(default = "default_size")]
    size: NonZeroUsize,
    /// The longest that a row waits for others; then the batch leaves as it is. Absent: it waits until the batch is full
    /// or the input ends.
    max_wait: Option<Duration>,
}

fn default_size() -> NonZeroUsize {
    const { NonZeroUsize::new(32).unwrap() }
}

impl NodeKind for Pack {
    const NAME: &'static str = "batch";
    const INCIDENTAL: &'static [&'static str] = &["size", "max_wait"];
    const EXAMPLE: &'static str = "batches: {kind: batch, with: {size: 64}}";
}

impl Node for Pack {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let spec = NodeSpec::passing(cx.input(), &[]).with_detail(self.size.to_string());
        Ok(NodeSpec { batch: Some(self.size.get()), ..spec })
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Fold(Box::new(Packer {
            size: self.size.get(),
            max_wait: self.max_wait.map(Duration::get),
            schema: cx.input().clone(),
            alloc: cx.alloc.clone(),
            held: None,
        })))
    }
}

struct Packer {
    size: usize,
    max_wait: Option<std::time::Duration>,
    schema: Schema,
    alloc: Arc<dyn Alloc>,
    held: Option<Held>,
}

/// A batch that is not yet full; it has at least one row.
struct Held {
    positions: Vec<RowPos>,
    columns: Vec<HeldColumn>,
    deadline: Option<Instant>,
}

enum HeldColumn {
    /// Rows of one shape, in memory for a whole batch, so that a part batch can be computed at the planned shape.
    Dense {
        buffer: BufferMut,
        dtype: DType,
        shape: Vec<usize>,
    },
    Other(ColumnBuilder),
}

impl Fold for Packer {
    fn push(&mut self, batch: Batch, out: &mut Vec<Batch>) -> Result<(), Fault> {
        let mut n_taken = 0;
        while n_taken < batch.n_rows() {
            let held = self.held.get_or_insert_with(|| Held {
                positions: Vec::with_capacity(self.size.min(1024)),
                columns: self
                    .schema
                    .fields
                    .iter()
                    .map(|field| HeldColumn::new(&field.ty, self.size, &*self.alloc))
                    .collect(),
                deadline: self.max_wait.and_then(|wait| Instant::now().checked_add(wait)),
            });
            let n_rows = (self.size - held.positions.len()).min(batch.n_rows() - n_taken);
            for (held_column, column) in held.columns.iter_mut().zip(batch.columns()) {
                held_column.append(held.positions.len(), column, n_taken, n_rows)?;
            }
            held.positions.extend_from_slice(&batch.positions()[n_taken..n_taken + n_rows]);
            n_taken += n_rows;
            if held.positions.len() == self.size {
                self.flush(out)?;
            }
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.held.as_ref()?.deadline
    }

    fn held(&self) -> Option<RowPos> {
        self.held.as_ref()?.positions.first().copied()
    }

    fn flush(&mut self, out: &mut Vec<Batch>) -> Result<(), Fault> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let n_rows = held.positions.len();
        let columns = held.columns.into_iter().map(|column| column.finish(n_rows, self.size)).collect();
        out.push(Batch::new(held.positions, columns));
        Ok(())
    }
}

impl HeldColumn {
    fn new(ty: &ColumnType, size: usize, alloc: &dyn Alloc) -> Self {
        match ty.fixed_shape() {
            Some((dtype, shape)) => {
                let n_bytes = shape.iter().product::<usize>() * dtype.size() * size;
                HeldColumn::Dense { buffer: alloc.alloc(n_bytes), dtype, shape }
            }
            None => HeldColumn::Other(ColumnBuilder::new(ty)),
        }
    }

    /// Appends rows `from..from + n_rows` of `column` to the `n_held` that are here.
    fn append(&mut self, n_held: usize, column: &Column, from: usize, n_rows: usize) -> Result<(), Fault> {
        let (buffer, dtype, shape) = match self {
            HeldColumn::Other(builder) => {
                (from..from + n_rows).for_each(|row_idx| builder.push_from(column, row_idx));
                return Ok(());
            }
            HeldColumn::Dense { buffer, dtype, shape } => (buffer, *dtype, &shape[..]),
        };
        let row_bytes = shape.iter().product::<usize>() * dtype.size();
        let mut free = &mut buffer.bytes_mut()[n_held * row_bytes..];
        let mut copy = |tensor: &Tensor| {
            if tensor.dtype() != dtype || tensor.shape()[1..] != *shape {
                let message = format!(
                    "a row is {} {:?}, and {dtype} {shape:?} was announced",
                    tensor.dtype(),
                    &tensor.shape()[1..]
                );
                return Err(Fault::bug(message));
            }
            let (taken, rest) = std::mem::take(&mut free).split_at_mut(tensor.bytes().len());
            taken.copy_from_slice(tensor.bytes());
            free = rest;
            Ok(())
        };
        match column {
            Column::Dense(tensor) => copy(&tensor.rows(from, n_rows)),
            Column::Ragged(tensors) => tensors.values()[from..from + n_rows].iter().try_for_each(copy),
            _ => Err(Fault::bug("a column announced as a tensor is none")),
        }
    }

    fn finish(self, n_rows: usize, size: usize) -> Column {
        match self {
            HeldColumn::Other(builder) => builder.finish(),
            HeldColumn::Dense { mut buffer, dtype, shape } => {
                let row_bytes = shape.iter().product::<usize>() * dtype.size();
                buffer.bytes_mut()[n_rows * row_bytes..size * row_bytes].fill(0);
                let shape = std::iter::once(n_rows).chain(shape).collect();
                Column::Dense(Tensor::new(dtype, shape, buffer.freeze()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::data::{Dim, Field, Role, RowMut};
    use engine::node::harness::{Harness, batch};

    use super::*;

    fn schema() -> Schema {
        let fixed = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(2)] };
        let ragged = ColumnType::Tensor { dtype: DType::U8, shape: vec![Dim::Any] };
        let fields = vec![
            Field::new("uri", ColumnType::Text, Role::Uri),
            Field::new("fixed", fixed, Role::Result),
            Field::new("ragged", ragged, Role::Result),
        ];
        Schema { fields, batch: None }
    }

    fn write(index: u64, out: &mut RowMut<'_>) {
        out.text(0, &format!("row {index}"));
        let mut buffer = out.alloc(DType::F32, &[2]);
        buffer.bytes_mut()[..8].copy_from_slice(bytemuck::cast_slice(&[index as f32, -(index as f32)]));
        out.tensor(1, DType::F32, &[2], buffer);
        let shape = [index as usize % 3];
        out.tensor(2, DType::U8, &shape, out.alloc(DType::U8, &shape));
    }

    /// Pushes portions of the sizes given and returns the batches.
    fn packed(with: &str, portions: &[usize]) -> Vec<Batch> {
        let mut fold = Harness::new::<Pack>(with, vec![schema()]).fold();
        let mut out = Vec::new();
        let mut first = 0;
        for &n_rows in portions {
            fold.push(batch(&schema(), first, n_rows, write), &mut out).unwrap();
            first += n_rows as u64;
            let held = first - out.iter().map(|batch| batch.n_rows() as u64).sum::<u64>();
            assert_eq!(fold.held(), (held > 0).then(|| RowPos::new(0, first - held)));
        }
        fold.flush(&mut out).unwrap();
        assert_eq!(fold.held(), None);
        out
    }

    #[test]
    fn batches_have_the_size_and_rows_keep_their_order_and_values() {
        for portions in [&[10][..], &[1; 10], &[3, 7], &[4, 4, 2], &[0, 9, 1]] {
            let batches = packed("size: 4", portions);
            assert_eq!(batches.iter().map(Batch::n_rows).collect::<Vec<_>>(), [4, 4, 2]);
            for (index, (batch, row_idx)) in
                batches.iter().flat_map(|batch| (0..batch.n_rows()).map(move |row_idx| (batch, row_idx))).enumerate()
            {
                let row = batch.row(row_idx);
                assert_eq!(row.pos(), RowPos::new(0, index as u64));
                assert_eq!(row.text(0), format!("row {index}"));
                assert_eq!(*row.tensor(1).to_f32(), [index as f32, -(index as f32)]);
                assert_eq!(row.tensor(2).shape, [index % 3]);
            }
        }
    }

    #[test]
    fn a_part_batch_can_be_computed_at_the_planned_shape_and_its_tail_is_zero() {
        let mut fold = Harness::new::<Pack>("size: 8", vec![schema()]).fold();
        let mut out = Vec::new();
        fold.push(batch(&schema(), 100, 8, write), &mut out).unwrap();
        // Its memory is given out again, with these rows still in it.
        out.clear();
        fold.push(batch(&schema(), 8, 3, write), &mut out).unwrap();
        fold.flush(&mut out).unwrap();
        let Column::Dense(tensor) = &out[0].columns()[1] else { panic!("not dense") };
        let padded = tensor.padded(8).expect("there is room for the whole batch");
        assert_eq!(padded.bytes().as_ptr(), tensor.bytes().as_ptr());
        assert_eq!(*padded.row(2).to_f32(), [10., -10.]);
        assert!((3..8).all(|row_idx| *padded.row(row_idx).to_f32() == [0., 0.]));
    }

    #[test]
    fn a_deadline_counts_from_the_first_row_held() {
        let mut fold = Harness::new::<Pack>("{size: 4, max_wait: 50ms}", vec![schema()]).fold();
        let mut out = Vec::new();
        assert_eq!(fold.deadline(), None);
        let before = Instant::now();
        fold.push(batch(&schema(), 0, 1, write), &mut out).unwrap();
        let deadline = fold.deadline().unwrap();
        assert!(deadline >= before + std::time::Duration::from_millis(50));
        fold.push(batch(&schema(), 1, 1, write), &mut out).unwrap();
        assert_eq!(fold.deadline(), Some(deadline));
        fold.flush(&mut out).unwrap();
        assert_eq!((out.len(), fold.deadline()), (1, None));
    }

    #[test]
    fn without_max_wait_there_is_no_deadline() {
        let mut fold = Harness::new::<Pack>("{}", vec![schema()]).fold();
        fold.push(batch(&schema(), 0, 1, write), &mut Vec::new()).unwrap();
        assert_eq!(fold.deadline(), None);
    }

    #[test]
    fn it_announces_its_size_and_passes_all_columns() {
        let spec = Harness::new::<Pack>("{}", vec![schema()]).spec().unwrap();
        assert_eq!(spec.schema(), Schema { batch: Some(32), ..schema() });
        assert!(Harness::parse::<Pack>("size: 0", vec![]).is_err());
    }
}
