//! `sink.parquet`: typed columns.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use ::parquet::basic::{Compression as Codec, Type, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use engine::data::Batch;
use engine::durable::{Partial, STDOUT};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, Objects, Sealed, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::arrow_columns::ArrowColumns;
use super::columns::chosen_of_all;
use super::destination::{Destination, Parts as Numbering, final_paths};
use super::objects::SinkStore;
use super::rotate::Rotate;
use super::row_log::{LoggedRows, failed};
use super::spooling::{LoggedBatches, PartFormat, Spooling};
use super::stale::remove_stale;
use crate::store::StoreOptions;

/// Bytes of values in a row group, if its rows are not said.
const ROW_GROUP_BYTES: u64 = 128 << 20;

/// Writes Parquet, with the types that the columns have.
///
/// Rows are kept in the run's state until a file, or with `rotate` a part, is complete; then it is made of them. So there
/// has to be room for one part twice.
///
/// # Input
/// Any columns. Text is a string, `int` an int64, `float` a double, bytes are binary. Tensors of one shape are fixed-size
/// lists of their elements, flattened, with the shape in the field's metadata as `shape`; those of one dimension that
/// differs are lists; those of several are structs of `shape` and `data`. Records such as `labels` are lists of structs.
/// `bf16` is written as `f32`. The Arrow schema is in the file, so that readers find the fixed sizes again.
///
/// # Output
/// None.
///
/// # Example
/// ```yaml
/// out: {kind: sink.parquet, with: {path: out/embeddings.parquet, rotate: {rows: 1000000}}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parquet {
    /// The file to write, relative to the pipeline file; folders are made. `s3://bucket/key`, `gs://…` and `az://…` are an
    /// object: see docs/outputs.md.
    path: String,
    /// The columns to write, in this order. Default: `uri`, `id` where it differs, what the source carried, bytes, and
    /// results, without pixels.
    columns: Option<Vec<String>>,
    /// How pages are compressed. Default `zstd`.
    #[serde(default)]
    compression: PageCompression,
    /// Rows of a row group. Default: as many as have 128 MiB of values.
    row_group_rows: Option<NonZeroU64>,
    /// Several files instead of one: `{rows: 1000000}`, `{bytes: 512MiB}` of values before compression, or both. Each is
    /// there when it is complete.
    rotate: Option<Rotate>,
    /// How the store of a `path` that is a URL is reached: see docs/stores.md.
    #[serde(default)]
    #[schemars(with = "StoreOptions")]
    store: SinkStore,
}

/// How pages are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PageCompression {
    /// As zstd does, at its level 3.
    #[default]
    Zstd,
    /// As Snappy does: faster, and larger.
    Snappy,
    /// Not at all.
    None,
}

impl Parquet {
    fn columns(&self, cx: &engine::data::Schema) -> Result<ArrowColumns, SpecError> {
        let chosen = chosen_of_all(cx, self.columns.as_deref())?;
        Ok(ArrowColumns::new(cx, &chosen))
    }
}

impl NodeKind for Parquet {
    const NAME: &'static str = "sink.parquet";
    const EXAMPLE: &'static str =
        "out: {kind: sink.parquet, with: {path: out/embeddings.parquet, rotate: {rows: 1000000}}}";
    const INCIDENTAL: &'static [&'static str] = SinkStore::INCIDENTAL;
}

