//! `sink.csv`: a table with one header line.

use std::path::{Path, PathBuf};

use csv::{Terminator, Writer, WriterBuilder};
use engine::data::{Batch, Column, RowPos};
use engine::node::{
    BuildCx, Durable, Fault, NodeKind, NodeSpec, Parts, Sealed, Sink, SinkPos, SpecCx, SpecError, Stage,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::chosen;
use super::json::write_value;
use super::jsonl::final_paths;
use super::lines::resume_lines;
use engine::durable::Partial;

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
    /// The file to write, relative to the pipeline file; folders are made. `-` is standard output.
    path: String,
    /// The columns to write, in this order. Default: `uri`, `id` where it differs, what the source carried, and results,
    /// without pixels.
    columns: Option<Vec<String>>,
}

impl NodeKind for Csv {
    const NAME: &'static str = "sink.csv";
    const EXAMPLE: &'static str = "out: {kind: sink.csv, with: {path: out/sizes.csv, columns: [uri, width, height]}}";

    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        chosen(cx.input(), self.columns.as_deref())?;
        Ok(NodeSpec::default().with_detail(&self.path))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let columns = chosen(cx.input(), self.columns.as_deref());
        let columns = columns.map_err(|error| Fault::permanent(error.to_string()))?;
        let names = columns.iter().map(|&column| cx.input().fields[column].name.to_string()).collect();
        let path = cx.output(&self.path);
        let out = Partial::open(&path, &cx.resolve(&path))?;
        Ok(Stage::Sink(Box::new(CsvSink { columns, names, out, n_rows: 0, cell: Vec::new() })))
    }

    fn writes(&self, base: &Path) -> Vec<PathBuf> {
        final_paths(base, &self.path)
    }

    fn parts(&self) -> Parts {
        Parts::LinesAfterHeader
    }
}

struct CsvSink {
    columns: Vec<usize>,
    names: Vec<String>,
    out: Partial,
    n_rows: u64,
    cell: Vec<u8>,
}

impl CsvSink {
    fn write_header(&mut self) {
        if self.out.n_bytes() == 0 {
            table(self.out.buffer()).write_record(&self.names).expect(TO_MEMORY);
        }
    }
}

const TO_MEMORY: &str = "a record can be written to memory";

fn table(text: &mut Vec<u8>) -> Writer<&mut Vec<u8>> {
    WriterBuilder::new().has_headers(false).terminator(Terminator::Any(b'\n')).from_writer(text)
}

impl Sink for CsvSink {
    fn write(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.write_header();
        let mut table = table(self.out.buffer());
        for row_idx in 0..batch.n_rows() {
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
        }
        table.flush().expect(TO_MEMORY);
        drop(table);
        self.n_rows += batch.n_rows() as u64;
        self.out.end_batch()
    }

    fn cut(&mut self, _upto: RowPos) -> Result<(SinkPos, Durable), Fault> {
        let (bytes, durable) = self.out.cut()?;
        Ok((SinkPos { bytes, rows: self.n_rows, ..SinkPos::default() }, durable))
    }

    fn resume(&mut self, at: &SinkPos) -> Result<u64, Fault> {
        self.n_rows = at.rows;
        resume_lines(&mut self.out, at.bytes)
    }

    fn seal(mut self: Box<Self>) -> Result<Vec<Sealed>, Fault> {
        self.write_header();
        Ok(vec![self.out.seal(self.n_rows)?])
    }

    fn unfinished(&self) -> Option<PathBuf> {
        self.out.unfinished()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use engine::data::{ColumnType, Field, Role, RowMut, Schema};
    use engine::node::harness::{Harness, batch};

    use engine::durable::publish;

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
}
