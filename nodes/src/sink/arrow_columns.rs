//! Our columns as Arrow arrays.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Float16Type, Float32Type, Int64Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, FixedSizeListArray, Float64Array, Int64Array, ListArray,
    PrimitiveArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef};
use engine::data::{Batch, Column, ColumnType, DType, Dim, Schema, Tensor};

/// The key under which a field says its rows' shape, as JSON.
const SHAPE: &str = "shape";

/// The chosen columns of an edge, and how they look as Arrow's.
#[derive(Clone, Debug)]
pub(super) struct ArrowColumns {
    columns: Vec<(usize, ColumnType)>,
    schema: SchemaRef,
}

impl ArrowColumns {
    /// Of the columns `chosen` of `input`.
    pub(super) fn new(input: &Schema, chosen: &[usize]) -> Self {
        let fields = chosen.iter().map(|&column| field(&input.fields[column].name, &input.fields[column].ty));
        let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
        let columns = chosen.iter().map(|&column| (column, input.fields[column].ty.clone())).collect();
        ArrowColumns { columns, schema }
    }

    /// Arrow's schema.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of a batch.
    pub(super) fn batch(&self, batch: &Batch) -> Result<RecordBatch, ArrowError> {
        let arrays = self.columns.iter().map(|(column, ty)| array(&batch.columns()[*column], ty));
        RecordBatch::try_new(self.schema.clone(), arrays.collect::<Result<_, _>>()?)
    }

    /// Bytes of the values of a row. Tells nothing of how it is stored, and is the same in every batch.
    pub(super) fn row_bytes(&self, batch: &Batch, row_idx: usize) -> u64 {
        self.columns.iter().map(|(column, _)| value_bytes(&batch.columns()[*column], row_idx)).sum()
    }
}

fn value_bytes(column: &Column, row_idx: usize) -> u64 {
    let n_bytes = match column {
        Column::Text(values) => values.get(row_idx).len(),
        Column::Bytes(values) => values.values()[row_idx].len(),
        Column::Int(_) | Column::Float(_) => 8,
        Column::Dense(tensor) => tensor.row_bytes(),
        Column::Ragged(tensors) => tensors.values()[row_idx].row_bytes(),
        Column::List(list) => {
            let items = list.range(row_idx).flat_map(|item| list.fields().map(move |(_, column)| (column, item)));
            return items.map(|(column, item)| value_bytes(column, item)).sum();
        }
    };
    n_bytes as u64
}

fn field(name: &str, ty: &ColumnType) -> ArrowField {
    let field = ArrowField::new(name, data_type(ty), false);
    let ColumnType::Tensor { shape, .. } = ty else { return field };
    if shape.is_empty() {
        return field;
    }
    let dims: Vec<Option<usize>> = shape
        .iter()
        .map(|dim| match dim {
            Dim::Fixed(n) => Some(*n),
            Dim::Any => None,
        })
        .collect();
    let text = serde_json::to_string(&dims).expect("numbers are JSON");
    field.with_metadata(HashMap::from([(SHAPE.to_owned(), text)]))
}

fn data_type(ty: &ColumnType) -> DataType {
    match ty {
        ColumnType::Text => DataType::Utf8,
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Int => DataType::Int64,
        ColumnType::Float => DataType::Float64,
        ColumnType::Tensor { dtype, shape } => {
            let element = element_type(*dtype);
            match (fixed_elements(ty), shape.len()) {
                (_, 0) => element,
                (Some(n_elements), _) => DataType::FixedSizeList(item(element), n_elements),
                (None, 1) => DataType::List(item(element)),
                (None, _) => DataType::Struct(shaped(element)),
            }
        }
        ColumnType::List(fields) => DataType::List(item(DataType::Struct(record(fields)))),
    }
}

fn item(ty: DataType) -> Arc<ArrowField> {
    Arc::new(ArrowField::new("item", ty, false))
}

fn record(fields: &[(Arc<str>, ColumnType)]) -> Fields {
    fields.iter().map(|(name, ty)| field(name, ty)).collect()
}

/// Tensors of several dimensions that differ from row to row.
fn shaped(element: DataType) -> Fields {
    let list = |name, ty| ArrowField::new(name, DataType::List(item(ty)), false);
    Fields::from(vec![list("shape", DataType::Int64), list("data", element)])
}

/// Arrow has no bf16.
fn element_type(dtype: DType) -> DataType {
    match dtype {
        DType::U8 => DataType::UInt8,
        DType::F16 => DataType::Float16,
        DType::BF16 | DType::F32 => DataType::Float32,
        DType::I64 => DataType::Int64,
    }
}

