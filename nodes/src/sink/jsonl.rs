//! `sink.jsonl`: one JSON object a row.

use std::path::{Path, PathBuf};

use engine::data::{Batch, RowPos};
use engine::node::{
    BuildCx, Durable, Fault, NodeKind, NodeSpec, Parts, Sealed, Sink, SinkPos, SpecCx, SpecError, Stage, normalised,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::chosen;
use super::json::{write_text, write_value};
use super::lines::resume_lines;
use engine::durable::{Partial, STDOUT};

/// Writes one JSON object a row, one a line, keys in the order of the columns.
///
/// The file has its name only when it is complete; until then it is `.<name>.partial` beside it.
///
/// # Input
/// Any columns but bytes. Lists become arrays of objects, tensors arrays, nested by dimension. Numbers have the shortest
/// text that reads back as the same.
///
/// # Output
/// None.
///
/// # Example
/// ```yaml
/// out: {kind: sink.jsonl, with: {path: out/labels.jsonl}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jsonl {
    /// The file to write, relative to the pipeline file; folders are made. `-` is standard output.
    pub(crate) path: String,
    /// The columns to write, in this order. Default: `uri`, `id` where it differs, what the source carried, and results,
    /// without pixels.
    pub(crate) columns: Option<Vec<String>>,
}

impl NodeKind for Jsonl {
    const NAME: &'static str = "sink.jsonl";
    const EXAMPLE: &'static str = "out: {kind: sink.jsonl, with: {path: out/labels.jsonl}}";

    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        chosen(cx.input(), self.columns.as_deref())?;
        Ok(NodeSpec::default().with_detail(&self.path))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Sink(Box::new(self.writer(cx)?)))
    }

    fn writes(&self, base: &Path) -> Vec<PathBuf> {
        final_paths(base, &self.path)
    }

    fn parts(&self) -> Parts {
        Parts::Lines
    }
}

impl Jsonl {
    /// The sink, for kinds that put something around it.
    pub(crate) fn writer(&self, cx: &BuildCx<'_>) -> Result<JsonlSink, Fault> {
        let columns = chosen(cx.input(), self.columns.as_deref());
        let columns = columns.map_err(|error| Fault::permanent(error.to_string()))?;
        let keys = columns.iter().enumerate().map(|(place, &column)| {
            let mut key = vec![if place == 0 { b'{' } else { b',' }];
            write_text(&mut key, &cx.input().fields[column].name);
            key.push(b':');
            (column, key)
        });
        let path = cx.output(&self.path);
        Ok(JsonlSink { keys: keys.collect(), out: Partial::open(&path, &cx.resolve(&path))?, n_rows: 0 })
    }
}

/// The files that a sink with the option `path` gives their final names.
pub(super) fn final_paths(base: &Path, path: &str) -> Vec<PathBuf> {
    if path == STDOUT { Vec::new() } else { vec![normalised(&base.join(path))] }
}

/// See [`Jsonl`].
pub(crate) struct JsonlSink {
    /// The columns, each with the text before its value.
    keys: Vec<(usize, Vec<u8>)>,
    out: Partial,
    n_rows: u64,
}

impl Sink for JsonlSink {
    fn write(&mut self, batch: &Batch) -> Result<(), Fault> {
        for row_idx in 0..batch.n_rows() {
            let text = self.out.buffer();
            for (column, key) in &self.keys {
                text.extend_from_slice(key);
                write_value(text, &batch.columns()[*column], row_idx);
            }
            text.extend_from_slice(b"}\n");
            self.n_rows += 1;
            self.out.spill()?;
        }
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

    fn seal(self: Box<Self>) -> Result<Vec<Sealed>, Fault> {
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

    use engine::data::{ColumnType, DType, Dim, Field, Role, RowMut, Schema};
    use engine::node::harness::{Harness, batch};

    use engine::durable::publish;
    use engine::node::Place;

    use super::*;

    fn schema() -> Schema {
        let labels = [("index", ColumnType::Int), ("label", ColumnType::Text), ("score", ColumnType::Float)];
        let labels = ColumnType::List(labels.map(|(name, ty)| (Arc::from(name), ty)).into());
        let logits = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(2)] };
        let fields = vec![
            Field::new("id", ColumnType::Text, Role::Auxiliary),
            Field::new("uri", ColumnType::Text, Role::Uri),
            Field::new("labels", labels, Role::Result),
            Field::new("logits", logits, Role::Result),
        ];
        Schema { fields, batch: None }
    }

