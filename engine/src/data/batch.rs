//! Rows in columns: the unit that travels along an edge.

use std::ops::Range;

use bytes::Bytes;

use super::{Column, RowPos, Slice, TensorRef};

/// Rows in columnar form: their positions in ascending order, and one column for each field of the edge's schema.
/// Cheap to clone and to slice.
#[derive(Clone, Debug)]
pub struct Batch {
    positions: Slice<RowPos>,
    columns: Vec<Column>,
}

impl Batch {
    /// Rows from positions and columns.
    ///
    /// # Panics
    /// If a column has another number of rows: columns are made together.
    pub fn new(positions: Vec<RowPos>, columns: Vec<Column>) -> Self {
        for (column_idx, column) in columns.iter().enumerate() {
            assert_eq!(column.n_rows(), positions.len(), "rows of column {column_idx} and of positions differ");
        }
        Batch { positions: Slice::new(positions), columns }
    }

    /// The same rows with other columns.
    pub fn with_columns(&self, columns: Vec<Column>) -> Self {
        debug_assert!(columns.iter().all(|column| column.n_rows() == self.n_rows()));
        Batch { positions: self.positions.clone(), columns }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.positions.values().len()
    }

    /// The rows' positions, ascending.
    pub fn positions(&self) -> &[RowPos] {
        self.positions.values()
    }

    /// The columns, in the order of the schema.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Rows of `range`, sharing the values.
    pub fn slice(&self, range: Range<usize>) -> Batch {
        if range == (0..self.n_rows()) {
            return self.clone();
        }
        Batch {
            positions: Slice::new(self.positions()[range.clone()].to_vec()),
            columns: self.columns.iter().map(|column| column.slice(range.clone())).collect(),
        }
    }

    /// One row.
    pub fn row(&self, row_idx: usize) -> RowRef<'_> {
        RowRef { batch: self, row_idx }
    }

    /// Bytes that the rows hold.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum::<usize>() + self.n_rows() * size_of::<RowPos>()
    }
}

/// One row of a batch, as its node reads it. Columns are given by their index in the schema; asking for another type
/// than the schema's is a bug and panics.
#[derive(Clone, Copy)]
pub struct RowRef<'a> {
    batch: &'a Batch,
    row_idx: usize,
}

impl<'a> RowRef<'a> {
    /// Where the row comes from.
    pub fn pos(self) -> RowPos {
        self.batch.positions()[self.row_idx]
    }

    /// The row's index in its batch.
    pub fn row_idx(self) -> usize {
        self.row_idx
    }

    /// A column of the batch and this row's index in it.
    pub fn column(self, column: usize) -> &'a Column {
        &self.batch.columns[column]
    }

    /// A text value.
    pub fn text(self, column: usize) -> &'a str {
        match self.column(column) {
            Column::Text(values) => values.get(self.row_idx),
            _ => panic!("column {column} is not text"),
        }
    }

    /// A value of bytes.
    pub fn bytes(self, column: usize) -> &'a Bytes {
        match self.column(column) {
            Column::Bytes(values) => &values.values()[self.row_idx],
            _ => panic!("column {column} is not bytes"),
        }
    }

    /// An integer.
    pub fn int(self, column: usize) -> i64 {
        match self.column(column) {
            Column::Int(values) => values.values()[self.row_idx],
            _ => panic!("column {column} is not int"),
        }
    }

    /// A number.
    pub fn float(self, column: usize) -> f64 {
        match self.column(column) {
            Column::Float(values) => values.values()[self.row_idx],
            _ => panic!("column {column} is not float"),
        }
    }

    /// The row's tensor, without the leading dimension.
    pub fn tensor(self, column: usize) -> TensorRef<'a> {
        match self.column(column) {
            Column::Dense(tensor) => tensor.row(self.row_idx),
            Column::Ragged(tensors) => tensors.values()[self.row_idx].row(0),
            _ => panic!("column {column} is no tensor"),
        }
    }
}
