//! Making columns row by row, with rows that fail leaving no trace.

use std::sync::Arc;

use bytes::Bytes;

use super::{Alloc, Batch, BufferMut, Column, ColumnType, DType, ListColumn, Slice, Tensor, TextColumn};

/// A column that is being made. Rows are pushed; a row that failed half-way is taken back by `truncate`.
pub enum ColumnBuilder {
    /// See [`Column::Text`].
    Text(String, Vec<u32>),
    /// See [`Column::Bytes`].
    Bytes(Vec<Bytes>),
    /// See [`Column::Int`].
    Int(Vec<i64>),
    /// See [`Column::Float`].
    Float(Vec<f64>),
    /// See [`Column::Ragged`]; batch nodes make it dense.
    Tensor(Vec<Tensor>),
    /// See [`Column::List`].
    List(Arc<[Arc<str>]>, Vec<ColumnBuilder>, Vec<u32>),
}

impl ColumnBuilder {
    /// A builder for columns of type `ty`.
    pub fn new(ty: &ColumnType) -> Self {
        match ty {
            ColumnType::Text => ColumnBuilder::Text(String::new(), Vec::new()),
            ColumnType::Bytes => ColumnBuilder::Bytes(Vec::new()),
            ColumnType::Int => ColumnBuilder::Int(Vec::new()),
            ColumnType::Float => ColumnBuilder::Float(Vec::new()),
            ColumnType::Tensor { .. } => ColumnBuilder::Tensor(Vec::new()),
            ColumnType::List(fields) => ColumnBuilder::List(
                fields.iter().map(|(name, _)| name.clone()).collect(),
                fields.iter().map(|(_, ty)| ColumnBuilder::new(ty)).collect(),
                Vec::new(),
            ),
        }
    }

    /// Rows pushed so far.
    pub fn n_rows(&self) -> usize {
        match self {
            ColumnBuilder::Text(_, ends) | ColumnBuilder::List(_, _, ends) => ends.len(),
            ColumnBuilder::Bytes(values) => values.len(),
            ColumnBuilder::Int(values) => values.len(),
            ColumnBuilder::Float(values) => values.len(),
            ColumnBuilder::Tensor(values) => values.len(),
        }
    }

    /// Takes back all rows from `n_rows` on.
    pub fn truncate(&mut self, n_rows: usize) {
        match self {
            ColumnBuilder::Text(text, ends) => {
                ends.truncate(n_rows);
                text.truncate(ends.last().map_or(0, |&end| end as usize));
            }
            ColumnBuilder::List(_, items, ends) => {
                ends.truncate(n_rows);
                let n_items = ends.last().map_or(0, |&end| end as usize);
                items.iter_mut().for_each(|item| item.truncate(n_items));
            }
            ColumnBuilder::Bytes(values) => values.truncate(n_rows),
            ColumnBuilder::Int(values) => values.truncate(n_rows),
            ColumnBuilder::Float(values) => values.truncate(n_rows),
            ColumnBuilder::Tensor(values) => values.truncate(n_rows),
        }
    }

    /// The finished column.
    pub fn finish(self) -> Column {
        match self {
            ColumnBuilder::Text(text, ends) => Column::Text(TextColumn::new(text, ends)),
            ColumnBuilder::Bytes(values) => Column::Bytes(Slice::new(values)),
            ColumnBuilder::Int(values) => Column::Int(Slice::new(values)),
            ColumnBuilder::Float(values) => Column::Float(Slice::new(values)),
            ColumnBuilder::Tensor(values) => Column::Ragged(Slice::new(values)),
            ColumnBuilder::List(names, items, ends) => {
                let items = items.into_iter().map(ColumnBuilder::finish).collect();
                Column::List(ListColumn::new(names, items, ends))
            }
        }
    }

    /// Pushes text.
    ///
    /// # Panics
    /// If the column has another type.
    pub fn push_text(&mut self, value: &str) {
        let ColumnBuilder::Text(text, ends) = self else { panic!("the column is not text") };
        text.push_str(value);
        ends.push(text_end(text));
    }

    /// Pushes row `row_idx` of `column`, which has this builder's type.
    ///
    /// # Panics
    /// If the types differ: schemas are checked before the run.
    pub fn push_from(&mut self, column: &Column, row_idx: usize) {
        match (self, column) {
            (ColumnBuilder::Text(text, ends), Column::Text(from)) => {
                text.push_str(from.get(row_idx));
                ends.push(text_end(text));
            }
            (ColumnBuilder::Bytes(values), Column::Bytes(from)) => values.push(from.values()[row_idx].clone()),
            (ColumnBuilder::Int(values), Column::Int(from)) => values.push(from.values()[row_idx]),
            (ColumnBuilder::Float(values), Column::Float(from)) => values.push(from.values()[row_idx]),
            (ColumnBuilder::Tensor(values), Column::Dense(from)) => values.push(from.rows(row_idx, 1)),
            (ColumnBuilder::Tensor(values), Column::Ragged(from)) => values.push(from.values()[row_idx].clone()),
            (ColumnBuilder::List(_, items, ends), Column::List(from)) => {
                let range = from.range(row_idx);
                let n_items = ends.last().copied().unwrap_or(0) + range.len() as u32;
                for (item, (_, column)) in items.iter_mut().zip(from.fields()) {
                    range.clone().for_each(|item_idx| item.push_from(column, item_idx));
                }
                ends.push(n_items);
            }
            _ => panic!("a row of another type was pushed"),
        }
    }
}

