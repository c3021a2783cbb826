//! `sink.safetensors`: columns of tensors, whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use engine::data::{Batch, DType, Field, Role, Schema};
use engine::durable::STDOUT;
use engine::node::{
    BuildCx, Fault, Node, NodeKind, NodeSpec, Objects, Sealed, SpecCx, SpecError, Stage, unknown_column,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};

use super::columns::is_pixels;
use super::destination::{Destination, Parts as Numbering, final_paths};
use super::ids::{id_column, ids_path};
use super::json::write_text;
use super::objects::SinkStore;
use super::rotate::Rotate;
use super::row_log::{LoggedRows, failed};
use super::spooling::{PartFormat, Spooling};
use super::stale::remove_stale;
use crate::store::StoreOptions;

/// What the header's length is a multiple of.
const ALIGN: usize = 8;

/// Writes columns of tensors as tensors of one `.safetensors` file, each with the rows as its first dimension and the
/// column's name, and the rows' ids beside it.
///
/// Rows are kept in the run's state until a file, or with `rotate` a part, is complete; then it is made of them. So there
/// has to be room for one part twice.
///
/// # Input
/// Columns of tensors of one shape each: features, logits, decoded pixels. `u8`, `i64`, `f16`, `bf16` and `f32` stay as they
/// are.
///
/// # Output
/// None. Beside `features.safetensors`, `features.ids.jsonl` has one id a line, a JSON string, in the order of the rows.
///
/// # Example
/// ```yaml
/// out: {kind: sink.safetensors, with: {path: out/features.safetensors, columns: [features]}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SafeTensors {
    /// The file to write, relative to the pipeline file; folders are made. `s3://bucket/key`, `gs://…` and `az://…` are an
    /// object: see docs/outputs.md.
    path: String,
    /// The columns to write. Default: all results that are tensors of one shape, without pixels.
    columns: Option<Vec<String>>,
    /// Several files instead of one: `{rows: 100000}`, `{bytes: 1GiB}`, or both. Each is there when it is complete.
    rotate: Option<Rotate>,
    /// How the store of a `path` that is a URL is reached: see docs/stores.md.
    #[serde(default)]
    #[schemars(with = "StoreOptions")]
    store: SinkStore,
}

#[derive(Clone, Debug)]
struct Column {
    index: usize,
    name: String,
    dtype: DType,
    shape: Vec<usize>,
}

impl SafeTensors {
    fn resolve(&self, input: &Schema) -> Result<(usize, Vec<Column>), SpecError> {
        let column = |index: usize, field: &Field| {
            let (dtype, shape) = field.ty.fixed_shape()?;
            Some(Column { index, name: field.name.to_string(), dtype, shape })
        };
        let is_default = |field: &Field| field.role != Role::Auxiliary && !is_pixels(&field.ty);
        let Some(names) = &self.columns else {
            let fields = input.fields.iter().enumerate().filter(|(_, field)| is_default(field));
            let columns: Vec<_> = fields.filter_map(|(index, field)| column(index, field)).collect();
            if columns.is_empty() {
                let message =
                    format!("a column of tensors of one shape is needed, and the input gives {}", input.names());
                return Err(SpecError::new(message).label("put an `infer` node between them, or say `columns`"));
            }
            return Ok((id_column(input)?, columns));
        };
        if names.is_empty() {
            return Err(SpecError::new("`columns` is empty, so there is nothing to write").at(&["columns"]));
        }
        let mut columns: Vec<Column> = Vec::with_capacity(names.len());
        for (name_idx, name) in names.iter().enumerate() {
            let at = name_idx.to_string();
            let index = input.index_of(name).ok_or_else(|| unknown_column(input, name).at(&["columns", &at]))?;
            if columns.iter().any(|column| column.index == index) {
                return Err(SpecError::new(format!("the column `{name}` is named twice")).at(&["columns", &at]));
            }
            let field = &input.fields[index];
            columns.push(column(index, field).ok_or_else(|| {
                let message = format!("the column `{name}` is {}, and a tensor of one shape is needed", field.ty);
                SpecError::new(message).at(&["columns", &at])
            })?);
        }
        Ok((id_column(input)?, columns))
    }
}

impl NodeKind for SafeTensors {
    const NAME: &'static str = "sink.safetensors";
    const EXAMPLE: &'static str =
        "out: {kind: sink.safetensors, with: {path: out/features.safetensors, columns: [features]}}";
    const INCIDENTAL: &'static [&'static str] = SinkStore::INCIDENTAL;
}