impl Node for Parquet {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        if self.path == STDOUT {
            let error = SpecError::new("Parquet cannot go to standard output").at(&["path"]);
            return Err(error.label("write a file name"));
        }
        self.columns(cx.input())?;
        Rotate::check(self.rotate.as_ref(), &self.path)?;
        self.store.check(&self.path)?;
        Ok(NodeSpec::default().with_detail(&self.path))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let columns = self.columns(cx.input()).map_err(|error| Fault::permanent(error.to_string()))?;
        let properties = properties(columns.schema(), self.compression)?;
        let format = Table { columns, properties, row_group_rows: self.row_group_rows.map(NonZeroU64::get) };
        let destination = Destination::new(cx, &self.path, Numbering::of(self.rotate));
        Ok(Stage::Sink(Box::new(Spooling::open(format, destination, self.rotate, &cx.spool)?)))
    }

    fn writes(&self, base: &Path) -> Vec<PathBuf> {
        final_paths(base, &self.path)
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

fn properties(schema: &SchemaRef, compression: PageCompression) -> Result<WriterProperties, Fault> {
    let codec = match compression {
        PageCompression::Zstd => Codec::ZSTD(ZstdLevel::try_new(3).map_err(|error| unwritable(&error))?),
        PageCompression::Snappy => Codec::SNAPPY,
        PageCompression::None => Codec::UNCOMPRESSED,
    };
    let created_by = concat!("flowgpu ", env!("CARGO_PKG_VERSION"));
    let properties = WriterProperties::builder().set_compression(codec).set_created_by(created_by.to_owned());
    // Groups end where the sink says.
    let mut properties = properties.set_max_row_group_row_count(None).set_max_row_group_bytes(None);
    let leaves = ArrowSchemaConverter::new().convert(schema).map_err(|error| unwritable(&error))?;
    for leaf in leaves.columns() {
        // Measured values hardly ever repeat: a dictionary of them is made for nothing.
        if matches!(leaf.physical_type(), Type::FLOAT | Type::DOUBLE | Type::FIXED_LEN_BYTE_ARRAY) {
            properties = properties.set_column_dictionary_enabled(leaf.path().clone(), false);
        }
    }
    Ok(properties.build())
}

fn unwritable(error: &ParquetError) -> Fault {
    Fault::bug(format!("rows cannot be written as Parquet: {error}"))
}

/// How rows become a file.
struct Table {
    columns: ArrowColumns,
    properties: WriterProperties,
    row_group_rows: Option<u64>,
}

impl PartFormat for Table {
    fn schema(&self) -> &SchemaRef {
        self.columns.schema()
    }

    fn rows(&self, batch: &Batch) -> Result<RecordBatch, Fault> {
        self.columns.batch(batch).map_err(failed)
    }

    fn row_bytes(&self, batch: &Batch, row_idx: usize) -> u64 {
        self.columns.row_bytes(batch, row_idx)
    }

    fn make(&self, rows: &LoggedRows, name: &str, destination: &Destination) -> Result<Vec<Sealed>, Fault> {
        let mut out = Output { out: destination.open(name)?, fault: None };
        let writer = ArrowWriter::try_new(&mut out, rows.schema.clone(), Some(self.properties.clone()));
        let mut writer = writer.map_err(|error| unwritable(&error))?;
        for rows in rows.batches()? {
            self.write(&mut writer, &rows?)?;
        }
        let finished = writer.finish();
        check(&mut writer, finished)?;
        drop(writer);
        Ok(vec![out.out.seal(rows.n_rows)?])
    }

    fn read(&self, part: &Path) -> Result<LoggedBatches, Fault> {
        let unreadable = |part: &Path, error: &dyn std::fmt::Display| {
            let message = format!("cannot read `{}` again: {error}", part.display());
            Fault::permanent(message).help("start afresh with `--fresh`")
        };
        let file = File::open(part).map_err(|error| Fault::io("open", part, &error))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|reader| reader.build());
        let reader = reader.map_err(|error| unreadable(part, &error))?;
        let (schema, part) = (self.columns.schema().clone(), part.to_owned());
        Ok(Box::new(reader.map(move |rows| {
            let rows = rows.and_then(|rows| RecordBatch::try_new(schema.clone(), rows.columns().to_vec()));
            rows.map_err(|error| unreadable(&part, &error))
        })))
    }
}

impl Table {
    fn write(&self, writer: &mut ArrowWriter<&mut Output>, rows: &RecordBatch) -> Result<(), Fault> {
        let mut start = 0;
        while start < rows.num_rows() {
            let in_group = writer.in_progress_rows() as u64;
            let room = self.row_group_rows.map_or(u64::MAX, |most| most - in_group);
            let n_rows = (rows.num_rows() - start).min(usize::try_from(room).unwrap_or(usize::MAX));
            let written = writer.write(&rows.slice(start, n_rows));
            check(writer, written)?;
            start += n_rows;
            let is_full = match self.row_group_rows {
                Some(most) => writer.in_progress_rows() as u64 >= most,
                None => writer.in_progress_size() as u64 >= ROW_GROUP_BYTES,
            };
            if is_full {
                let flushed = writer.flush();
                check(writer, flushed)?;
            }
        }
        Ok(())
    }
}

