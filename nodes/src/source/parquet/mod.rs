//! `source.parquet`: images out of Parquet files.

mod columns;
mod file;
mod groups;
mod page_header;
mod pages;
mod part;
mod rows;
#[cfg(test)]
mod tests;
mod values;

use std::path::Path;
use std::sync::Arc;

use engine::config::Size;
use engine::data::{ColumnType, DType, Reject, Role, RowMut, code};
use engine::node::{
    BuildCx, Entries, Entry, Fault, Item, Node, NodeKind, NodeSpec, Reading, SourceStage, SpecCx, SpecError, Stage,
    Stamp, Unpack,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::{BYTES, Ids, rows_source};
use super::listing::{Braces, Listed, Locators, Patterns, spec_error};
use super::paths::OneOrMany;
use super::picking::Container;
use super::references::{References, without_secrets};
use super::table::{Carry, CarryWord};
use crate::store::{Location, StoreOptions, Stores};
use columns::{CarriedColumn, ImageForm, column_type, names};
use file::ParquetFile;
use groups::{Groups, file_of};
pub(super) use part::Part;
use rows::{Row, Rows, Wanted};
use values::{Cell, Image};

/// Images out of Parquet files, such as those that Hugging Face `datasets` writes: in the file as bytes, or beside it by their
/// paths.
///
/// Row groups are read at the same time, each page by page and not as a whole. A file that is none, ends early or contradicts
/// itself is one reject (`unsupported`, `truncated`, `corrupt`); a row without an image is one (`not_found`).
///
/// # Input
/// None.
///
/// # Output
/// `uri`, the file's path or URL, `#` and the number of the row in it, from 0. `id`, the image's path, where the column has
/// one, or else the uri. `bytes`, the image. The columns of `carry`: text, whole numbers (and `true` as 1), numbers, and
/// lists of numbers as tensors of f32. A text that is null is empty; another null is a reject.
///
/// # Example
/// ```yaml
/// photos: {kind: source.parquet, with: {path: "data/train-*.parquet", column: image, carry: [label]}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parquet {
    /// A file or a list of files: local paths relative to the pipeline file, or URLs. `{00..99}` and `{train,val}` are lists
    /// of files; with `*`, `?` or `[a-z]` it is a glob. The first file is looked into before the run.
    path: OneOrMany,
    /// The column that becomes `bytes`: a struct of `bytes` and `path`, bytes, or text that is the path or the URL of a
    /// file. Default image.
    column: Option<String>,
    /// The folder or the URL that relative paths start from, where the file has paths. Default: the pipeline file's folder.
    base: Option<String>,
    /// The columns that are carried along: `all`, `none`, or a list of names. Of `all` those called `id`, `uri` and `bytes`
    /// are left out. Default all.
    #[serde(default)]
    carry: Carry,
    /// The most bytes of an image; a larger one is a reject `too_large`. Default 1GiB.
    max_file_bytes: Option<Size>,
    /// The most bytes of a page when it is unpacked; a larger one is a reject `too_large`, which ends its row group. Writers
    /// put up to some thousand rows into a page. Default 1GiB.
    max_page_bytes: Option<Size>,
    /// How many row groups are read at once, each by a thread of its own. Default 2.
    #[schemars(range(min = 1, max = 256))]
    parallel: Option<usize>,
    /// How objects in stores and files on web servers are reached.
    #[serde(default)]
    store: StoreOptions,
}

const MAX_FILE_BYTES: u64 = 1 << 30;
const MAX_PAGE_BYTES: u64 = 1 << 30;
const PARALLEL: usize = 2;
const IMAGE: &str = "image";
/// The columns that a source has by itself.
const OWN: [&str; 3] = ["id", "uri", "bytes"];

impl Parquet {
    fn patterns(&self, base: &Path) -> Result<Patterns, SpecError> {
        Patterns::parse("path", &self.path, base, Braces::List)
    }

    fn file_base(&self, base: &Path) -> Result<Location, SpecError> {
        let location = Location::parse(self.base.as_deref().unwrap_or("."), base);
        location.map_err(|error| spec_error(error).at(&["base"]))
    }

    fn image(&self) -> &str {
        self.column.as_deref().unwrap_or(IMAGE)
    }

