//! `source.rejects`: the rows that a run has rejected, once more.

mod entries;
mod form;
mod lines;
mod listing;
mod place;
#[cfg(test)]
mod tests;
mod wanted;

use std::path::Path;
use std::sync::Arc;

use engine::config::{Size, nearest};
use engine::data::{ColumnType, Reject, Role, RowMut, code};
use engine::node::{
    BuildCx, Count, Counting, Entries, Entry, Fault, Fetch, Item, Node, NodeKind, NodeSpec, Reading, SourceStage,
    SpecCx, SpecError, Stage, Stamp, Unpack,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::{Ids, rows_source};
use super::files_fetch::ReadFile;
use super::listing::{Braces, Listed, Locators, Patterns, spec_error};
use super::parquet::{Files as ParquetFiles, Part};
use super::paths::OneOrMany;
use super::picking::{Container, Picks};
use super::references::References;
use super::table::{Format, Table, delimiter};
use super::webdataset::Tars;
use crate::store::{Location, StoreOptions, Stores};
use entries::{All, Files, Given, Opened, Picked};
use form::Form;
pub use lines::{Numbered, RejectLine, RejectLines};
use listing::{Filter, Rejected};
use place::Places;
use wanted::{Row, Wanted};

/// The rows that a run has rejected, once more: after files were repaired, a limit was raised, a server is back.
///
/// It stands in the place of the source that the rows came from, and gives them in the order of the reject file. A row of a
/// tar, of a Parquet file or of a table is looked for in that file, which is opened once for all its rows that follow one
/// another; what holds none of them is passed over. A row that several lines name is given once. One that is not there any
/// more is a reject (`not_found`), and so is a line that is no reject (`corrupt`).
///
/// A line that names a tar or a Parquet file as a whole (one that could not be opened, or had an end that could not be read)
/// stands for all its rows, those among them that came out before. So does one that names a table, where `column` is given.
///
/// What is no file again cannot be run again: rows of `source.synthetic`, and URLs that need the user info or the query
/// string that reject files leave out.
///
/// Give the pipeline another `name` than that of the run that wrote the rejects, and its sinks other paths.
///
/// # Input
/// None.
///
/// # Output
/// `uri` and `id` as in the reject file. `bytes`, the content. Columns that the first source carried along are not there.
///
/// # Example
/// ```yaml
/// again: {kind: source.rejects, with: {path: out/classify.rejects.jsonl, codes: [too_large, not_found]}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rejects {
    /// A reject file or a list of them: local paths relative to the pipeline file, or URLs. `{00..99}` is a list of files;
    /// with `*`, `?` or `[a-z]` it is a glob. They may be packed by gzip or zstd. Relative paths in them start from the
    /// pipeline file's folder, so this one should be where the first one was.
    path: OneOrMany,
    /// Only rows that were rejected with one of these codes, such as `[too_large, truncated]`. Default all.
    codes: Option<OneOrMany>,
    /// Only rows that one of these nodes of the first pipeline has rejected. Default all.
    nodes: Option<OneOrMany>,
    /// For tars: as in `source.webdataset`.
    image: Option<OneOrMany>,
    /// For Parquet files and tables: the column that becomes `bytes`, as in `source.parquet` (default image),
    /// `source.jsonl` and `source.csv` (no default: without it rows of tables are rejects).
    column: Option<String>,
    /// For Parquet files and tables: the folder or the URL that relative paths in `column` start from. Default: the pipeline
    /// file's folder.
    base: Option<String>,
    /// For tables as of `source.csv` without a header: the names of the columns.
    columns: Option<Vec<String>>,
    /// For tables as of `source.csv`: what stands between fields. Default a comma.
    delimiter: Option<String>,
    /// The most bytes of a file, or of an image in a Parquet file; a larger one is a reject `too_large`. Default 1GiB.
    max_file_bytes: Option<Size>,
    /// For tars: the most bytes of an image. Default 1GiB.
    max_member_bytes: Option<Size>,
    /// For tars: the most bytes of a header, as in `source.webdataset`. Default 1MiB.
    max_header_bytes: Option<Size>,
    /// For Parquet files: the most bytes of a page when it is unpacked, as in `source.parquet`. Default 1GiB.
    max_page_bytes: Option<Size>,
    /// For tables: the most bytes of a row. Default 16MiB.
    max_line_bytes: Option<Size>,
    /// How many tars, Parquet files and tables are read at once, each by a thread of its own. Default 4.
    #[schemars(range(min = 1, max = 256))]
    parallel: Option<usize>,
    /// How objects in stores and files on web servers are reached.
    #[serde(default)]
    store: StoreOptions,
}