    fn write(index: u64, out: &mut RowMut<'_>) {
        let uri = format!("photos/\"{index}\"\n.jpg");
        out.text(0, &uri);
        out.text(1, &uri);
        out.list(2, index as usize % 3, |rank, item| {
            item.int(0, 282);
            item.text(1, "tiger cat");
            item.float(2, 0.3951 / (rank + 1) as f64);
        });
        let mut buffer = out.alloc(DType::F32, &[2]);
        buffer.bytes_mut()[..8].copy_from_slice(bytemuck::cast_slice(&[0.1f32, index as f32]));
        out.tensor(3, DType::F32, &[2], buffer);
    }

    #[test]
    fn a_row_is_one_compact_object_with_the_result_columns() {
        let folder = tempfile::tempdir().unwrap();
        let node = Harness::new::<Jsonl>("path: new/folder/out.jsonl", vec![schema()]).in_folder(folder.path());
        let mut sink = node.sink().unwrap();
        sink.write(&batch(&schema(), 0, 3, write)).unwrap();
        let sealed = sink.seal().unwrap();
        publish(folder.path(), &sealed).unwrap();
        let text = fs::read_to_string(folder.path().join("new/folder/out.jsonl")).unwrap();
        let rows = [
            r#"{"uri":"photos/\"0\"\n.jpg","labels":[],"logits":[0.1,0.0]}"#,
            r#"{"uri":"photos/\"1\"\n.jpg","labels":[{"index":282,"label":"tiger cat","score":0.3951}],"logits":[0.1,1.0]}"#,
            r#"{"uri":"photos/\"2\"\n.jpg","labels":[{"index":282,"label":"tiger cat","score":0.3951},{"index":282,"label":"tiger cat","score":0.19755}],"logits":[0.1,2.0]}"#,
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), rows);
        let path = "new/folder/out.jsonl".to_owned();
        assert_eq!(sealed, [Sealed { path, spooled: None, rows: 3, bytes: text.len() as u64, place: Place::File }]);
    }

    #[test]
    fn named_columns_are_written_in_the_order_named() {
        let folder = tempfile::tempdir().unwrap();
        let node = Harness::new::<Jsonl>("{path: o, columns: [logits, id]}", vec![schema()]).in_folder(folder.path());
        let mut sink = node.sink().unwrap();
        sink.write(&batch(&schema(), 5, 1, write)).unwrap();
        publish(folder.path(), &sink.seal().unwrap()).unwrap();
        let text = fs::read_to_string(folder.path().join("o")).unwrap();
        assert_eq!(text, "{\"logits\":[0.1,5.0],\"id\":\"photos/\\\"5\\\"\\n.jpg\"}\n");
    }

    #[test]
    fn a_resumed_output_has_the_same_bytes_as_one_written_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at_once = Harness::new::<Jsonl>("path: a.jsonl", vec![schema()]).in_folder(folder.path());
        let mut sink = at_once.sink().unwrap();
        sink.write(&batch(&schema(), 0, 50, write)).unwrap();
        publish(folder.path(), &sink.seal().unwrap()).unwrap();

        let resumed = Harness::new::<Jsonl>("path: b.jsonl", vec![schema()]).in_folder(folder.path());
        let mut first = resumed.sink().unwrap();
        first.write(&batch(&schema(), 0, 20, write)).unwrap();
        let (pos, _) = first.cut(RowPos::new(0, 20)).unwrap();
        assert_eq!(pos.rows, 20);
        first.write(&batch(&schema(), 20, 7, write)).unwrap();
        drop(first.cut(RowPos::new(0, 27)).unwrap());
        drop(first);
        let mut second = resumed.sink().unwrap();
        assert_eq!(second.resume(&pos).unwrap(), 7);
        second.write(&batch(&schema(), 20, 30, write)).unwrap();
        let sealed = second.seal().unwrap();
        assert_eq!(sealed[0].rows, 50);
        publish(folder.path(), &sealed).unwrap();
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("a.jsonl"), read("b.jsonl"));
    }

    #[test]
    fn final_paths_are_the_same_however_they_are_written() {
        let writes =
            |path: &str| Harness::new::<Jsonl>(&format!("path: '{path}'"), vec![]).node().writes(Path::new("/base"));
        assert_eq!(writes("./out/../o.jsonl"), writes("o.jsonl"));
        assert_eq!(writes("o.jsonl"), [PathBuf::from("/base/o.jsonl")]);
        assert!(writes("-").is_empty());
    }
}