/// What a step of the writer came to: a disk that fails is told as such.
fn check<T>(writer: &mut ArrowWriter<&mut Output>, step: Result<T, ParquetError>) -> Result<T, Fault> {
    step.map_err(|error| writer.inner_mut().fault.take().unwrap_or_else(|| unwritable(&error)))
}

/// The unfinished file, as the library wants it.
struct Output {
    out: Partial,
    /// Why it cannot be written.
    fault: Option<Fault>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.buffer().extend_from_slice(bytes);
        match self.out.spill() {
            Ok(()) => Ok(bytes.len()),
            Err(fault) => {
                let error = io::Error::other(fault.to_string());
                self.fault = Some(fault);
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float32Type;
    use engine::data::{ColumnType, DType, Dim, Field, Role, RowMut, RowPos, Schema};
    use engine::durable::publish;
    use engine::node::SinkPos;
    use engine::node::harness::{Harness, batch};

    use super::*;

    const N: usize = 8;

    fn schema() -> Schema {
        let labels = ColumnType::List(vec![(Arc::from("label"), ColumnType::Text)]);
        let e = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(N)] };
        let fields = vec![
            Field::new("uri", ColumnType::Text, Role::Uri),
            Field::new("labels", labels, Role::Result),
            Field::new("e", e, Role::Result),
        ];
        Schema { fields, batch: None }
    }

    fn write(index: u64, out: &mut RowMut<'_>) {
        out.text(0, &format!("row {index}"));
        out.list(1, index as usize % 3, |_, record| record.text(0, "a"));
        let mut buffer = out.alloc(DType::F32, &[N]);
        let values: Vec<f32> = (0..N).map(|at| (index * 100) as f32 + at as f32).collect();
        buffer.bytes_mut()[..4 * N].copy_from_slice(bytemuck::cast_slice(&values));
        out.tensor(2, DType::F32, &[N], buffer);
    }

    /// The uri, how many labels, the embedding.
    type Row = (String, usize, Vec<f32>);

