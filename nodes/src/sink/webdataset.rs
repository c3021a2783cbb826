//! `sink.webdataset`: shards of samples as tar archives.

use std::io::Read;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::data::{Batch, ColumnType, Field, Role, Schema};
use engine::durable::STDOUT;
use engine::node::{
    BuildCx, Fault, Node, NodeKind, NodeSpec, Objects, Sealed, SpecCx, SpecError, Stage, unknown_column,
};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::appending::{Appending, RowFormat};
use super::columns::{chosen, is_pixels};
use super::compression::Compression;
use super::destination::{Destination, Parts as Numbering, final_paths};
use super::ids::id_column;
use super::json::{write_text, write_value};
use super::npy_header::{append_elements, array_header};
use super::objects::{SinkStore, is_object};
use super::rotate::Rotate;
use super::sample_key::{sample_key, uri_extension};
use super::stale::remove_stale;
use super::tar_member::{append_end, append_member};
use crate::store::StoreOptions;

/// Samples of an archive, if nothing else is said.
const SAMPLES: NonZeroU64 = NonZeroU64::new(10_000).expect("it is more than zero");
/// Bytes of an archive, if nothing else is said.
const BYTES: u64 = 1 << 30;

/// Writes shards as `webdataset` reads them: tar archives in which a sample is the members that have a name in common.
///
/// The name is the row's id without what a path must not have (a scheme, `..`, a leading `/`), and with `_` for the dots of
/// its last part, because what follows the first dot is the member's type: `photos/cat.v2.jpg` is `photos/cat_v2_jpg.json`.
/// Rows of one id one after the other, as unions give them, would be one sample to readers. Archives of the same rows are
/// the same, byte by byte.
///
/// # Input
/// Any columns.
///
/// # Output
/// None.
///
/// # Example
/// ```yaml
/// out: {kind: sink.webdataset, with: {path: out/shard.tar, columns: {json: [uri, labels], npy: features}}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebDataset {
    /// The archives to write, relative to the pipeline file: `out/shard.tar` is `out/shard-00000.tar`, and so on; folders are
    /// made. Compressed if it ends in `.gz` or `.zst`. `s3://bucket/key`, `gs://…` and `az://…` are objects: see
    /// docs/outputs.md.
    path: String,
    /// By the ending of a member, the column or columns in it. `json` is an object of columns, or one column's value;
    /// `npy` a tensor, `cls` an integer, `txt` text; any other ending is a column of bytes, or text, as it is. Default: all
    /// that `sink.jsonl` writes but tensors as `json`, each tensor as `COLUMN.npy`, and bytes, such as those of `source.files`, under the
    /// ending of the uri.
    #[schemars(with = "Option<std::collections::BTreeMap<String, ColumnNames>>")]
    columns: Option<IndexMap<String, ColumnNames>>,
    /// When an archive is complete. Default `{rows: 10000, bytes: 1GiB}`.
    rotate: Option<Rotate>,
    /// `gzip`, `zstd` or `none`. Default: by the ending of `path`.
    compression: Option<Compression>,
    /// How the store of a `path` that is a URL is reached: see docs/stores.md.
    #[serde(default)]
    #[schemars(with = "StoreOptions")]
    store: SinkStore,
}

/// One column, or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum ColumnNames {
    /// One column.
    One(String),
    /// Several, in order.
    Many(#[schemars(length(min = 1))] Vec<String>),
}

/// A member of each sample.
#[derive(Clone, Debug, PartialEq)]
struct Member {
    ending: Ending,
    content: Content,
}

