//! `sink.npy`: a column of tensors as one NumPy array.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::data::{Batch, Column, DType, Field, RowPos, Schema};
use engine::node::{
    BuildCx, Durable, Fault, Node, NodeKind, NodeSpec, Objects, Sealed, Sink, SinkPos, SpecCx, SpecError, Stage,
    find_column,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::destination::{Destination, Parts as Numbering, Spooled, final_paths};
use super::ids::{id_column, ids_path};
use super::json::write_text;
use super::lines::resume_lines;
use super::npy_header::{append_elements, header, written_as};
use super::objects::{SinkStore, is_object};
use crate::store::StoreOptions;
use engine::durable::{Partial, STDOUT};

/// Writes one column of tensors as one array with the rows as its first dimension, for `numpy.load`, and the rows' ids
/// beside it.
///
/// Both files have their names only when they are complete; until then each is `.<name>.partial` beside it.
///
/// # Input
/// A column of tensors of one shape: features, logits, decoded pixels. `bf16` is written as `f32`.
///
/// # Output
/// None. Beside `embeddings.npy`, `embeddings.ids.jsonl` has one id a line, a JSON string, in the order of the rows.
///
/// # Example
/// ```yaml
/// out: {kind: sink.npy, with: {path: out/embeddings.npy}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Npy {
    /// The file to write, relative to the pipeline file; folders are made. `s3://bucket/key`, `gs://…` and `az://…` are an
    /// object: see docs/outputs.md.
    path: String,
    /// The column to write. Default: the only one that fits.
    column: Option<String>,
    /// How the store of a `path` that is a URL is reached: see docs/stores.md.
    #[serde(default)]
    #[schemars(with = "StoreOptions")]
    store: SinkStore,
}

struct Resolved {
    column: usize,
    id: usize,
    dtype: DType,
    shape: Vec<usize>,
}

impl Npy {
    fn resolve(&self, input: &Schema) -> Result<Resolved, SpecError> {
        if self.path == STDOUT {
            return Err(SpecError::new("an array cannot go to standard output")
                .at(&["path"])
                .label("write a file name"));
        }
        let hint = "put an `infer` or `decode.image` node between them, or one that makes them the same size";
        let fits = |field: &Field| field.ty.fixed_shape().is_some();
        let column = find_column(input, self.column.as_deref(), "a column of tensors of one shape", hint, fits)?;
        let (dtype, shape) = input.fields[column].ty.fixed_shape().expect("the column was found by it");
        Ok(Resolved { column, id: id_column(input)?, dtype, shape })
    }
}

impl NodeKind for Npy {
    const NAME: &'static str = "sink.npy";
    const EXAMPLE: &'static str = "out: {kind: sink.npy, with: {path: out/embeddings.npy}}";
    const INCIDENTAL: &'static [&'static str] = SinkStore::INCIDENTAL;
}

impl Node for Npy {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        self.resolve(cx.input())?;
        self.store.check(&self.path)?;
        Ok(NodeSpec::default().with_detail(&self.path))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let resolved = self.resolve(cx.input()).map_err(|error| Fault::permanent(error.to_string()))?;
        let destination = Destination::new(cx, &self.path, Numbering::One);
        let name = destination.name(0);
        Ok(Stage::Sink(Box::new(NpySink {
            resolved,
            array: destination.open(&name)?,
            ids: destination.open(&ids_path(&name))?,
            destination,
            n_rows: 0,
        })))
    }

    fn writes(&self, base: &Path) -> Vec<PathBuf> {
        [self.path.clone(), ids_path(&self.path)].iter().flat_map(|path| final_paths(base, path)).collect()
    }

    fn objects(&self) -> Option<Arc<dyn Objects>> {
        self.store.objects(&self.path)
    }

    fn spools(&self) -> bool {
        is_object(&self.path)
    }
}

struct NpySink {
    resolved: Resolved,
    destination: Destination,
    array: Partial,
    ids: Partial,
    n_rows: u64,
}

impl NpySink {
    fn header(&self) -> Vec<u8> {
        header(self.resolved.dtype, &self.resolved.shape, self.n_rows)
    }

    /// Room for the header; the number of rows is filled in at the end.
    fn write_header(&mut self) {
        if self.array.n_bytes() == 0 {
            let header = self.header();
            self.array.buffer().extend_from_slice(&header);
        }
    }

    /// Bytes of the array's file with `n_rows` rows.
    fn array_bytes(&self, n_rows: u64) -> u64 {
        let n_elements = self.resolved.shape.iter().product::<usize>();
        self.header().len() as u64 + n_rows * (n_elements * written_as(self.resolved.dtype).size()) as u64
    }
}