    /// The rows of each row group, and the values of a file.
    fn read(path: &Path) -> (Vec<i64>, Vec<Row>) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        let groups = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        let mut rows = Vec::new();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let (uris, labels) = (batch.column(0).as_string::<i32>(), batch.column(1).as_list::<i32>());
            let e = batch.column(2).as_fixed_size_list();
            assert_eq!(e.value_length(), N as i32, "the size of the lists is kept");
            rows.extend((0..batch.num_rows()).map(|row| {
                let e = e.value(row).as_primitive::<Float32Type>().values().to_vec();
                (uris.value(row).to_owned(), labels.value(row).len(), e)
            }));
        }
        (groups, rows)
    }

    fn expected(rows: std::ops::Range<u64>) -> Vec<Row> {
        let row = |index: u64| {
            let e = (0..N).map(|at| (index * 100) as f32 + at as f32).collect();
            (format!("row {index}"), index as usize % 3, e)
        };
        rows.map(row).collect()
    }

    #[test]
    fn rows_read_back_in_groups_of_the_size_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let with = "{path: out/e.parquet, row_group_rows: 7, compression: snappy}";
        let mut sink = Harness::new::<Parquet>(with, vec![schema()]).in_folder(folder.path()).sink().unwrap();
        sink.write(&batch(&schema(), 0, 10, write)).unwrap();
        sink.write(&batch(&schema(), 10, 6, write)).unwrap();
        let sealed = sink.seal().unwrap();
        assert_eq!((sealed.len(), sealed[0].rows), (1, 16));
        publish(folder.path(), &sealed).unwrap();
        let (groups, rows) = read(&folder.path().join("out/e.parquet"));
        assert_eq!(groups, [7, 7, 2]);
        assert_eq!(rows, expected(0..16));
    }

    #[test]
    fn a_run_that_is_gone_on_with_has_the_same_rows_in_the_same_parts() {
        let folder = tempfile::tempdir().unwrap();
        let with = "{path: e.parquet, rotate: {rows: 10}}";
        let node = Harness::new::<Parquet>(with, vec![schema()]).in_folder(folder.path());
        let (mut sealed, mut pos) = (Vec::new(), SinkPos::default());
        // Each turn writes rows, is cut, writes more, and dies.
        for (first, n_rows) in [(0, 4), (4, 13), (17, 3), (20, 1)] {
            let mut sink = node.sink().unwrap();
            sink.resume(&pos).unwrap();
            sink.write(&batch(&schema(), first, n_rows, write)).unwrap();
            let (at, durable) = sink.cut(RowPos::new(0, first + n_rows as u64)).unwrap();
            durable().unwrap();
            sealed.extend(sink.closed());
            pos = serde_json::from_str(&serde_json::to_string(&at).unwrap()).unwrap();
            sink.write(&batch(&schema(), first + n_rows as u64, 12, write)).unwrap();
            drop(sink.cut(RowPos::END).unwrap());
        }
        // The parts that were complete with the cuts have their names.
        publish(folder.path(), &sealed).unwrap();
        let mut sink = node.sink().unwrap();
        assert_eq!(sink.resume(&pos).unwrap(), 9, "rows of the log that are done again");
        sink.write(&batch(&schema(), 21, 4, write)).unwrap();
        let last = sink.seal().unwrap();
        publish(folder.path(), &last).unwrap();
        sealed.extend(last);
        let names: Vec<_> = sealed.iter().map(|sealed| (sealed.path.as_str(), sealed.rows)).collect();
        assert_eq!(names, [("e-00000.parquet", 10), ("e-00001.parquet", 10), ("e-00002.parquet", 5)]);
        for (part, rows) in [(0, 0..10), (1, 10..20), (2, 20..25)] {
            assert_eq!(read(&folder.path().join(format!("e-{part:05}.parquet"))).1, expected(rows));
        }
    }

    #[test]
    fn a_part_that_was_complete_can_be_gone_back_into() {
        let folder = tempfile::tempdir().unwrap();
        let with = "{path: e.parquet, rotate: {rows: 10}, row_group_rows: 4}";
        let node = Harness::new::<Parquet>(with, vec![schema()]).in_folder(folder.path());
        let mut sink = node.sink().unwrap();
        sink.write(&batch(&schema(), 0, 7, write)).unwrap();
        let (pos, _) = sink.cut(RowPos::new(0, 7)).unwrap();
        sink.write(&batch(&schema(), 7, 4, write)).unwrap();
        drop(sink);
        // The log is gone, and the part is what it was when it was complete.
        std::fs::remove_dir_all(folder.path().join(".flowgpu")).unwrap();
        let mut sink = node.sink().unwrap();
        sink.resume(&pos).unwrap();
        sink.write(&batch(&schema(), 90, 2, write)).unwrap();
        publish(folder.path(), &sink.seal().unwrap()).unwrap();
        let rows = [expected(0..7), expected(90..92)].concat();
        assert_eq!(read(&folder.path().join("e-00000.parquet")).1, rows);
        std::fs::remove_dir_all(folder.path().join(".flowgpu")).unwrap();
        assert!(node.sink().unwrap().resume(&pos).is_err(), "there is nothing to read it from");
    }

    #[test]
    fn logs_go_when_their_parts_are_safe() {
        let folder = tempfile::tempdir().unwrap();
        let with = "{path: e.parquet, rotate: {rows: 10}}";
        let mut sink = Harness::new::<Parquet>(with, vec![schema()]).in_folder(folder.path()).sink().unwrap();
        let logs = || std::fs::read_dir(folder.path().join(".flowgpu/alone/log")).unwrap().count();
        for turn in 0..6 {
            sink.write(&batch(&schema(), turn * 10, 10, write)).unwrap();
            let (_, durable) = sink.cut(RowPos::new(0, turn * 10 + 10)).unwrap();
            durable().unwrap();
            publish(folder.path(), &sink.closed()).unwrap();
            assert!(logs() <= 2, "{} logs", logs());
        }
    }

    #[test]
    fn no_rows_are_a_file_with_the_columns() {
        let folder = tempfile::tempdir().unwrap();
        let with = "{path: e.parquet, rotate: {rows: 10}, columns: [e, uri]}";
        let sink = Harness::new::<Parquet>(with, vec![schema()]).in_folder(folder.path()).sink().unwrap();
        publish(folder.path(), &sink.seal().unwrap()).unwrap();
        let file = File::open(folder.path().join("e-00000.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let names: Vec<_> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["e", "uri"]);
    }
}