const MAX_FILE_BYTES: u64 = 1 << 30;
const PARALLEL: usize = 4;
/// Lines that are looked at before the run, to see what ids are.
const MAX_LOOKED_AT: usize = 1000;

impl Rejects {
    fn patterns(&self, base: &Path) -> Result<Patterns, SpecError> {
        Patterns::parse("path", &self.path, base, Braces::List)
    }

    fn file_base(&self, base: &Path) -> Result<Location, SpecError> {
        let location = Location::parse(self.base.as_deref().unwrap_or("."), base);
        location.map_err(|error| spec_error(error).at(&["base"]))
    }

    fn filter(&self) -> Filter {
        let words = |words: &Option<OneOrMany>| words.as_ref().map(|words| words.texts().into());
        Filter { codes: words(&self.codes), nodes: words(&self.nodes) }
    }

    /// Whether ids are the same as uris, by a look into the first file. If it is not there yet, they are taken to be.
    fn ids(&self, patterns: &Patterns) -> Ids {
        let stores = Stores::new(self.store.clone());
        let lines = patterns.first().and_then(|item| {
            let location = patterns.locators(&stores).location(&item).ok()?;
            RejectLines::open(&stores, &location).ok()
        });
        let Some(mut lines) = lines else { return Ids::Uris };
        let filter = self.filter();
        for _ in 0..MAX_LOOKED_AT {
            let Ok(Some(Numbered { line, .. })) = lines.next_line() else { break };
            let is_own = |line: &RejectLine| line.id.as_ref().is_some_and(|id| *id != line.uri);
            if line.is_ok_and(|line| filter.takes(&line) && is_own(&line)) {
                return Ids::Own;
            }
        }
        Ids::Uris
    }

    fn listed(&self, cx: &BuildCx<'_>, patterns: &Patterns, stores: &Stores) -> Rejected {
        let files = Listed::new(patterns.clone(), stores.clone(), cx.cancel.clone(), cx.is_resumed);
        let places = Places::new(cx.base, stores, self.column.is_some());
        Rejected::new(files, patterns.locators(stores), self.filter(), places, cx.cancel.clone())
    }
}

impl NodeKind for Rejects {
    const NAME: &'static str = "source.rejects";
    const EXAMPLE: &'static str =
        "again: {kind: source.rejects, with: {path: out/classify.rejects.jsonl, codes: [too_large]}}";
    const INCIDENTAL: &'static [&'static str] = &["parallel", "store"];
}