    /// The columns that are carried along, by a look into the first file.
    fn carried(&self, patterns: &Patterns) -> Result<Vec<CarriedColumn>, SpecError> {
        let unseen =
            |why: String| SpecError::new(format!("which columns there are cannot be seen: {why}")).at(&["path"]);
        let item = patterns.first().ok_or_else(|| {
            unseen(format!("`{}` matches nothing, or a bucket would have to be listed", patterns.detail()))
                .note("name a file first, as in `path: [s3://bucket/train-0.parquet, s3://bucket/train-*.parquet]`")
        })?;
        let stores = Stores::new(self.store.clone());
        let location = patterns.locators(&stores).location(&item);
        let metadata = location.and_then(|location| ParquetFile::open(&stores, location)?.metadata());
        let metadata = metadata.map_err(|reject| unseen(reject.message))?;
        let schema = metadata.schema();
        let columns = names(schema);
        let unknown = |name: &str, at: &[&str]| {
            let nearest = schema.fields().iter().find(|field| field.name().eq_ignore_ascii_case(name));
            let error = SpecError::new(format!("`{}` has no column `{name}`", item.uri)).at(at);
            let error = error.note(format!("columns: {columns}"));
            match nearest {
                Some(field) => error.label(format!("did you mean `{}`?", field.name())),
                None => error,
            }
        };
        let image = schema.field_with_name(self.image()).map_err(|_| {
            let error = unknown(self.image(), &["column"]);
            if self.column.is_none() { error.label("say with `column` which one has the images") } else { error }
        })?;
        if ImageForm::of(image.data_type()).is_none() {
            let message = format!("the column `{}` is {}, which holds no images", self.image(), image.data_type());
            return Err(SpecError::new(message)
                .at(&["column"])
                .note("a struct of `bytes` and `path`, bytes, or text with paths or URLs is needed")
                .note(format!("columns: {columns}")));
        }
        let (chosen, is_named): (Vec<_>, _) = match &self.carry {
            Carry::Word(CarryWord::None) => (Vec::new(), true),
            Carry::Word(CarryWord::All) => {
                let names = schema.fields().iter().map(|field| field.name().clone());
                let is_other = |name: &String| {
                    let is_struct = ImageForm::of(image.data_type()) != Some(ImageForm::Reference);
                    !OWN.contains(&name.as_str()) && (!is_struct || name != self.image())
                };
                (names.filter(is_other).collect(), false)
            }
            Carry::Columns(names) => (names.clone(), true),
        };
        let column = |(number, name): (usize, String)| {
            let place = [String::from("carry"), number.to_string()];
            let at: Vec<_> = place.iter().take(if is_named { 2 } else { 1 }).map(String::as_str).collect();
            let field = schema.field_with_name(&name).map_err(|_| unknown(&name, &at))?;
            let Some(ty) = column_type(field.data_type()) else {
                let message = format!("the column `{name}` is {}, which no column of rows can be", field.data_type());
                return Err(SpecError::new(message).at(&at).label("name the other columns with `carry`"));
            };
            Ok(CarriedColumn { name, ty })
        };
        chosen.into_iter().enumerate().map(column).collect()
    }
}

impl NodeKind for Parquet {
    const NAME: &'static str = "source.parquet";
    const EXAMPLE: &'static str = r#"photos: {kind: source.parquet, with: {path: "data/train-*.parquet"}}"#;
    const INCIDENTAL: &'static [&'static str] = &["parallel", "store"];
}

impl Node for Parquet {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let patterns = self.patterns(cx.base)?;
        self.file_base(cx.base)?;
        self.store.check().map_err(|error| spec_error(error).at(&["store", "endpoint"]))?;
        if self.parallel == Some(0) {
            return Err(SpecError::new("`parallel` is at least 1").at(&["parallel"]));
        }
        let mut spec =
            rows_source(patterns.detail(), Ids::Own).with_new("bytes", ColumnType::Bytes, Role::Auxiliary)?;
        for carried in self.carried(&patterns)? {
            spec = spec
                .with_new(&carried.name, carried.ty, Role::Result)
                .map_err(|error| SpecError { notes: Vec::new(), ..error }.at(&["carry"]))?;
        }
        Ok(spec)
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let bad = |error: SpecError| Fault::permanent(error.to_string());
        let patterns = self.patterns(cx.base).map_err(bad)?;
        if !cx.is_resumed {
            patterns.check(&cx.cancel)?;
        }
        let stores = Stores::within(self.store.clone(), &cx.cancel);
        let locators = patterns.locators(&stores);
        let carried = cx.spec.outputs[BYTES + 1..]
            .iter()
            .map(|output| CarriedColumn { name: output.field.name.to_string(), ty: output.field.ty.clone() });
        let max_bytes = self.max_file_bytes.map_or(MAX_FILE_BYTES, Size::bytes);
        let base = self.file_base(cx.base).map_err(bad)?;
        let max_page_bytes = self.max_page_bytes.map_or(MAX_PAGE_BYTES, Size::bytes);
        let files = Files {
            locators: locators.clone(),
            wanted: Arc::new(Wanted { image: self.image().to_owned(), carried: carried.collect(), max_page_bytes }),
            references: References { stores: stores.clone(), base, max_bytes },
            parallel: self.parallel.unwrap_or(PARALLEL),
        };
        let listed = Listed::new(patterns, stores, cx.cancel.clone(), cx.is_resumed);
        Ok(Stage::Source(SourceStage {
            list: Box::new(Groups::new(listed, locators, cx.cancel.clone())),
            reading: Reading::Unpacked(Arc::new(files)),
            count: None,
        }))
    }

    fn reads(&self, base: &Path, path: &Path) -> bool {
        self.patterns(base).is_ok_and(|patterns| patterns.reads(path))
    }
}

