//! `source.csv`: rows of tables, fields between commas.

use std::path::Path;

use engine::config::Size;
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, SpecCx, SpecError, Stage};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::paths::OneOrMany;
use super::table::{Carry, CellType, Format, Options, delimiter};
use crate::store::StoreOptions;

/// Rows of tables with fields between commas, and the files that they name.
///
/// Fields may stand in double quotes, with quotes in them doubled, and go on over several lines there. The first line of each
/// file has the names of the columns, in any order, unless `columns` gives them. A row with another number of fields is a
/// reject `corrupt` with its line's number, and the others go on. Blank lines are passed over.
///
/// # Input
/// None.
///
/// # Output
/// `uri`, the table's path or URL, `#` and the number of the line that the row begins in, from 1. `id`, the value of
/// `id_column`, or else the uri. `bytes`, with `column`: the file that it names. The columns of `carry`. In the column that
/// names the file a URL is without user info and query string.
///
/// # Example
/// ```yaml
/// photos: {kind: source.csv, with: {path: train.csv, column: file, base: photos, types: {label: int}}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Csv {
    /// A file or a list of files: local paths relative to the pipeline file, or URLs. `{00..99}` and `{train,val}` are lists
    /// of files; with `*`, `?` or `[a-z]` it is a glob. They may be packed by gzip or zstd.
    path: OneOrMany,
    /// The column that names a file, by its path or URL: its content becomes `bytes`. Without it rows have no `bytes`.
    column: Option<String>,
    /// The folder or the URL that relative paths in `column` start from. Default: the pipeline file's folder.
    base: Option<String>,
    /// The columns that are carried along: `all`, `none`, or a list of names. Of `all` those called `id`, `uri` and `bytes`
    /// are left out. These are the columns of the first file,
    /// which is looked into before the run. Default all.
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
    /// The most bytes of a row; a larger one is a reject `too_large`. Default 16MiB.
    max_line_bytes: Option<Size>,
    /// How many files of `path` are read at once, each by a thread of its own. Default 2.
    #[schemars(range(min = 1, max = 256))]
    parallel: Option<usize>,
    /// How objects in stores and files on web servers are reached.
    #[serde(default)]
    store: StoreOptions,
    /// The names of the columns, for files without a header.
    columns: Option<Vec<String>>,
    /// What stands between fields: one character, such as `;` or a tab. Default a comma.
    delimiter: Option<String>,
}

impl Csv {
    fn options(&self) -> Options<'_> {
        Options {
            format: Format::Csv {
                // `spec` says what is wrong with it.
                delimiter: delimiter(self.delimiter.as_deref()).unwrap_or(b','),
                names: self.columns.clone(),
            },
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

impl NodeKind for Csv {
    const NAME: &'static str = "source.csv";
    const EXAMPLE: &'static str = "photos: {kind: source.csv, with: {path: train.csv, column: file, base: photos}}";
    const INCIDENTAL: &'static [&'static str] = &["parallel", "store"];
}

impl Node for Csv {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        delimiter(self.delimiter.as_deref())?;
        self.options().spec(cx)
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        self.options().build(cx)
    }

    fn reads(&self, base: &Path, path: &Path) -> bool {
        self.options().patterns(base).is_ok_and(|patterns| patterns.reads(path))
    }
}
