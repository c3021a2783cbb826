//! `source.jsonl`: rows of tables, a JSON object a line.

use std::path::Path;

use engine::config::Size;
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, SpecCx, SpecError, Stage};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::paths::OneOrMany;
use super::table::{Carry, CellType, Format, Options};
use crate::store::StoreOptions;

/// Rows of tables with a JSON object a line, and the files that they name.
///
/// A line that is no JSON object is a reject `corrupt` with its number, and the others go on. Blank lines are passed over.
/// Of a file that ends within its packed bytes all lines before that come out, and one reject.
///
/// # Input
/// None.
///
/// # Output
/// `uri`, the table's path or URL, `#` and the number of the line, from 1. `id`, the value of `id_column`, or else the
/// uri. `bytes`, with `column`: the file that it names. The columns of `carry`: of values that are no text their JSON, of
/// `null` and of what is missing an empty text. In the column that names the file a URL is without user info and query
/// string.
///
/// # Example
/// ```yaml
/// photos: {kind: source.jsonl, with: {path: train.jsonl, column: image, base: photos, types: {label: int}}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jsonl {
    /// A file or a list of files: local paths relative to the pipeline file, or URLs. `{00..99}` and `{train,val}` are lists
    /// of files; with `*`, `?` or `[a-z]` it is a glob. They may be packed by gzip or zstd.
    path: OneOrMany,
    /// The column that names a file, by its path or URL: its content becomes `bytes`. Without it rows have no `bytes`.
    column: Option<String>,
    /// The folder or the URL that relative paths in `column` start from. Default: the pipeline file's folder.
    base: Option<String>,
    /// The columns that are carried along: `all`, `none`, or a list of names. Of `all` those called `id`, `uri` and `bytes`
    /// are left out. These are the keys of the first line
    /// of the first file, which is looked into before the run. Default all.
    #[serde(default)]
    carry: Carry,
    /// The types of columns, which otherwise are text: `{label: int, score: float}`. What is no such number is a reject
    /// `corrupt`.
    #[serde(default)]
    #[schemars(with = "std::collections::BTreeMap<String, CellType>")]
    types: IndexMap<String, CellType>,
    /// The column that is the rows' `id`. Default: the id is the uri.
    id_column: Option<String>,
    /// The most bytes of a file that a row names; a larger one is a reject `too_large`. Default 1GiB.
    max_file_bytes: Option<Size>,
    /// The most bytes of a line; a larger one is a reject `too_large`. Default 16MiB.
    max_line_bytes: Option<Size>,
    /// How many files of `path` are read at once, each by a thread of its own. Default 2.
    #[schemars(range(min = 1, max = 256))]
    parallel: Option<usize>,
    /// How objects in stores and files on web servers are reached.
    #[serde(default)]
    store: StoreOptions,
}

impl Jsonl {
    fn options(&self) -> Options<'_> {
        Options {
            format: Format::Jsonl,
            path: &self.path,
            column: self.column.as_deref(),
            base: self.base.as_deref(),
            carry: &self.carry,
            types: &self.types,
            id_column: self.id_column.as_deref(),
            max_file_bytes: self.max_file_bytes,
            max_line_bytes: self.max_line_bytes,
            parallel: self.parallel,
            store: &self.store,
        }
    }
}

impl NodeKind for Jsonl {
    const NAME: &'static str = "source.jsonl";
    const EXAMPLE: &'static str =
        "photos: {kind: source.jsonl, with: {path: train.jsonl, column: image, base: photos}}";
    const INCIDENTAL: &'static [&'static str] = &["parallel", "store"];
}

impl Node for Jsonl {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        self.options().spec(cx)
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        self.options().build(cx)
    }

    fn reads(&self, base: &Path, path: &Path) -> bool {
        self.options().patterns(base).is_ok_and(|patterns| patterns.reads(path))
    }
}