/// Opens row groups.
pub(super) struct Files {
    locators: Locators,
    wanted: Arc<Wanted>,
    references: References,
    parallel: usize,
}

impl Files {
    /// Opens files for the images in their column `column` alone, which is `image` if none is named.
    pub(super) fn of_column(
        locators: Locators,
        column: Option<&str>,
        references: References,
        max_page_bytes: Option<Size>,
    ) -> Self {
        let max_page_bytes = max_page_bytes.map_or(MAX_PAGE_BYTES, Size::bytes);
        let wanted = Wanted { image: column.unwrap_or(IMAGE).to_owned(), carried: Vec::new(), max_page_bytes };
        Files { locators, wanted: Arc::new(wanted), references, parallel: PARALLEL }
    }

    /// Rows of a whole file, and not of one of its row groups. What holds none of those is not read.
    pub(super) fn rows(&self, item: &Item, part: &Part<'_>, skip: u32) -> Result<Box<dyn Container>, Reject> {
        let file = ParquetFile::open(&self.locators.stores, self.locators.location(item)?)?;
        let metadata = file.metadata()?;
        let wanted = self.wanted.clone();
        Ok(Box::new(Rows::of_part(file, metadata, &item.uri, wanted, part, skip)?))
    }
}

impl Unpack for Files {
    fn open(&self, _index: u64, item: &Item, skip: u32) -> Result<Box<dyn Entries>, Reject> {
        let (file_item, group) = file_of(item);
        let file = ParquetFile::open(&self.locators.stores, self.locators.location(&file_item)?)?;
        let metadata = file.metadata()?;
        let Some(group) = group else {
            let message = format!("`{}` could not be read when it was listed, and has changed since", item.uri);
            return Err(Reject::new(code::CORRUPT, message));
        };
        let rows = Rows::open(file, metadata, &file_item.uri, self.wanted.clone(), group, skip)?;
        Ok(Box::new(rows))
    }

    fn read(&self, _item: &Item, entry: &Entry, out: &mut RowMut<'_>) -> Result<(), Reject> {
        let content = entry.content.as_ref().map_err(Reject::clone)?;
        let row = content.downcast_ref::<Row>().expect("it is what `Rows` gives");
        let bytes = match &row.image {
            Image::Bytes(bytes) if bytes.len() as u64 > self.references.max_bytes => {
                let limit = self.references.max_bytes;
                let message = format!("`{}` has {} bytes, more than `max_file_bytes` {limit}", entry.uri, bytes.len());
                return Err(Reject::new(code::TOO_LARGE, message));
            }
            Image::Bytes(bytes) => bytes.clone(),
            Image::Reference(text) => self.references.read(&entry.uri, text)?,
            Image::Missing => {
                let message = format!("`{}` has no image: its `{}` is null", entry.uri, self.wanted.image);
                return Err(Reject::new(code::NOT_FOUND, message));
            }
        };
        out.bytes(BYTES, bytes);
        for (number, (carried, cell)) in self.wanted.carried.iter().zip(&row.cells).enumerate() {
            let output = BYTES + 1 + number;
            match (&carried.ty, cell) {
                (ColumnType::Text, Cell::Text(text)) if carried.name == self.wanted.image => {
                    out.text(output, &without_secrets(text));
                }
                (ColumnType::Text, Cell::Text(text)) => out.text(output, text),
                (ColumnType::Text, Cell::Null) => out.text(output, ""),
                (ColumnType::Int, Cell::Int(value)) => out.int(output, *value),
                (ColumnType::Float, Cell::Float(value)) => out.float(output, *value),
                (ColumnType::Tensor { .. }, Cell::Floats(values)) => {
                    let mut buffer = out.alloc(DType::F32, &[values.len()]);
                    buffer.bytes_mut()[..values.len() * 4].copy_from_slice(bytemuck::cast_slice(values));
                    out.tensor(output, DType::F32, &[values.len()], buffer);
                }
                _ => {
                    let message = format!("`{}`: its `{}` is null or too large", entry.uri, carried.name);
                    return Err(Reject::new(code::CORRUPT, message));
                }
            }
        }
        Ok(())
    }

    fn stamp(&self, item: &Item) -> Stamp {
        self.locators.stamp(&file_of(item).0)
    }

    fn stamps(&self, items: &[Item]) -> Vec<Option<Stamp>> {
        let files: Vec<_> = items.iter().map(|item| file_of(item).0).collect();
        self.locators.stamps(&files)
    }

    fn n_open(&self) -> usize {
        self.parallel
    }
}