impl Node for SafeTensors {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        if self.path == STDOUT {
            let error = SpecError::new("tensors cannot go to standard output").at(&["path"]);
            return Err(error.label("write a file name"));
        }
        self.resolve(cx.input())?;
        Rotate::check(self.rotate.as_ref(), &self.path)?;
        self.store.check(&self.path)?;
        Ok(NodeSpec::default().with_detail(&self.path))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let (id, columns) = self.resolve(cx.input()).map_err(|error| Fault::permanent(error.to_string()))?;
        let tensors = columns.iter().map(|column| ArrowField::new(&column.name, DataType::Binary, false));
        let fields: Vec<_> = [ArrowField::new("id", DataType::Utf8, false)].into_iter().chain(tensors).collect();
        let format = Tensors { id, columns, schema: Arc::new(ArrowSchema::new(fields)) };
        let destination = Destination::new(cx, &self.path, Numbering::of(self.rotate));
        Ok(Stage::Sink(Box::new(Spooling::open(format, destination, self.rotate, &cx.spool)?)))
    }

    fn writes(&self, base: &Path) -> Vec<PathBuf> {
        [self.path.clone(), ids_path(&self.path)].iter().flat_map(|path| final_paths(base, path)).collect()
    }

    fn objects(&self) -> Option<Arc<dyn Objects>> {
        self.store.objects(&self.path)
    }

    fn spools(&self) -> bool {
        true
    }

    fn tidy(&self, base: &Path, outputs: &[Sealed]) -> Result<(), Fault> {
        remove_stale(base, outputs, self.rotate, &self.store)
    }
}

/// How rows become a file. They are logged as the bytes that they are.
struct Tensors {
    id: usize,
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl PartFormat for Tensors {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn rows(&self, batch: &Batch) -> Result<RecordBatch, Fault> {
        let rows = || (0..batch.n_rows()).map(|row_idx| batch.row(row_idx));
        let ids = StringArray::from_iter_values(rows().map(|row| row.text(self.id)));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(ids)];
        for column in &self.columns {
            if let Some(row) = rows().find(|row| row.tensor(column.index).shape != column.shape) {
                let found = row.tensor(column.index).shape;
                let message = format!("a row has the shape {found:?}, and {:?} was announced", column.shape);
                return Err(Fault::bug(message));
            }
            let values = rows().map(|row| row.tensor(column.index).bytes);
            arrays.push(Arc::new(BinaryArray::from_iter_values(values)));
        }
        RecordBatch::try_new(self.schema.clone(), arrays).map_err(failed)
    }

    fn row_bytes(&self, _batch: &Batch, _row_idx: usize) -> u64 {
        self.columns.iter().map(|column| row_bytes(column) as u64).sum()
    }

    /// The ids get their name first: whoever sees the tensors finds them.
    fn make(&self, rows: &LoggedRows, name: &str, destination: &Destination) -> Result<Vec<Sealed>, Fault> {
        let mut ids = destination.open(&ids_path(name))?;
        for rows in rows.batches()? {
            for id in rows?.column(0).as_string::<i32>().iter().flatten() {
                write_text(ids.buffer(), id);
                ids.buffer().push(b'\n');
            }
            ids.spill()?;
        }
        let mut out = destination.open(name)?;
        out.buffer().extend_from_slice(&header(&self.columns, rows.n_rows));
        // A tensor is whole before the next begins, so the rows are read once for each.
        for column_idx in 0..self.columns.len() {
            for rows in rows.batches()? {
                let rows = rows?;
                out.buffer().extend_from_slice(values(rows.column(1 + column_idx).as_binary::<i32>()));
                out.spill()?;
            }
        }
        Ok(vec![ids.seal(rows.n_rows)?, out.seal(rows.n_rows)?])
    }
}

/// All values one after the other.
fn values(column: &BinaryArray) -> &[u8] {
    let (Some(start), Some(end)) = (column.value_offsets().first(), column.value_offsets().last()) else { return &[] };
    &column.value_data()[*start as usize..*end as usize]
}

fn row_bytes(column: &Column) -> usize {
    column.shape.iter().product::<usize>() * column.dtype.size()
}