#[derive(Clone, Debug, PartialEq)]
enum Ending {
    Of(String),
    /// That of the row's uri, which is this column.
    OfUri(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Content {
    /// An object of columns, each with the text before its value.
    Object(Vec<(usize, Vec<u8>)>),
    /// A value as JSON, or an integer.
    Value(usize),
    Array(usize),
    Text(usize),
    Bytes(usize),
}

impl WebDataset {
    fn rotate(&self) -> Rotate {
        self.rotate.unwrap_or(Rotate { rows: Some(SAMPLES), bytes: Some(BYTES.into()) })
    }

    fn members(&self, input: &Schema) -> Result<Vec<Member>, SpecError> {
        let Some(columns) = &self.columns else { return default_members(input) };
        if columns.is_empty() {
            return Err(SpecError::new("`columns` is empty, so there is nothing to write").at(&["columns"]));
        }
        columns.iter().map(|(ending, names)| member(input, ending, names)).collect()
    }
}

fn member(input: &Schema, ending: &str, names: &ColumnNames) -> Result<Member, SpecError> {
    let is_ending = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    if ending.is_empty() || ending.starts_with('.') || !ending.chars().all(is_ending) {
        let error = SpecError::new(format!("`{ending}` is no ending of a file")).at(&["columns", ending]);
        return Err(error.label("write one such as `json`, without a dot before it"));
    }
    let find = |name: &str, at: &[&str]| input.index_of(name).ok_or_else(|| unknown_column(input, name).at(at));
    let kind = ending.rsplit('.').next().unwrap_or(ending);
    let ending_of = Ending::Of(ending.to_owned());
    let name = match names {
        ColumnNames::Many(names) if kind == "json" => {
            let mut columns = Vec::with_capacity(names.len());
            for (name_idx, name) in names.iter().enumerate() {
                let at = name_idx.to_string();
                let column = find(name, &["columns", ending, &at])?;
                if input.fields[column].ty == ColumnType::Bytes {
                    let message = format!("the column `{name}` is bytes, which JSON has no room for");
                    return Err(SpecError::new(message).at(&["columns", ending, &at]));
                }
                columns.push(column);
            }
            return Ok(Member { ending: ending_of, content: object(input, &columns) });
        }
        ColumnNames::Many(names) => match &names[..] {
            [name] => name,
            _ => {
                let message = format!("a member `{ending}` holds one column");
                return Err(SpecError::new(message).at(&["columns", ending]).label("put several into `json`"));
            }
        },
        ColumnNames::One(name) => name,
    };
    let column = find(name, &["columns", ending])?;
    let ty = &input.fields[column].ty;
    let (content, wanted) = match (kind, ty) {
        ("json", ColumnType::Bytes) => (None, "anything but bytes"),
        ("json", _) => (Some(Content::Value(column)), ""),
        ("npy", ColumnType::Tensor { .. }) => (Some(Content::Array(column)), ""),
        ("npy", _) => (None, "a tensor"),
        ("cls", ColumnType::Int) => (Some(Content::Value(column)), ""),
        ("cls", _) => (None, "an integer"),
        (_, ColumnType::Text) => (Some(Content::Text(column)), ""),
        ("txt", _) => (None, "text"),
        (_, ColumnType::Bytes) => (Some(Content::Bytes(column)), ""),
        _ => (None, "bytes or text"),
    };
    let content = content.ok_or_else(|| {
        let message = format!("the column `{name}` is {ty}, and `{ending}` is {wanted}");
        SpecError::new(message).at(&["columns", ending])
    })?;
    Ok(Member { ending: ending_of, content })
}

fn default_members(input: &Schema) -> Result<Vec<Member>, SpecError> {
    let of = |keep: fn(&Field) -> bool| {
        let fields = input.fields.iter().enumerate().filter(move |(_, field)| keep(field));
        fields.map(|(column, _)| column).collect::<Vec<_>>()
    };
    let is_tensor = |column: &usize| matches!(input.fields[*column].ty, ColumnType::Tensor { .. });
    let text = chosen(input, None).unwrap_or_default();
    let text: Vec<_> = text.into_iter().filter(|column| !is_tensor(column)).collect();
    let tensors = of(|field| {
        field.role != Role::Auxiliary && matches!(field.ty, ColumnType::Tensor { .. }) && !is_pixels(&field.ty)
    });
    let bytes = of(|field| field.ty == ColumnType::Bytes);
    let name = |column: usize| input.fields[column].name.replace('/', "_");
    let mut members = Vec::new();
    for &column in &bytes {
        let ending = match (input.index_of("uri"), &bytes[..]) {
            (Some(uri), [_]) => Ending::OfUri(uri),
            _ => Ending::Of(format!("{}.bin", name(column))),
        };
        members.push(Member { ending, content: Content::Bytes(column) });
    }
    if !text.is_empty() {
        members.push(Member { ending: Ending::Of("json".to_owned()), content: object(input, &text) });
    }
    for column in tensors {
        members.push(Member { ending: Ending::Of(format!("{}.npy", name(column))), content: Content::Array(column) });
    }
    if members.is_empty() {
        let message = format!("there is nothing to write: the input gives {}", input.names());
        return Err(SpecError::new(message).label("say which columns with `columns`"));
    }
    Ok(members)
}

fn object(input: &Schema, columns: &[usize]) -> Content {
    let keys = columns.iter().enumerate().map(|(place, &column)| {
        let mut key = vec![if place == 0 { b'{' } else { b',' }];
        write_text(&mut key, &input.fields[column].name);
        key.push(b':');
        (column, key)
    });
    Content::Object(keys.collect())
}

impl NodeKind for WebDataset {
    const NAME: &'static str = "sink.webdataset";
    const EXAMPLE: &'static str =
        "out: {kind: sink.webdataset, with: {path: out/shard.tar, columns: {json: [uri, labels], npy: features}}}";
    const INCIDENTAL: &'static [&'static str] = SinkStore::INCIDENTAL;
}

impl Node for WebDataset {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        if self.path == STDOUT {
            let error = SpecError::new("archives cannot go to standard output").at(&["path"]);
            return Err(error.label("write a file name"));
        }
        self.members(cx.input())?;
        id_column(cx.input())?;
        Rotate::check(self.rotate.as_ref(), &self.path)?;
        self.store.check(&self.path)?;
        Ok(NodeSpec::default().with_detail(&self.path))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let refused = |error: SpecError| Fault::permanent(error.to_string());
        let members = self.members(cx.input()).map_err(refused)?;
        let id = id_column(cx.input()).map_err(refused)?;
        let format = Samples { id, members, name: String::new(), content: Vec::new() };
        let destination = Destination::new(cx, &self.path, Numbering::Numbered);
        let compression = Compression::of(&self.path, self.compression);
        Ok(Stage::Sink(Box::new(Appending::open(format, destination, Some(self.rotate()), compression)?)))
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