impl Sink for NpySink {
    fn write(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.write_header();
        let ids = match &batch.columns()[self.resolved.id] {
            Column::Text(ids) => ids,
            _ => return Err(Fault::bug("the column of ids is no text")),
        };
        for row_idx in 0..batch.n_rows() {
            let tensor = batch.row(row_idx).tensor(self.resolved.column);
            if tensor.shape != self.resolved.shape {
                let message =
                    format!("a row has the shape {:?}, and {:?} was announced", tensor.shape, self.resolved.shape);
                return Err(Fault::bug(message));
            }
            append_elements(self.array.buffer(), tensor);
            self.array.spill()?;
            write_text(self.ids.buffer(), ids.get(row_idx));
            self.ids.buffer().push(b'\n');
            self.n_rows += 1;
        }
        self.ids.end_batch()?;
        self.array.end_batch()
    }

    /// The position's bytes are those of both files.
    fn cut(&mut self, _upto: RowPos) -> Result<(SinkPos, Durable), Fault> {
        self.write_header();
        let ((n_array, array), (n_ids, ids)) = (self.array.cut()?, self.ids.cut()?);
        let pos = SinkPos { bytes: n_array + n_ids, rows: self.n_rows, ..SinkPos::default() };
        Ok((pos, Box::new(|| array().and_then(|()| ids()))))
    }

    fn resume(&mut self, at: &SinkPos) -> Result<u64, Fault> {
        // A run that has not come to this sink has not even written a header.
        let array_bytes = if at.bytes == 0 && at.rows == 0 { 0 } else { self.array_bytes(at.rows) };
        let Some(ids_bytes) = at.bytes.checked_sub(array_bytes) else {
            let message = format!("{} bytes cannot hold {} rows of `{}`", at.bytes, at.rows, self.resolved.dtype);
            return Err(Fault::permanent(message).help("start afresh with `--fresh`"));
        };
        self.array.resume(array_bytes)?;
        self.n_rows = at.rows;
        resume_lines(&mut self.ids, ids_bytes)
    }

    /// The ids get their name first: whoever sees the array finds them.
    fn seal(mut self: Box<Self>) -> Result<Vec<Sealed>, Fault> {
        self.write_header();
        let header = self.header();
        self.array.overwrite(0, &header)?;
        let sealed = [self.ids.seal(self.n_rows)?, self.array.seal(self.n_rows)?];
        sealed.map(|sealed| self.destination.sealed(sealed, Spooled::Stays)).into_iter().collect()
    }

