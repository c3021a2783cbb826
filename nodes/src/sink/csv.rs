//! `sink.csv`: a table with one header line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use csv::{Terminator, Writer, WriterBuilder};
use engine::data::{Batch, Column};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, Objects, Parts, Sealed, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::appending::{Appending, RowFormat};
use super::columns::chosen;
use super::compression::Compression;
use super::destination::{Destination, Parts as Numbering, final_paths};
use super::json::write_value;
use super::objects::{SinkStore, is_object};
use super::rotate::Rotate;
use super::stale::remove_stale;
use crate::store::StoreOptions;

/// Writes comma-separated values with a header line.
///
/// The file has its name only when it is complete; until then it is `.<name>.partial` beside it.
///
/// # Input
/// Any columns but bytes. Lists and tensors, such as `labels`, are one cell of JSON text, as `sink.jsonl` writes them.
/// Cells with commas, quotes or line ends are quoted.
///
/// # Output
/// None.
///
/// # Example
/// ```yaml
/// out: {kind: sink.csv, with: {path: out/sizes.csv, columns: [uri, width, height]}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Csv {
    /// The file to write, relative to the pipeline file; folders are made. Compressed if it ends in `.gz` or `.zst`. `-` is
    /// standard output, `s3://bucket/key`, `gs://…` and `az://…` an object: see docs/outputs.md.
    path: String,
    /// The columns to write, in this order. Default: `uri`, `id` where it differs, what the source carried, and results,
    /// without pixels.
    columns: Option<Vec<String>>,
    /// `gzip`, `zstd` or `none`. Default: by the ending of `path`.
    compression: Option<Compression>,
    /// Several files, each with a header, instead of one: `{rows: 100000}`, `{bytes: 512MiB}` before compression, or both.
    rotate: Option<Rotate>,
    /// How the store of a `path` that is a URL is reached: see docs/stores.md.
    #[serde(default)]
    #[schemars(with = "StoreOptions")]
    store: SinkStore,
}

impl NodeKind for Csv {
    const NAME: &'static str = "sink.csv";
    const EXAMPLE: &'static str = "out: {kind: sink.csv, with: {path: out/sizes.csv, columns: [uri, width, height]}}";
    const INCIDENTAL: &'static [&'static str] = SinkStore::INCIDENTAL;
}

impl Node for Csv {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        chosen(cx.input(), self.columns.as_deref())?;
        Rotate::check(self.rotate.as_ref(), &self.path)?;
        self.store.check(&self.path)?;
        Ok(NodeSpec::default().with_detail(&self.path))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let columns = chosen(cx.input(), self.columns.as_deref());
        let columns = columns.map_err(|error| Fault::permanent(error.to_string()))?;
        let names = columns.iter().map(|&column| cx.input().fields[column].name.to_string()).collect();
        let destination = Destination::new(cx, &self.path, Numbering::of(self.rotate));
        let compression = Compression::of(&self.path, self.compression);
        let format = Table { columns, names, cell: Vec::new() };
        Ok(Stage::Sink(Box::new(Appending::open(format, destination, self.rotate, compression)?)))
    }

    fn writes(&self, base: &Path) -> Vec<PathBuf> {
        final_paths(base, &self.path)
    }

    fn objects(&self) -> Option<Arc<dyn Objects>> {
        self.store.objects(&self.path)
    }

    fn spools(&self) -> bool {
        is_object(&self.path)
    }

    fn parts(&self) -> Parts {
        let is_plain = Compression::of(&self.path, self.compression) == Compression::None;
        let is_one = self.rotate.is_none() && !is_object(&self.path);
        if is_plain && is_one { Parts::LinesAfterHeader } else { Parts::Apart }
    }

    fn tidy(&self, base: &Path, outputs: &[Sealed]) -> Result<(), Fault> {
        remove_stale(base, outputs, self.rotate, &self.store)
    }
}

/// A row is a record of cells.
struct Table {
    columns: Vec<usize>,
    names: Vec<String>,
    cell: Vec<u8>,
}

const TO_MEMORY: &str = "a record can be written to memory";

/// What the writer holds before it hands it on: it is made anew for each row.
const ROW_BYTES: usize = 256;

fn table(text: &mut Vec<u8>) -> Writer<&mut Vec<u8>> {
    let mut builder = WriterBuilder::new();
    builder.has_headers(false).terminator(Terminator::Any(b'\n')).buffer_capacity(ROW_BYTES);
    builder.from_writer(text)
}

impl RowFormat for Table {
    fn begin(&mut self, out: &mut Vec<u8>) {
        table(out).write_record(&self.names).expect(TO_MEMORY);
    }