    fn tidy(&self, base: &Path, outputs: &[Sealed]) -> Result<(), Fault> {
        remove_stale(base, outputs, Some(self.rotate()), &self.store)
    }
}

/// A row is a sample: some members of an archive.
struct Samples {
    id: usize,
    members: Vec<Member>,
    name: String,
    content: Vec<u8>,
}

impl RowFormat for Samples {
    fn row(&mut self, batch: &Batch, row_idx: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        let row = batch.row(row_idx);
        let key = sample_key(row.text(self.id));
        for Member { ending, content } in &self.members {
            self.name.clear();
            self.name.push_str(&key);
            self.name.push('.');
            match ending {
                Ending::Of(ending) => self.name.push_str(ending),
                Ending::OfUri(uri) => self.name.push_str(&uri_extension(row.text(*uri))),
            }
            self.content.clear();
            let text = &mut self.content;
            match content {
                Content::Object(columns) => {
                    for (column, key) in columns {
                        text.extend_from_slice(key);
                        write_value(text, row.column(*column), row_idx);
                    }
                    text.push(b'}');
                }
                Content::Value(column) => write_value(text, row.column(*column), row_idx),
                Content::Array(column) => {
                    let tensor = row.tensor(*column);
                    text.extend_from_slice(&array_header(tensor.dtype, tensor.shape));
                    append_elements(text, tensor);
                }
                Content::Text(column) => text.extend_from_slice(row.text(*column).as_bytes()),
                Content::Bytes(column) => {
                    append_member(out, &self.name, row.bytes(*column));
                    continue;
                }
            }
            append_member(out, &self.name, &self.content);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        append_end(out);
    }

    /// Each row has the same number of members.
    fn count(&self, rows: &mut dyn Read) -> u64 {
        let mut archive = tar::Archive::new(rows);
        let n_members = archive.entries().map_or(0, |entries| entries.map_while(Result::ok).count());
        n_members.div_ceil(self.members.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use engine::data::{DType, Dim, RowMut, RowPos};
    use engine::durable::publish;
    use engine::node::Sink;
    use engine::node::harness::{Harness, batch};

    use super::*;

    fn schema() -> Schema {
        let features = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(2)] };
        let fields = vec![
            Field::new("uri", ColumnType::Text, Role::Uri),
            Field::new("photo", ColumnType::Bytes, Role::Result),
            Field::new("label", ColumnType::Int, Role::Result),
            Field::new("features", features, Role::Result),
        ];
        Schema { fields, batch: None }
    }

    fn write(index: u64, out: &mut RowMut<'_>) {
        out.text(0, &format!("photos/{index:03}.JPG"));
        out.bytes(1, vec![index as u8; 600].into());
        out.int(2, index as i64 % 7);
        let mut buffer = out.alloc(DType::F32, &[2]);
        buffer.bytes_mut()[..8].copy_from_slice(bytemuck::cast_slice(&[index as f32, 0.5]));
        out.tensor(3, DType::F32, &[2], buffer);
    }

    fn sink(folder: &Path, more: &str) -> Box<dyn Sink> {
        let with = format!("{{path: out/s.tar{more}}}");
        Harness::new::<WebDataset>(&with, vec![schema()]).in_folder(folder).sink().unwrap()
    }

    fn members(archive: &Path) -> Vec<(String, Vec<u8>)> {
        let mut archive = tar::Archive::new(fs::File::open(archive).unwrap());
        let member = |entry: std::io::Result<tar::Entry<'_, _>>| {
            let mut entry = entry.unwrap();
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            let mut content = Vec::new();
            Read::read_to_end(&mut entry, &mut content).unwrap();
            (name, content)
        };
        archive.entries().unwrap().map(member).collect()
    }

