//! Columns: the values of one name over the rows of a batch.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::Tensor;

/// A shared vector and the part of it that is meant. Slicing shares the vector.
#[derive(Clone, Debug)]
pub struct Slice<T> {
    values: Arc<Vec<T>>,
    start: usize,
    len: usize,
}

impl<T> Slice<T> {
    /// The whole vector.
    pub fn new(values: Vec<T>) -> Self {
        Slice { start: 0, len: values.len(), values: Arc::new(values) }
    }

    /// The values.
    pub fn values(&self) -> &[T] {
        &self.values[self.start..self.start + self.len]
    }

    fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.end <= self.len, "rows {range:?} of {}", self.len);
        Slice { values: self.values.clone(), start: self.start + range.start, len: range.len() }
    }
}

/// Text values: one string for all of them, and where each ends.
#[derive(Clone, Debug)]
pub struct TextColumn {
    text: Arc<str>,
    ends: Slice<u32>,
}

impl TextColumn {
    pub(super) fn new(text: String, ends: Vec<u32>) -> Self {
        TextColumn { text: text.into(), ends: Slice::new(ends) }
    }

    /// The value of a row.
    pub fn get(&self, row_idx: usize) -> &str {
        let at = self.ends.start + row_idx;
        let start = if at == 0 { 0 } else { self.ends.values[at - 1] as usize };
        &self.text[start..self.ends.values()[row_idx] as usize]
    }
}

/// Lists of records: the records' columns, and where each row's list ends.
#[derive(Clone, Debug)]
pub struct ListColumn {
    names: Arc<[Arc<str>]>,
    items: Arc<[Column]>,
    ends: Slice<u32>,
}

impl ListColumn {
    pub(super) fn new(names: Arc<[Arc<str>]>, items: Vec<Column>, ends: Vec<u32>) -> Self {
        ListColumn { names, items: items.into(), ends: Slice::new(ends) }
    }

    /// The records' fields: names and values over all records.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.names.iter().map(|name| &**name).zip(self.items.iter())
    }

    /// The range of records that a row has, as indices into the columns of [`ListColumn::fields`].
    pub fn range(&self, row_idx: usize) -> Range<usize> {
        let at = self.ends.start + row_idx;
        let start = if at == 0 { 0 } else { self.ends.values[at - 1] as usize };
        start..self.ends.values()[row_idx] as usize
    }
}

/// The values of one column over the rows of a batch. Clones and slices share the values.
#[derive(Clone, Debug)]
pub enum Column {
    /// UTF-8 text.
    Text(TextColumn),
    /// Opaque bytes.
    Bytes(Slice<Bytes>),
    /// Integers.
    Int(Slice<i64>),
    /// Double-precision numbers.
    Float(Slice<f64>),
    /// Rows of one shape in one contiguous tensor.
    Dense(Tensor),
    /// A tensor a row, each with a leading dimension of 1, of shapes that may differ.
    Ragged(Slice<Tensor>),
    /// Lists of records.
    List(ListColumn),
}

impl Column {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Column::Text(column) => column.ends.len,
            Column::Bytes(values) => values.len,
            Column::Int(values) => values.len,
            Column::Float(values) => values.len,
            Column::Dense(tensor) => tensor.n_rows(),
            Column::Ragged(tensors) => tensors.len,
            Column::List(column) => column.ends.len,
        }
    }

    /// Rows of `range`, sharing the values.
    pub fn slice(&self, range: Range<usize>) -> Column {
        match self {
            Column::Text(column) => {
                Column::Text(TextColumn { text: column.text.clone(), ends: column.ends.slice(range) })
            }
            Column::Bytes(values) => Column::Bytes(values.slice(range)),
            Column::Int(values) => Column::Int(values.slice(range)),
            Column::Float(values) => Column::Float(values.slice(range)),
            Column::Dense(tensor) => Column::Dense(tensor.rows(range.start, range.len())),
            Column::Ragged(tensors) => Column::Ragged(tensors.slice(range)),
            Column::List(column) => Column::List(ListColumn { ends: column.ends.slice(range), ..column.clone() }),
        }
    }

    /// Bytes that the rows hold, for back-pressure: payloads, not bookkeeping.
    pub fn bytes(&self) -> usize {
        match self {
            Column::Text(column) => match column.ends.values() {
                [] => 0,
                ends => ends[ends.len() - 1] as usize - column.range_start(),
            },
            Column::Bytes(values) => values.values().iter().map(Bytes::len).sum(),
            Column::Int(values) => values.len * 8,
            Column::Float(values) => values.len * 8,
            Column::Dense(tensor) => tensor.n_rows() * tensor.row_bytes(),
            Column::Ragged(tensors) => tensors.values().iter().map(|tensor| tensor.row_bytes()).sum(),
            Column::List(column) => {
                let n_items: usize = match column.ends.values() {
                    [] => 0,
                    ends => ends[ends.len() - 1] as usize - column.range(0).start,
                };
                n_items * column.items.len() * 16
            }
        }
    }
}

impl TextColumn {
    fn range_start(&self) -> usize {
        if self.ends.start == 0 { 0 } else { self.ends.values[self.ends.start - 1] as usize }
    }
}
