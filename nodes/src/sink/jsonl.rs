//! `sink.jsonl`: one JSON object a row.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::data::Batch;
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, Objects, Parts, Sealed, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::appending::{Appending, RowFormat};
use super::columns::chosen;
use super::compression::Compression;
use super::destination::{Destination, Parts as Numbering, final_paths};
use super::json::{write_text, write_value};
use super::objects::{SinkStore, is_object};
use super::rotate::Rotate;
use super::stale::remove_stale;
use crate::store::StoreOptions;

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
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jsonl {
    /// The file to write, relative to the pipeline file; folders are made. Compressed if it ends in `.gz` or `.zst`. `-` is
    /// standard output, `s3://bucket/key`, `gs://…` and `az://…` an object: see docs/outputs.md.
    pub(crate) path: String,
    /// The columns to write, in this order. Default: `uri`, `id` where it differs, what the source carried, and results,
    /// without pixels.
    pub(crate) columns: Option<Vec<String>>,
    /// `gzip`, `zstd` or `none`. Default: by the ending of `path`.
    pub(crate) compression: Option<Compression>,
    /// Several files instead of one: `{rows: 100000}`, `{bytes: 512MiB}` before compression, or both.
    pub(crate) rotate: Option<Rotate>,
    /// How the store of a `path` that is a URL is reached: see docs/stores.md.
    #[serde(default)]
    #[schemars(with = "StoreOptions")]
    pub(crate) store: SinkStore,
}

impl NodeKind for Jsonl {
    const NAME: &'static str = "sink.jsonl";
    const EXAMPLE: &'static str = "out: {kind: sink.jsonl, with: {path: out/labels.jsonl}}";
    const INCIDENTAL: &'static [&'static str] = SinkStore::INCIDENTAL;
}

impl Node for Jsonl {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        chosen(cx.input(), self.columns.as_deref())?;
        Rotate::check(self.rotate.as_ref(), &self.path)?;
        self.store.check(&self.path)?;
        Ok(NodeSpec::default().with_detail(&self.path))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Sink(Box::new(self.writer(cx)?)))
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
        match (Compression::of(&self.path, self.compression), self.rotate) {
            _ if is_object(&self.path) => Parts::Apart,
            (_, Some(_)) => Parts::Apart,
            (Compression::None, None) => Parts::Lines,
            (Compression::Gzip | Compression::Zstd, None) => Parts::Pieces,
        }
    }

    fn tidy(&self, base: &Path, outputs: &[Sealed]) -> Result<(), Fault> {
        remove_stale(base, outputs, self.rotate, &self.store)
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
        let destination = Destination::new(cx, &self.path, Numbering::of(self.rotate));
        let compression = Compression::of(&self.path, self.compression);
        Appending::open(JsonLines { keys: keys.collect() }, destination, self.rotate, compression)
    }
}

/// See [`Jsonl`].
pub(crate) type JsonlSink = Appending<JsonLines>;

/// A row is an object on a line of its own.
pub(crate) struct JsonLines {
    /// The columns, each with the text before its value.
    keys: Vec<(usize, Vec<u8>)>,
}

impl RowFormat for JsonLines {
    fn row(&mut self, batch: &Batch, row_idx: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        for (column, key) in &self.keys {
            out.extend_from_slice(key);
            write_value(out, &batch.columns()[*column], row_idx);
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use engine::data::{ColumnType, DType, Dim, Field, Role, RowMut, RowPos, Schema};
    use engine::durable::publish;
    use engine::node::harness::{Harness, batch};
    use engine::node::{Place, SinkPos};

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

    /// The text of all parts, after the run was cut at row 20 and gone on with, or not.
    fn parts(name: &str, more: &str, resumed: bool) -> Vec<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        let with = format!("{{path: {name}{more}}}");
        let node = Harness::new::<Jsonl>(&with, vec![schema()]).in_folder(folder.path());
        let mut sink = node.sink().unwrap();
        let mut sealed = Vec::new();
        sink.write(&batch(&schema(), 0, 20, write)).unwrap();
        let (pos, _) = sink.cut(RowPos::new(0, 20)).unwrap();
        sealed.extend(sink.closed());
        if resumed {
            sink.write(&batch(&schema(), 20, 17, write)).unwrap();
            drop(sink.cut(RowPos::new(0, 37)).unwrap());
            sink.write(&batch(&schema(), 37, 3, write)).unwrap();
            drop(sink);
            sink = node.sink().unwrap();
            let pos: SinkPos = serde_json::from_str(&serde_json::to_string(&pos).unwrap()).unwrap();
            let redone = sink.resume(&pos).unwrap();
            assert!(redone > 0 && redone <= 20, "{redone} rows done again");
        }
        for first in (20..50).step_by(6) {
            sink.write(&batch(&schema(), first, 6, write)).unwrap();
            drop(sink.cut(RowPos::new(0, first + 6)).unwrap());
            sealed.extend(sink.closed());
        }
        sealed.extend(sink.seal().unwrap());
        publish(folder.path(), &sealed).unwrap();
        node.node().tidy(folder.path(), &sealed).unwrap();
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name != ".flowgpu");
        names.sort();
        assert_eq!(names, sealed.iter().map(|sealed| sealed.path.clone()).collect::<Vec<_>>());
        let read = |sealed: &Sealed| {
            let file = fs::File::open(folder.path().join(&sealed.path)).unwrap();
            assert_eq!(file.metadata().unwrap().len(), sealed.bytes);
            let text = std::io::read_to_string(Compression::of(&sealed.path, None).reader(file).unwrap()).unwrap();
            assert_eq!(text.lines().count() as u64, sealed.rows);
            (sealed.path.clone(), text)
        };
        sealed.iter().map(read).collect()
    }

    #[test]
    fn compressed_and_divided_outputs_are_resumed_to_what_they_would_have_been() {
        let whole = parts("o.jsonl", "", false);
        for (name, more, n_parts) in [
            ("o.jsonl.gz", "", 1),
            ("o.jsonl.zst", "", 1),
            ("o.jsonl", ", rotate: {rows: 12}", 5),
            ("o.jsonl.zst", ", rotate: {bytes: 1KiB}", 5),
            ("o.jsonl.gz", ", rotate: {rows: 10}", 5),
        ] {
            let (at_once, resumed) = (parts(name, more, false), parts(name, more, true));
            assert_eq!(at_once, resumed, "{name}{more}");
            assert_eq!(at_once.iter().map(|(_, text)| text.as_str()).collect::<String>(), whole[0].1);
            assert_eq!(at_once.len(), n_parts, "{name}{more}");
            assert_eq!(at_once[0].0, if more.is_empty() { name.to_owned() } else { name.replace("o.", "o-00000.") });
        }
    }

    #[test]
    fn an_output_of_no_rows_is_a_whole_file_in_every_form() {
        for (with, name) in
            [("path: o.jsonl.gz", "o.jsonl.gz"), ("{path: o.jsonl.zst, rotate: {rows: 1}}", "o-00000.jsonl.zst")]
        {
            let folder = tempfile::tempdir().unwrap();
            let sink = Harness::new::<Jsonl>(with, vec![schema()]).in_folder(folder.path()).sink().unwrap();
            let sealed = sink.seal().unwrap();
            publish(folder.path(), &sealed).unwrap();
            let bytes = fs::read(folder.path().join(name)).unwrap();
            assert!(!bytes.is_empty());
            assert_eq!(std::io::read_to_string(Compression::of(name, None).reader(&bytes[..]).unwrap()).unwrap(), "");
        }
    }
}