    #[test]
    fn by_default_a_sample_has_its_bytes_its_results_and_its_tensors() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = sink(folder.path(), "");
        sink.write(&batch(&schema(), 5, 1, write)).unwrap();
        let sealed = sink.seal().unwrap();
        publish(folder.path(), &sealed).unwrap();
        let members = members(&folder.path().join("out/s-00000.tar"));
        let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["photos/005_JPG.jpg", "photos/005_JPG.json", "photos/005_JPG.features.npy"]);
        assert_eq!(members[0].1, [5; 600]);
        assert_eq!(members[1].1, br#"{"uri":"photos/005.JPG","label":5}"#);
        let array = &members[2].1;
        assert!(array.starts_with(b"\x93NUMPY") && String::from_utf8_lossy(array).contains("'shape': (2,)"));
        assert_eq!(array[array.len() - 8..], *bytemuck::cast_slice::<f32, u8>(&[5.0, 0.5]));
    }

    #[test]
    fn members_are_as_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink =
            sink(folder.path(), ", columns: {jpg: photo, cls: label, meta.json: [label], json: label, txt: uri}");
        sink.write(&batch(&schema(), 9, 1, write)).unwrap();
        publish(folder.path(), &sink.seal().unwrap()).unwrap();
        let members = members(&folder.path().join("out/s-00000.tar"));
        let texts = members[1..].iter().map(|(name, text)| (name.as_str(), std::str::from_utf8(text).unwrap()));
        let expected = [
            ("photos/009_JPG.cls", "2"),
            ("photos/009_JPG.meta.json", r#"{"label":2}"#),
            ("photos/009_JPG.json", "2"),
            ("photos/009_JPG.txt", "photos/009.JPG"),
        ];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn archives_are_the_same_bytes_after_a_run_was_gone_on_with() {
        let archives = |resumed: bool| {
            let folder = tempfile::tempdir().unwrap();
            let more = ", rotate: {rows: 8}";
            let mut first = sink(folder.path(), more);
            first.write(&batch(&schema(), 0, 11, write)).unwrap();
            let (pos, _) = first.cut(RowPos::new(0, 11)).unwrap();
            let mut sealed = first.closed();
            if resumed {
                first.write(&batch(&schema(), 11, 2, write)).unwrap();
                drop(first.cut(RowPos::END).unwrap());
                drop(first);
                first = sink(folder.path(), more);
                assert_eq!(first.resume(&pos).unwrap(), 2);
            }
            first.write(&batch(&schema(), 11, 13, write)).unwrap();
            drop(first.cut(RowPos::END).unwrap());
            sealed.extend(first.closed());
            sealed.extend(first.seal().unwrap());
            publish(folder.path(), &sealed).unwrap();
            let read = |sealed: &Sealed| (sealed.path.clone(), fs::read(folder.path().join(&sealed.path)).unwrap());
            sealed.iter().map(read).collect::<Vec<_>>()
        };
        let (at_once, resumed) = (archives(false), archives(true));
        assert_eq!(
            at_once.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["out/s-00000.tar", "out/s-00001.tar", "out/s-00002.tar"]
        );
        assert!(at_once == resumed);
    }

    #[test]
    fn members_that_cannot_be_are_mistakes_at_their_place() {
        let check = |columns: &str, at: &[&str], message: &str| {
            let with = format!("{{path: o.tar, columns: {columns}}}");
            let error = Harness::new::<WebDataset>(&with, vec![schema()]).spec().unwrap_err();
            let option: Vec<_> = error.option.iter().map(String::as_str).collect();
            assert_eq!((&option[..], error.message.as_str()), (at, message));
        };
        check("{npy: label}", &["columns", "npy"], "the column `label` is int, and `npy` is a tensor");
        check("{json: photo}", &["columns", "json"], "the column `photo` is bytes, and `json` is anything but bytes");
        check("{json: [uri, lable]}", &["columns", "json", "1"], "there is no column `lable`");
        check("{jpg: [photo, uri]}", &["columns", "jpg"], "a member `jpg` holds one column");
        check("{jpg: features}", &["columns", "jpg"], "the column `features` is f32 [2], and `jpg` is bytes or text");
        check("{a/b: photo}", &["columns", "a/b"], "`a/b` is no ending of a file");
    }
}
