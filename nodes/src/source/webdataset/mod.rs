//! `source.webdataset`: samples out of tars.

mod header;
mod key;
mod pax;
mod sample;
mod samples;
mod tar;
#[cfg(test)]
mod tests;
mod wanted;

use std::path::Path;
use std::sync::Arc;

use engine::config::Size;
use engine::data::{ColumnType, Reject, Role, RowMut, code};
use engine::node::{
    BuildCx, Entries, Entry, Fault, Item, Node, NodeKind, NodeSpec, Reading, SourceStage, SpecCx, SpecError, Stage,
    Stamp, Unpack,
};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::{BYTES, Ids, rows_source};
use super::listing::{Braces, Listed, Locators, Patterns};
use super::paths::OneOrMany;
use super::picking::{Container, Picks};
use super::stream::Stream;
use crate::store::{StoreOptions, Stores};
use sample::Content;
use samples::Samples;
use tar::Tar;
use wanted::Wanted;

/// Samples out of tars, as the Python library `webdataset` writes and reads them: members that follow one another and
/// have the same name up to the first dot of its last part are one sample. Tars may be packed by gzip or zstd, which is
/// told by their first bytes. They are streamed, and nothing is unpacked to disk.
///
/// Folders, links and names such as `__index__` are passed over, and so are names without an extension. Extensions are
/// compared in lower case.
///
/// What cannot be read is a reject: a shard that a list names and that is not there (`not_found`), a file that is no tar
/// (`unsupported`), a sample without an image (`not_found`), one with two members of the same extension (`corrupt`), a
/// member larger than a limit (`too_large`). Of a tar that ends early or is damaged in its middle all samples before that
/// come out, and one reject (`truncated`, `corrupt`) says after which member.
///
/// # Input
/// None.
///
/// # Output
/// `id`, the sample's key. `uri`, the tar's path or URL, `#` and the key. `bytes`, the image. A column for each of
/// `carry`.
///
/// # Example
/// ```yaml
/// photos:
///   kind: source.webdataset
///   with: {path: "train/shard-{000..099}.tar", carry: {caption: txt, label: cls}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Webdataset {
    /// A tar or a list of tars: local paths relative to the pipeline file, or URLs (`s3://`, `gs://`, `az://`, `http://`,
    /// `https://`). `{000..099}` and `{train,val}` are lists of files, each of which should be there. With `*`, `?` or
    /// `[a-z]` it is a glob as in `source.files`; one that matches nothing is an error.
    path: OneOrMany,
    /// The extensions of images: of each sample the first that it has becomes `bytes`. Default `[jpg, jpeg, png, webp,
    /// gif, bmp, tif, tiff]`.
    image: Option<OneOrMany>,
    /// Other members that are carried along, each as a column: `{caption: txt, label: cls, meta: json}` is the column
    /// `caption` from the member with the extension `txt` and so on. `cls` is a whole number, everything else text; a text
    /// that is missing is empty, a number that is missing is a reject. At most 16 MiB each.
    #[serde(default)]
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    carry: IndexMap<String, String>,
    /// The most bytes of an image; a larger one is a reject `too_large`. Default 1GiB.
    max_member_bytes: Option<Size>,
    /// The most bytes of a header of a tar, beside the 512 that each has: of a long name, of PAX records. Default 1MiB.
    max_header_bytes: Option<Size>,
    /// How many tars are read at once, each by a thread of its own. Default 4.
    #[schemars(range(min = 1, max = 256))]
    parallel: Option<usize>,
    /// How objects in stores and files on web servers are reached.
    #[serde(default)]
    store: StoreOptions,
}

const PARALLEL: usize = 4;

impl Webdataset {
    fn patterns(&self, base: &Path) -> Result<Patterns, SpecError> {
        Patterns::parse("path", &self.path, base, Braces::List)
    }

    fn wanted(&self) -> Wanted {
        Wanted::new(self.image.as_ref(), &self.carry, self.max_member_bytes, self.max_header_bytes)
    }
}

impl NodeKind for Webdataset {
    const NAME: &'static str = "source.webdataset";
    const EXAMPLE: &'static str = r#"photos: {kind: source.webdataset, with: {path: "train/shard-{000..099}.tar"}}"#;
    const INCIDENTAL: &'static [&'static str] = &["parallel", "store"];
}