/// The length of the text that follows, and that: what lies where.
fn header(columns: &[Column], n_rows: u64) -> Vec<u8> {
    let mut entries = Map::new();
    let mut start = 0;
    for column in columns {
        let end = start + n_rows * row_bytes(column) as u64;
        let shape: Vec<u64> = [n_rows].into_iter().chain(column.shape.iter().map(|&dim| dim as u64)).collect();
        let dtype = column.dtype.to_string().to_uppercase();
        entries.insert(column.name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]}));
        start = end;
    }
    let mut text = serde_json::Value::Object(entries).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(ALIGN), b' ');
    [&(text.len() as u64).to_le_bytes()[..], &text].concat()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use engine::data::{ColumnType, Dim, RowMut, RowPos};
    use engine::durable::publish;
    use engine::node::harness::{Harness, batch};
    use half::bf16;

    use super::*;

    fn schema() -> Schema {
        let tensor = |dtype, shape: &[usize]| {
            let shape = shape.iter().map(|&dim| Dim::Fixed(dim)).collect();
            ColumnType::Tensor { dtype, shape }
        };
        let fields = vec![
            Field::new("uri", ColumnType::Text, Role::Uri),
            Field::new("pixels", tensor(DType::U8, &[2, 2]), Role::Result),
            Field::new("features", tensor(DType::F32, &[3]), Role::Result),
            Field::new("half", tensor(DType::BF16, &[]), Role::Result),
        ];
        Schema { fields, batch: None }
    }

    fn write(index: u64, out: &mut RowMut<'_>) {
        out.text(0, &format!("{index}\n.jpg"));
        let features: Vec<u8> = (0..3).flat_map(|at| (index as f32 + at as f32 / 4.0).to_ne_bytes()).collect();
        let half = bf16::from_f32(index as f32).to_ne_bytes();
        for (output, dtype, shape, bytes) in [
            (1, DType::U8, &[2, 2][..], &[index as u8; 4][..]),
            (2, DType::F32, &[3], &features),
            (3, DType::BF16, &[], &half),
        ] {
            let mut buffer = out.alloc(dtype, shape);
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
            out.tensor(output, dtype, shape, buffer);
        }
    }

    #[test]
    fn the_parts_hold_each_column_whole_also_after_a_run_was_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let with = "{path: f.safetensors, columns: [half, features, pixels], rotate: {rows: 4}}";
        let node = Harness::new::<SafeTensors>(with, vec![schema()]).in_folder(folder.path());
        let mut sink = node.sink().unwrap();
        sink.write(&batch(&schema(), 0, 5, write)).unwrap();
        let (pos, _) = sink.cut(RowPos::new(0, 5)).unwrap();
        let mut sealed = sink.closed();
        sink.write(&batch(&schema(), 5, 1, write)).unwrap();
        drop(sink);
        let mut sink = node.sink().unwrap();
        sink.resume(&pos).unwrap();
        sink.write(&batch(&schema(), 5, 2, write)).unwrap();
        sealed.extend(sink.seal().unwrap());
        publish(folder.path(), &sealed).unwrap();
        for (part, rows) in [(0, 0..4), (1, 4..7)] {
            let file = fs::read(folder.path().join(format!("f-{part:05}.safetensors"))).unwrap();
            let tensors = ::safetensors::SafeTensors::deserialize(&file).unwrap();
            let n_rows = rows.end - rows.start;
            let check = |name: &str, shape: &[usize], expected: Vec<u8>| {
                let tensor = tensors.tensor(name).unwrap();
                assert_eq!((tensor.shape(), tensor.data()), (shape, &expected[..]), "{name}");
            };
            let features = rows.clone().flat_map(|row| (0..3).map(move |at| row as f32 + at as f32 / 4.0));
            check("features", &[n_rows, 3], features.flat_map(f32::to_le_bytes).collect());
            check("half", &[n_rows], rows.clone().flat_map(|row| bf16::from_f32(row as f32).to_le_bytes()).collect());
            check("pixels", &[n_rows, 2, 2], rows.clone().flat_map(|row| [row as u8; 4]).collect());
            let ids = fs::read_to_string(folder.path().join(format!("f-{part:05}.ids.jsonl"))).unwrap();
            assert_eq!(ids, rows.map(|row| format!("\"{row}\\n.jpg\"\n")).collect::<String>());
        }
    }

    #[test]
    fn by_default_it_is_the_results_without_pixels() {
        let folder = tempfile::tempdir().unwrap();
        let node = Harness::new::<SafeTensors>("path: f.safetensors", vec![schema()]).in_folder(folder.path());
        publish(folder.path(), &node.sink().unwrap().seal().unwrap()).unwrap();
        let file = fs::read(folder.path().join("f.safetensors")).unwrap();
        let tensors = ::safetensors::SafeTensors::deserialize(&file).unwrap();
        let mut names = tensors.names();
        names.sort();
        assert_eq!(names, ["features", "half"]);
        assert_eq!(tensors.tensor("features").unwrap().shape(), [0, 3]);
    }

    #[test]
    fn columns_that_are_no_tensors_of_one_shape_are_mistakes() {
        let check = |with: &str, at: &[&str], message: &str| {
            let error = Harness::new::<SafeTensors>(with, vec![schema()]).spec().unwrap_err();
            assert_eq!(
                (&error.option[..], error.message.as_str()),
                (&at.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()[..], message)
            );
        };
        check(
            "{path: a, columns: [uri]}",
            &["columns", "0"],
            "the column `uri` is text, and a tensor of one shape is needed",
        );
        check("{path: a, columns: [half, half]}", &["columns", "1"], "the column `half` is named twice");
        check("{path: a, columns: [featuers]}", &["columns", "0"], "there is no column `featuers`");
        check("{path: '-'}", &["path"], "tensors cannot go to standard output");
    }
}