/// How many elements each row has; `None` where that differs, or where Parquet has no list of so few or so many.
fn fixed_elements(ty: &ColumnType) -> Option<i32> {
    let n_elements = ty.fixed_shape()?.1.iter().product::<usize>();
    i32::try_from(n_elements).ok().filter(|n_elements| *n_elements > 0)
}

fn array(column: &Column, ty: &ColumnType) -> Result<ArrayRef, ArrowError> {
    Ok(match column {
        Column::Text(values) => {
            let n_rows = column.n_rows();
            Arc::new(StringArray::from_iter_values((0..n_rows).map(|row_idx| values.get(row_idx))))
        }
        Column::Bytes(values) => Arc::new(BinaryArray::from_iter_values(values.values().iter())),
        Column::Int(values) => Arc::new(Int64Array::from_iter_values(values.values().iter().copied())),
        Column::Float(values) => Arc::new(Float64Array::from_iter_values(values.values().iter().copied())),
        Column::Dense(tensor) => tensors(std::slice::from_ref(tensor), ty)?,
        Column::Ragged(values) => tensors(values.values(), ty)?,
        Column::List(list) => {
            let ColumnType::List(fields) = ty else { return Err(other_type(ty)) };
            let n_rows = column.n_rows();
            let range = if n_rows == 0 { 0..0 } else { list.range(0).start..list.range(n_rows - 1).end };
            let values = list.fields().zip(fields);
            let values = values.map(|((_, column), (_, ty))| array(&column.slice(range.clone()), ty));
            let records = StructArray::try_new(record(fields), values.collect::<Result<_, _>>()?, None)?;
            let lengths = (0..n_rows).map(|row_idx| list.range(row_idx).len());
            let item = item(records.data_type().clone());
            Arc::new(ListArray::try_new(item, offsets(lengths)?, Arc::new(records), None)?)
        }
    })
}

/// The rows of `tensors`, each of which has any number of them.
fn tensors(tensors: &[Tensor], ty: &ColumnType) -> Result<ArrayRef, ArrowError> {
    let ColumnType::Tensor { dtype, shape } = ty else { return Err(other_type(ty)) };
    let values = elements(*dtype, tensors);
    let rows = || tensors.iter().flat_map(|tensor| (0..tensor.n_rows()).map(|row_idx| tensor.row(row_idx)));
    let list = |values: ArrayRef| -> Result<ListArray, ArrowError> {
        let lengths = rows().map(|row| row.shape.iter().product());
        ListArray::try_new(item(values.data_type().clone()), offsets(lengths)?, values, None)
    };
    Ok(match (fixed_elements(ty), shape.len()) {
        (_, 0) => values,
        (Some(n_elements), _) => {
            Arc::new(FixedSizeListArray::try_new(item(values.data_type().clone()), n_elements, values, None)?)
        }
        (None, 1) => Arc::new(list(values)?),
        (None, _) => {
            let dims = Int64Array::from_iter_values(rows().flat_map(|row| row.shape.iter().map(|&dim| dim as i64)));
            let dims = ListArray::try_new(
                item(DataType::Int64),
                offsets(rows().map(|row| row.shape.len()))?,
                Arc::new(dims),
                None,
            )?;
            let element = values.data_type().clone();
            let parts: Vec<ArrayRef> = vec![Arc::new(dims), Arc::new(list(values)?)];
            Arc::new(StructArray::try_new(shaped(element), parts, None)?)
        }
    })
}

fn elements(dtype: DType, tensors: &[Tensor]) -> ArrayRef {
    if dtype == DType::BF16 {
        let values: Vec<f32> = tensors.iter().flat_map(|tensor| tensor.view().to_f32().into_owned()).collect();
        return Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(values));
    }
    let n_bytes = tensors.iter().map(|tensor| tensor.bytes().len()).sum();
    let mut bytes = MutableBuffer::with_capacity(n_bytes);
    tensors.iter().for_each(|tensor| bytes.extend_from_slice(tensor.bytes()));
    let bytes = Buffer::from(bytes);
    match dtype {
        DType::U8 => primitive::<UInt8Type>(bytes),
        DType::F16 => primitive::<Float16Type>(bytes),
        DType::BF16 | DType::F32 => primitive::<Float32Type>(bytes),
        DType::I64 => primitive::<Int64Type>(bytes),
    }
}

fn primitive<T: ArrowPrimitiveType>(bytes: Buffer) -> ArrayRef {
    let n_elements = bytes.len() / size_of::<T::Native>();
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(bytes, 0, n_elements), None))
}