/// Where the text of a chunk ends. A chunk is bounded to far less than 4 GiB by the queues.
fn text_end(text: &str) -> u32 {
    u32::try_from(text.len()).expect("text of one chunk stays under 4 GiB")
}

/// The new columns of one row, as its node writes them: each output once, in any order.
pub struct RowMut<'a> {
    builders: &'a mut [ColumnBuilder],
    alloc: &'a dyn Alloc,
}

impl<'a> RowMut<'a> {
    /// A row over the builders of a node's new columns.
    pub fn new(builders: &'a mut [ColumnBuilder], alloc: &'a dyn Alloc) -> Self {
        RowMut { builders, alloc }
    }

    /// Writes text to output `output`.
    pub fn text(&mut self, output: usize, value: &str) {
        self.builders[output].push_text(value);
    }

    /// Writes bytes.
    pub fn bytes(&mut self, output: usize, value: Bytes) {
        let ColumnBuilder::Bytes(values) = &mut self.builders[output] else { panic!("output {output} is not bytes") };
        values.push(value);
    }

    /// Writes an integer.
    pub fn int(&mut self, output: usize, value: i64) {
        let ColumnBuilder::Int(values) = &mut self.builders[output] else { panic!("output {output} is not int") };
        values.push(value);
    }

    /// Writes a number.
    pub fn float(&mut self, output: usize, value: f64) {
        let ColumnBuilder::Float(values) = &mut self.builders[output] else { panic!("output {output} is not float") };
        values.push(value);
    }

    /// Memory for a tensor of `shape` (of one row, without a leading dimension), to be filled and given to
    /// [`RowMut::tensor`]. It lies where the engine wants tensors to lie.
    pub fn alloc(&self, dtype: DType, shape: &[usize]) -> BufferMut {
        self.alloc.alloc(shape.iter().product::<usize>() * dtype.size())
    }

    /// Writes a tensor of `shape` (of one row, without a leading dimension).
    pub fn tensor(&mut self, output: usize, dtype: DType, shape: &[usize], buffer: BufferMut) {
        let ColumnBuilder::Tensor(values) = &mut self.builders[output] else { panic!("output {output} is no tensor") };
        let mut with_rows = Vec::with_capacity(shape.len() + 1);
        with_rows.push(1);
        with_rows.extend_from_slice(shape);
        values.push(Tensor::new(dtype, with_rows, buffer.freeze()));
    }

    /// Writes a list of `n_items` records; `record` writes one into the outputs of its own `RowMut`.
    pub fn list(&mut self, output: usize, n_items: usize, mut record: impl FnMut(usize, &mut RowMut<'_>)) {
        let ColumnBuilder::List(_, items, ends) = &mut self.builders[output] else {
            panic!("output {output} is no list")
        };
        let mut item = RowMut { builders: items, alloc: self.alloc };
        (0..n_items).for_each(|item_idx| record(item_idx, &mut item));
        let n_before = ends.last().copied().unwrap_or(0);
        ends.push(n_before + n_items as u32);
    }

    /// Whether each output has exactly `n_rows` rows: what a row that succeeded must leave.
    pub fn is_complete(&self, n_rows: usize) -> bool {
        self.builders.iter().all(|builder| builder.n_rows() == n_rows)
    }
}

/// A column of the rows `indices` of `column`.
pub(super) fn take(column: &Column, indices: &[usize]) -> Column {
    let mut builder = empty_like(column);
    indices.iter().for_each(|&row_idx| builder.push_from(column, row_idx));
    builder.finish()
}

fn empty_like(column: &Column) -> ColumnBuilder {
    match column {
        Column::Text(_) => ColumnBuilder::Text(String::new(), Vec::new()),
        Column::Bytes(_) => ColumnBuilder::Bytes(Vec::new()),
        Column::Int(_) => ColumnBuilder::Int(Vec::new()),
        Column::Float(_) => ColumnBuilder::Float(Vec::new()),
        Column::Dense(_) | Column::Ragged(_) => ColumnBuilder::Tensor(Vec::new()),
        Column::List(list) => ColumnBuilder::List(
            list.fields().map(|(name, _)| Arc::from(name)).collect(),
            list.fields().map(|(_, column)| empty_like(column)).collect(),
            Vec::new(),
        ),
    }
}

/// The rows of several batches of one schema, one after the other.
pub(super) fn concat(parts: &[&Column]) -> Column {
    let mut builder = empty_like(parts.first().expect("at least one part is concatenated"));
    for part in parts {
        (0..part.n_rows()).for_each(|row_idx| builder.push_from(part, row_idx));
    }
    builder.finish()
}

impl Batch {
    /// Only the rows `indices`, in that order.
    pub fn take(&self, indices: &[usize]) -> Batch {
        let positions = indices.iter().map(|&row_idx| self.positions()[row_idx]).collect();
        Batch::new(positions, self.columns().iter().map(|column| take(column, indices)).collect())
    }

    /// The rows of all `parts`, which have one schema, in order. Tensors of several parts become ragged.
    ///
    /// # Panics
    /// If there is no part.
    pub fn concat(parts: &[Batch]) -> Batch {
        let first = parts.first().expect("at least one part is concatenated");
        if parts.len() == 1 {
            return first.clone();
        }
        let positions = parts.iter().flat_map(|part| part.positions().iter().copied()).collect();
        let columns = (0..first.columns().len()).map(|column_idx| {
            let columns: Vec<_> = parts.iter().map(|part| &part.columns()[column_idx]).collect();
            concat(&columns)
        });
        Batch::new(positions, columns.collect())
    }
}