    fn unfinished(&self) -> Option<PathBuf> {
        self.array.unfinished()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use engine::data::{ColumnType, Dim, Role, RowMut};
    use engine::durable::publish;
    use engine::node::harness::{Harness, batch};
    use half::bf16;

    use super::*;

    fn schema(dtype: DType) -> Schema {
        let ty = ColumnType::Tensor { dtype, shape: vec![Dim::Fixed(2), Dim::Fixed(3)] };
        let fields = vec![Field::new("uri", ColumnType::Text, Role::Uri), Field::new("features", ty, Role::Result)];
        Schema { fields, batch: None }
    }

    fn write_row(dtype: DType, index: u64, out: &mut RowMut<'_>) {
        out.text(0, &format!("{index}\n.jpg"));
        let values: Vec<u8> = (0..6).flat_map(|n| element(dtype, index * 6 + n)).collect();
        let mut buffer = out.alloc(dtype, &[2, 3]);
        buffer.bytes_mut()[..values.len()].copy_from_slice(&values);
        out.tensor(1, dtype, &[2, 3], buffer);
    }

    fn element(dtype: DType, value: u64) -> Vec<u8> {
        match dtype {
            DType::U8 => vec![value as u8],
            DType::I64 => (value as i64).to_ne_bytes().into(),
            DType::F32 => (value as f32).to_ne_bytes().into(),
            DType::BF16 => bf16::from_f32(value as f32).to_ne_bytes().into(),
            DType::F16 => half::f16::from_f32(value as f32).to_ne_bytes().into(),
        }
    }

    /// The array's type, its shape as text and its data, read as the format's document says.
    fn parse(file: &[u8]) -> (String, String, Vec<u8>) {
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let data_at = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        let text = std::str::from_utf8(&file[10..data_at]).unwrap();
        let between = |before: &str, after: &str| {
            let start = text.find(before).unwrap() + before.len();
            text[start..][..text[start..].find(after).unwrap()].to_owned()
        };
        (between("'descr': '", "'"), between("'shape': (", ")"), file[data_at..].to_vec())
    }

    fn harness(folder: &Path, dtype: DType) -> Harness {
        Harness::new::<Npy>("path: out/e.npy", vec![schema(dtype)]).in_folder(folder)
    }

    #[test]
    fn the_array_has_every_row_in_its_own_type() {
        let written =
            [(DType::U8, "|u1"), (DType::F16, "<f2"), (DType::F32, "<f4"), (DType::I64, "<i8"), (DType::BF16, "<f4")];
        for (dtype, descr) in written {
            let folder = tempfile::tempdir().unwrap();
            let mut sink = harness(folder.path(), dtype).sink().unwrap();
            sink.write(&batch(&schema(dtype), 0, 4, |index, out| write_row(dtype, index, out))).unwrap();
            sink.write(&batch(&schema(dtype), 4, 1, |index, out| write_row(dtype, index, out))).unwrap();
            let sealed = sink.seal().unwrap();
            publish(folder.path(), &sealed).unwrap();
            let file = fs::read(folder.path().join("out/e.npy")).unwrap();
            let (got_descr, shape, data) = parse(&file);
            assert_eq!((got_descr.as_str(), shape.as_str()), (descr, "5, 2, 3,"));
            let as_written = if dtype == DType::BF16 { DType::F32 } else { dtype };
            assert_eq!(data, (0..30).flat_map(|n| element(as_written, n)).collect::<Vec<_>>());
            let ids = fs::read_to_string(folder.path().join("out/e.ids.jsonl")).unwrap();
            assert_eq!(ids, (0..5).map(|index| format!("\"{index}\\n.jpg\"\n")).collect::<String>());
            let sizes: Vec<_> = sealed.iter().map(|output| (output.path.as_str(), output.rows, output.bytes)).collect();
            assert_eq!(sizes, [("out/e.ids.jsonl", 5, ids.len() as u64), ("out/e.npy", 5, file.len() as u64)]);
        }
    }

    #[test]
    fn an_array_of_no_rows_is_one() {
        let folder = tempfile::tempdir().unwrap();
        publish(folder.path(), &harness(folder.path(), DType::F32).sink().unwrap().seal().unwrap()).unwrap();
        let (_, shape, data) = parse(&fs::read(folder.path().join("out/e.npy")).unwrap());
        assert_eq!((shape.as_str(), data.len()), ("0, 2, 3,", 0));
    }

    #[test]
    fn a_resumed_array_is_the_same_as_one_written_at_once() {
        let write = |index: u64, out: &mut RowMut<'_>| write_row(DType::F32, index, out);
        let rows = |first, n_rows| batch(&schema(DType::F32), first, n_rows, write);
        let run = |cut_at: Option<usize>| {
            let folder = tempfile::tempdir().unwrap();
            let mut sink = harness(folder.path(), DType::F32).sink().unwrap();
            let mut n_done = 0;
            if let Some(n_rows) = cut_at {
                if n_rows > 0 {
                    sink.write(&rows(0, n_rows)).unwrap();
                }
                let (pos, _) = sink.cut(RowPos::new(0, n_rows as u64)).unwrap();
                sink.write(&rows(n_rows as u64, 9)).unwrap();
                drop(sink.cut(RowPos::END).unwrap());
                drop(sink);
                sink = harness(folder.path(), DType::F32).sink().unwrap();
                assert_eq!(sink.resume(&pos).unwrap(), 9);
                n_done = n_rows;
            }
            sink.write(&rows(n_done as u64, 12 - n_done)).unwrap();
            publish(folder.path(), &sink.seal().unwrap()).unwrap();
            let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
            (read("out/e.npy"), read("out/e.ids.jsonl"))
        };
        assert_eq!(run(None), run(Some(5)));
        assert_eq!(run(None), run(Some(0)));
    }

    #[test]
    fn an_array_that_nothing_was_noted_of_begins_with_its_header() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = harness(folder.path(), DType::F32).sink().unwrap();
        sink.resume(&SinkPos::default()).unwrap();
        let sealed = sink.seal().unwrap();
        publish(folder.path(), &sealed).unwrap();
        assert_eq!(fs::read(folder.path().join("out/e.npy")).unwrap(), header(DType::F32, &[2, 3], 0));
    }

    #[test]
    fn it_needs_tensors_of_one_shape_and_a_file() {
        let ragged = ColumnType::Tensor { dtype: DType::U8, shape: vec![Dim::Any] };
        let fields = vec![Field::new("uri", ColumnType::Text, Role::Uri), Field::new("image", ragged, Role::Result)];
        let error = Harness::new::<Npy>("path: a.npy", vec![Schema { fields, batch: None }]).spec().unwrap_err();
        assert!(error.message.contains("a column of tensors of one shape is needed"), "{error}");
        let error = Harness::new::<Npy>("path: '-'", vec![schema(DType::U8)]).spec().unwrap_err();
        assert_eq!(error.option, ["path"]);
    }
}