fn offsets(lengths: impl IntoIterator<Item = usize>) -> Result<OffsetBuffer<i32>, ArrowError> {
    let mut offsets = vec![0];
    let mut end = 0_usize;
    for length in lengths {
        end += length;
        let too_many = |_| ArrowError::InvalidArgumentError("a batch has more than 2^31 elements".to_owned());
        offsets.push(i32::try_from(end).map_err(too_many)?);
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn other_type(ty: &ColumnType) -> ArrowError {
    ArrowError::SchemaError(format!("a column is not {ty}"))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use engine::data::{Field, Role, RowMut};
    use engine::node::harness::batch;

    use super::*;

    fn schema() -> Schema {
        let tensor = |dtype, shape: &[Dim]| ColumnType::Tensor { dtype, shape: shape.to_vec() };
        let labels = vec![(Arc::from("label"), ColumnType::Text), (Arc::from("score"), ColumnType::Float)];
        let types = [
            ("uri", ColumnType::Text),
            ("blob", ColumnType::Bytes),
            ("n", ColumnType::Int),
            ("labels", ColumnType::List(labels)),
            ("e", tensor(DType::F32, &[Dim::Fixed(2), Dim::Fixed(2)])),
            ("any", tensor(DType::U8, &[Dim::Any])),
            ("image", tensor(DType::U8, &[Dim::Any, Dim::Any])),
            ("one", tensor(DType::BF16, &[])),
        ];
        let fields = types.into_iter().map(|(name, ty)| Field::new(name, ty, Role::Result)).collect();
        Schema { fields, batch: None }
    }

    fn tensor(out: &mut RowMut<'_>, output: usize, dtype: DType, shape: &[usize], bytes: &[u8]) {
        let mut buffer = out.alloc(dtype, shape);
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        out.tensor(output, dtype, shape, buffer);
    }

    fn write(index: u64, out: &mut RowMut<'_>) {
        let n = index as usize;
        out.text(0, &format!("row {index}"));
        out.bytes(1, vec![index as u8; n].into());
        out.int(2, -(index as i64));
        out.list(3, n % 3, |rank, record| {
            record.text(0, &format!("label {rank}"));
            record.float(1, rank as f64 / 4.0);
        });
        let values: Vec<u8> = (0..4).flat_map(|at| (index as f32 + at as f32).to_ne_bytes()).collect();
        tensor(out, 4, DType::F32, &[2, 2], &values);
        tensor(out, 5, DType::U8, &[n], &vec![7; n]);
        tensor(out, 6, DType::U8, &[n, 2], &vec![8; 2 * n]);
        tensor(out, 7, DType::BF16, &[], &half::bf16::from_f32(1.5).to_ne_bytes());
    }

    #[test]
    fn each_type_keeps_its_values_wherever_a_batch_is_cut() {
        let schema = schema();
        let columns = ArrowColumns::new(&schema, &[0, 1, 2, 3, 4, 5, 6, 7]);
        let whole = batch(&schema, 0, 8, write);
        let rows = columns.batch(&whole.slice(4..6)).unwrap();
        assert_eq!(rows.column(0).as_string::<i32>().value(1), "row 5");
        assert_eq!(rows.column(1).as_binary::<i32>().value(1), [5; 5]);
        assert_eq!(rows.column(2).as_primitive::<Int64Type>().value(0), -4);
        let labels = rows.column(3).as_list::<i32>();
        assert_eq!((labels.value(0).len(), labels.value(1).len()), (1, 2));
        let of_second = labels.value(1);
        assert_eq!(of_second.as_struct().column(0).as_string::<i32>().value(1), "label 1");
        let e = rows.column(4).as_fixed_size_list();
        assert_eq!(e.value(1).as_primitive::<Float32Type>().values().to_vec(), [5.0, 6.0, 7.0, 8.0]);
        assert_eq!(rows.column(5).as_list::<i32>().value(1).len(), 5);
        let image = rows.column(6).as_struct();
        assert_eq!(image.column(0).as_list::<i32>().value(1).as_primitive::<Int64Type>().values().to_vec(), [5, 2]);
        assert_eq!(rows.column(7).as_primitive::<Float32Type>().values().to_vec(), [1.5, 1.5]);
        assert_eq!(columns.schema().field(4).metadata()["shape"], "[2,2]");
        assert_eq!(columns.schema().field(6).metadata()["shape"], "[null,null]");
        let sizes = |batch: &Batch, row| columns.row_bytes(batch, row);
        assert_eq!(sizes(&whole, 5), sizes(&whole.slice(4..6), 1));
        assert_eq!(columns.batch(&whole.slice(0..0)).unwrap().num_rows(), 0);
    }
}