impl Node for Rejects {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let patterns = self.patterns(cx.base)?;
        self.file_base(cx.base)?;
        delimiter(self.delimiter.as_deref())?;
        self.store.check().map_err(|error| spec_error(error).at(&["store", "endpoint"]))?;
        if self.parallel == Some(0) {
            return Err(SpecError::new("`parallel` is at least 1").at(&["parallel"]));
        }
        for (option, words) in [("image", &self.image), ("codes", &self.codes), ("nodes", &self.nodes)] {
            if words.as_ref().is_some_and(|words| words.texts().is_empty()) {
                return Err(SpecError::new(format!("the list `{option}` is empty")).at(&[option]));
            }
        }
        for (code_idx, word) in self.codes.iter().flat_map(OneOrMany::texts).enumerate() {
            if code::ALL.contains(&&**word) {
                continue;
            }
            let place = self.codes.as_ref().map_or_else(Vec::new, |codes| codes.place("codes", code_idx));
            let error = SpecError::new(format!("there is no code `{word}`"))
                .at(&place.iter().map(String::as_str).collect::<Vec<_>>())
                .note(format!("codes: {}", code::ALL.join(", ")));
            return Err(match nearest(word, code::ALL) {
                Some(near) => error.label(format!("did you mean `{near}`?")),
                None => error,
            });
        }
        rows_source(patterns.detail(), self.ids(&patterns)).with_new("bytes", ColumnType::Bytes, Role::Auxiliary)
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let bad = |error: SpecError| Fault::permanent(error.to_string());
        let patterns = self.patterns(cx.base).map_err(bad)?;
        if !cx.is_resumed {
            patterns.check(&cx.cancel).map_err(|fault| {
                let more = fault.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
                fault.help(format!("a run that rejects nothing leaves no such file{more}"))
            })?;
        }
        let stores = Stores::within(self.store.clone(), &cx.cancel);
        // What was rejected need not be in the pipeline file, so nothing in it stands for that.
        let locators =
            Locators { base: cx.base.to_owned(), secrets: [].into(), manifest: None, stores: stores.clone() };
        let max_bytes = self.max_file_bytes.map_or(MAX_FILE_BYTES, Size::bytes);
        let base = self.file_base(cx.base).map_err(bad)?;
        let references = || References { stores: stores.clone(), base: base.clone(), max_bytes };
        let delimiter = delimiter(self.delimiter.as_deref()).map_err(bad)?;
        let tables = self.column.as_deref().map(|column| {
            let table = |format| Table::of_files(locators.clone(), format, column, references(), self.max_line_bytes);
            Tables { jsonl: table(Format::Jsonl), csv: table(Format::Csv { delimiter, names: self.columns.clone() }) }
        });
        let again = Again {
            tars: Tars::of_images(locators.clone(), self.image.as_ref(), self.max_member_bytes, self.max_header_bytes),
            parquet: ParquetFiles::of_column(
                locators.clone(),
                self.column.as_deref(),
                references(),
                self.max_page_bytes,
            ),
            tables,
            files: ReadFile { locators: locators.clone(), max_bytes, label: None },
            locators,
            parallel: self.parallel.unwrap_or(PARALLEL),
        };
        // What costs requests is not read twice.
        let counted = (!patterns.has_buckets() && patterns.first().is_some_and(|item| !Location::is_url(&item.uri)))
            .then(|| self.listed(cx, &patterns, &stores));
        Ok(Stage::Source(SourceStage {
            list: Box::new(self.listed(cx, &patterns, &stores)),
            reading: Reading::Unpacked(Arc::new(again)),
            count: counted.map(|counted| Box::new(move |counting: &Counting| counted.count(counting)) as Count),
        }))
    }

    fn reads(&self, base: &Path, path: &Path) -> bool {
        self.patterns(base).is_ok_and(|patterns| patterns.reads(path))
    }
}

/// Opens what holds rows that are wanted again.
struct Again {
    locators: Locators,
    tars: Tars,
    parquet: ParquetFiles,
    /// None where it is not said which column names files.
    tables: Option<Tables>,
    files: ReadFile,
    parallel: usize,
}

struct Tables {
    jsonl: Table,
    csv: Table,
}