impl Node for Webdataset {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let patterns = self.patterns(cx.base)?;
        self.store.check().map_err(|error| super::listing::spec_error(error).at(&["store", "endpoint"]))?;
        if self.parallel == Some(0) {
            return Err(SpecError::new("`parallel` is at least 1").at(&["parallel"]));
        }
        let wanted = self.wanted();
        if wanted.image.is_empty() {
            return Err(SpecError::new("the list of extensions is empty").at(&["image"]));
        }
        let mut spec =
            rows_source(patterns.detail(), Ids::Own).with_new("bytes", ColumnType::Bytes, Role::Auxiliary)?;
        for carried in &wanted.carried {
            spec = spec
                .with_new(&carried.column, carried.ty(), Role::Result)
                .map_err(|error| SpecError { notes: Vec::new(), ..error }.at(&["carry", &carried.column]))?;
        }
        Ok(spec)
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let patterns = self.patterns(cx.base).map_err(|error| Fault::permanent(error.to_string()))?;
        if !cx.is_resumed {
            patterns.check(&cx.cancel)?;
        }
        let stores = Stores::within(self.store.clone(), &cx.cancel);
        let tars = Tars {
            locators: patterns.locators(&stores),
            wanted: Arc::new(self.wanted()),
            parallel: self.parallel.unwrap_or(PARALLEL),
        };
        Ok(Stage::Source(SourceStage {
            list: Box::new(Listed::new(patterns, stores, cx.cancel.clone(), cx.is_resumed)),
            reading: Reading::Unpacked(Arc::new(tars)),
            count: None,
        }))
    }

    fn reads(&self, base: &Path, path: &Path) -> bool {
        self.patterns(base).is_ok_and(|patterns| patterns.reads(path))
    }
}

/// Opens tars.
pub(super) struct Tars {
    locators: Locators,
    wanted: Arc<Wanted>,
    parallel: usize,
}

impl Tars {
    /// Opens tars for their images alone.
    pub(super) fn of_images(
        locators: Locators,
        image: Option<&OneOrMany>,
        max_member_bytes: Option<Size>,
        max_header_bytes: Option<Size>,
    ) -> Self {
        let wanted = Wanted::new(image, [], max_member_bytes, max_header_bytes);
        Tars { locators, wanted: Arc::new(wanted), parallel: PARALLEL }
    }

    /// The samples of a tar from one of them on. Of samples that are not among `picks` only headers are read, and they are
    /// not given.
    pub(super) fn samples(
        &self,
        item: &Item,
        skip: u32,
        picks: Option<Arc<Picks>>,
    ) -> Result<Box<dyn Container>, Reject> {
        let stream = Stream::open(&self.locators.stores, self.locators.location(item)?)?;
        let tar = Tar::new(stream, &item.uri, self.wanted.max_header_bytes);
        Ok(Box::new(Samples::new(tar, &item.uri, self.wanted.clone(), skip, picks)))
    }
}

impl Unpack for Tars {
    fn open(&self, _index: u64, item: &Item, skip: u32) -> Result<Box<dyn Entries>, Reject> {
        let samples = self.samples(item, skip, None)?;
        Ok(samples)
    }

    fn read(&self, _item: &Item, entry: &Entry, out: &mut RowMut<'_>) -> Result<(), Reject> {
        let content = entry.content.as_ref().map_err(Reject::clone)?;
        let content = content.downcast_ref::<Content>().expect("it is what `Samples` gives");
        out.bytes(BYTES, content.image.clone());
        for (number, (carried, body)) in self.wanted.carried.iter().zip(&content.carried).enumerate() {
            let output = BYTES + 1 + number;
            let bad = |what: &str| {
                let message = format!("`{}`: its member `.{}` {what}", entry.uri, carried.extension);
                Reject::new(code::CORRUPT, message)
            };
            let text = body.as_deref().map(std::str::from_utf8).transpose();
            let text = text.map_err(|_| bad("is no UTF-8 text"))?;
            match (carried.ty(), text) {
                (ColumnType::Int, Some(text)) => {
                    out.int(output, text.trim().parse().map_err(|_| bad("is no whole number"))?);
                }
                (ColumnType::Int, None) => {
                    let message = format!("`{}` has no member `.{}`", entry.uri, carried.extension);
                    return Err(Reject::new(code::NOT_FOUND, message));
                }
                (_, text) => out.text(output, text.unwrap_or_default()),
            }
        }
        Ok(())
    }

    fn stamp(&self, item: &Item) -> Stamp {
        self.locators.stamp(item)
    }

    fn stamps(&self, items: &[Item]) -> Vec<Option<Stamp>> {
        self.locators.stamps(items)
    }

    fn n_open(&self) -> usize {
        self.parallel
    }
}