    fn row(&mut self, batch: &Batch, row_idx: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut table = table(out);
        for &column in &self.columns {
            let values = &batch.columns()[column];
            let written = match values {
                Column::Text(texts) => table.write_field(texts.get(row_idx)),
                Column::Float(numbers) if !numbers.values()[row_idx].is_finite() => table.write_field(""),
                _ => {
                    self.cell.clear();
                    write_value(&mut self.cell, values, row_idx);
                    table.write_field(&self.cell)
                }
            };
            written.expect(TO_MEMORY);
        }
        table.write_record(None::<&[u8]>).expect(TO_MEMORY);
        table.flush().expect(TO_MEMORY);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use engine::data::{ColumnType, Field, Role, RowMut, RowPos, Schema};
    use engine::durable::publish;
    use engine::node::Sink;
    use engine::node::harness::{Harness, batch};

    use super::*;

    fn schema() -> Schema {
        let labels = ColumnType::List(vec![(Arc::from("label"), ColumnType::Text)]);
        let fields = vec![
            Field::new("uri", ColumnType::Text, Role::Uri),
            Field::new("score", ColumnType::Float, Role::Result),
            Field::new("labels", labels, Role::Result),
        ];
        Schema { fields, batch: None }
    }

    fn write(index: u64, out: &mut RowMut<'_>) {
        out.text(0, ["plain.jpg", "a,b \"c\".jpg", "two\nlines"][index as usize % 3]);
        out.float(1, if index == 2 { f64::NAN } else { 0.1 });
        out.list(2, 1, |_, item| item.text(0, "tiger cat"));
    }

    fn sink(folder: &Path, with: &str) -> Box<dyn Sink> {
        Harness::new::<Csv>(with, vec![schema()]).in_folder(folder).sink().unwrap()
    }

    #[test]
    fn cells_read_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = sink(folder.path(), "path: o.csv");
        sink.write(&batch(&schema(), 0, 1, write)).unwrap();
        sink.write(&batch(&schema(), 1, 2, write)).unwrap();
        let sealed = sink.seal().unwrap();
        assert_eq!(sealed[0].rows, 3);
        publish(folder.path(), &sealed).unwrap();
        let text = fs::read_to_string(folder.path().join("o.csv")).unwrap();
        assert!(
            text.starts_with("uri,score,labels\nplain.jpg,0.1,\"[{\"\"label\"\":\"\"tiger cat\"\"}]\"\n"),
            "{text}"
        );
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<_> = reader.records().map(|record| record.unwrap()).collect();
        assert_eq!(rows[1].iter().collect::<Vec<_>>(), ["a,b \"c\".jpg", "0.1", r#"[{"label":"tiger cat"}]"#]);
        assert_eq!(rows[2].iter().collect::<Vec<_>>(), ["two\nlines", "", r#"[{"label":"tiger cat"}]"#]);
    }

    #[test]
    fn a_table_without_rows_has_its_header() {
        let folder = tempfile::tempdir().unwrap();
        let sink = sink(folder.path(), "{path: o.csv, columns: [score, uri]}");
        publish(folder.path(), &sink.seal().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("o.csv")).unwrap(), "score,uri\n");
    }

    #[test]
    fn a_resumed_table_has_one_header() {
        let folder = tempfile::tempdir().unwrap();
        for n_before in [0, 2] {
            let mut first = sink(folder.path(), "{path: o.csv, columns: [score]}");
            if n_before > 0 {
                first.write(&batch(&schema(), 0, n_before, write)).unwrap();
            }
            let (pos, _) = first.cut(RowPos::new(0, n_before as u64)).unwrap();
            first.write(&batch(&schema(), 0, 1, write)).unwrap();
            drop(first);
            let mut second = sink(folder.path(), "{path: o.csv, columns: [score]}");
            second.resume(&pos).unwrap();
            second.write(&batch(&schema(), 0, 1, write)).unwrap();
            publish(folder.path(), &second.seal().unwrap()).unwrap();
            let text = fs::read_to_string(folder.path().join("o.csv")).unwrap();
            assert_eq!(text, format!("score\n{}", "0.1\n".repeat(n_before + 1)));
        }
    }

    #[test]
    fn each_part_of_a_table_has_its_header() {
        let folder = tempfile::tempdir().unwrap();
        let with = "{path: o.csv.gz, columns: [score], rotate: {rows: 2}}";
        let mut sink = sink(folder.path(), with);
        sink.write(&batch(&schema(), 0, 2, write)).unwrap();
        drop(sink.cut(RowPos::new(0, 2)).unwrap());
        let mut sealed = sink.closed();
        assert_eq!(sealed.len(), 1);
        sink.write(&batch(&schema(), 0, 1, write)).unwrap();
        sealed.extend(sink.seal().unwrap());
        publish(folder.path(), &sealed).unwrap();
        let read = |name: &str| {
            let file = fs::File::open(folder.path().join(name)).unwrap();
            std::io::read_to_string(Compression::Gzip.reader(file).unwrap()).unwrap()
        };
        assert_eq!((&*read("o-00000.csv.gz"), &*read("o-00001.csv.gz")), ("score\n0.1\n0.1\n", "score\n0.1\n"));
    }
}