impl Again {
    /// Opens the file `item` for some of its rows, or for all from number `skip` on.
    fn container(&self, item: &Item, part: &Part<'_>, picks: Option<&Arc<Picks>>, skip: u32) -> Result<Opened, Reject> {
        let form = match Form::of_name(&item.uri) {
            Some(form) => form,
            None => Form::of_content(&self.locators.stores, self.locators.location(item)?)?,
        };
        let rows: Box<dyn Container> = match form {
            Form::Tar => self.tars.samples(item, skip, picks.cloned())?,
            Form::Parquet => self.parquet.rows(item, part, skip)?,
            Form::Jsonl | Form::Csv => self.table(form, &item.uri)?.rows(item, skip)?,
        };
        Ok(Opened { form, rows })
    }

    fn table(&self, form: Form, uri: &str) -> Result<&Table, Reject> {
        match (&self.tables, form) {
            (Some(tables), Form::Jsonl) => Ok(&tables.jsonl),
            (Some(tables), _) => Ok(&tables.csv),
            (None, _) => {
                let message = format!("`{uri}` is a table: say with `column` which of its columns names the files");
                Err(Reject::new(code::UNSUPPORTED, message))
            }
        }
    }

    /// What files are now, all in one. Files on servers are not asked for that.
    fn stamp_of(&self, rows: &[Row]) -> Stamp {
        let mut hasher = crc32fast::Hasher::new();
        for row in rows.iter().filter(|row| row.wrong.is_none() && !Location::is_url(&row.name)) {
            let stamp = place::item(&row.name, &self.locators.base).map_or(Stamp::NONE, |item| self.files.stamp(&item));
            hasher.update(&stamp.0.to_le_bytes());
        }
        Stamp(hasher.finalize())
    }
}

impl Unpack for Again {
    fn open(&self, _index: u64, item: &Item, skip: u32) -> Result<Box<dyn Entries>, Reject> {
        let (file, wanted) = Wanted::of(item)?;
        let open = |part: &Part<'_>, picks: Option<&Arc<Picks>>, skip: u32| {
            let opened =
                place::item(file, &self.locators.base).and_then(|item| self.container(&item, part, picks, skip));
            opened.map_err(|reject| place::with_hint(file, reject))
        };
        Ok(match wanted {
            Wanted::Files(rows) => {
                let stamp = self.stamp_of(&rows);
                Box::new(Files::new(rows, skip, &self.locators.base, stamp))
            }
            Wanted::All => Box::new(All(open(&Part::All, None, skip)?)),
            Wanted::Group(number) => Box::new(All(open(&Part::Group(number), None, skip)?)),
            Wanted::Rows(rows) => {
                let picks = Arc::new(Picks::new(rows.iter().map(|row| &*row.name)));
                // Where it cannot be opened, each row is a reject of its own: the next time they are looked for again, and
                // not all rows that there are.
                let opened = open(&Part::Rows(&picks), Some(&picks), 0);
                Box::new(Picked::new(file, opened, rows, skip))
            }
        })
    }

    fn read(&self, item: &Item, entry: &Entry, out: &mut RowMut<'_>) -> Result<(), Reject> {
        let content = entry.content.as_ref().map_err(Reject::clone)?;
        match content.downcast_ref::<Given>().expect("it is what the entries here give") {
            Given::File(file) => {
                let fetched = self.files.fetch(0, file, out);
                fetched.map(drop).map_err(|reject| place::with_hint(&entry.uri, reject))
            }
            Given::Row(Form::Tar, row) => self.tars.read(item, row, out),
            Given::Row(Form::Parquet, row) => self.parquet.read(item, row, out),
            Given::Row(form, row) => self.table(*form, &item.uri).and_then(|table| table.read(item, row, out)),
        }
    }

    fn stamp(&self, item: &Item) -> Stamp {
        match Wanted::of(item) {
            Ok((_, Wanted::Files(rows))) => self.stamp_of(&rows),
            Ok((file, _)) => {
                place::item(file, &self.locators.base).map_or(Stamp::NONE, |named| self.locators.stamp(&named))
            }
            Err(_) => Stamp::NONE,
        }
    }

    fn n_open(&self) -> usize {
        self.parallel
    }
}
