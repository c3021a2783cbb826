//! Sources whose items are tables of text: what `source.csv` and `source.jsonl` have in common.

mod csv_records;
mod records;
mod rows;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use engine::config::Size;
use engine::data::{ColumnType, Role};
use engine::node::{BuildCx, Fault, NodeSpec, Reading, SourceStage, SpecCx, SpecError, Stage};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::{BYTES, Ids, REMOTE_READERS, rows_source};
use super::listing::{Braces, Listed, Patterns, spec_error};
use super::paths::OneOrMany;
use super::references::References;
use super::stream::Stream;
use crate::store::{Location, StoreOptions, Stores};
pub(super) use records::{Format, delimiter};
use rows::Columns;
pub(super) use rows::Table;

/// Which columns of a table are carried along.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Carry {
    /// All, or none.
    Word(CarryWord),
    /// These, in this order.
    Columns(Vec<String>),
}

/// All columns, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CarryWord {
    /// All columns.
    All,
    /// No column.
    None,
}

impl Default for Carry {
    fn default() -> Self {
        Carry::Word(CarryWord::All)
    }
}

/// The type that a column of text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CellType {
    /// Text.
    Text,
    /// A whole number.
    Int,
    /// A number.
    Float,
}

/// The options that both kinds have.
pub(super) struct Options<'a> {
    pub(super) format: Format,
    pub(super) path: &'a OneOrMany,
    pub(super) column: Option<&'a str>,
    pub(super) base: Option<&'a str>,
    pub(super) carry: &'a Carry,
    pub(super) types: &'a IndexMap<String, CellType>,
    pub(super) id_column: Option<&'a str>,
    pub(super) max_file_bytes: Option<Size>,
    pub(super) max_line_bytes: Option<Size>,
    pub(super) parallel: Option<usize>,
    pub(super) store: &'a StoreOptions,
}

const MAX_FILE_BYTES: u64 = 1 << 30;
const MAX_LINE_BYTES: u64 = 16 << 20;
const PARALLEL: usize = 2;
/// The columns that a source has by itself.
const OWN: [&str; 3] = ["id", "uri", "bytes"];

impl Options<'_> {
    pub(super) fn patterns(&self, base: &Path) -> Result<Patterns, SpecError> {
        Patterns::parse("path", self.path, base, Braces::List)
    }

    fn file_base(&self, base: &Path) -> Result<Location, SpecError> {
        let location = Location::parse(self.base.unwrap_or("."), base);
        location.map_err(|error| spec_error(error).at(&["base"]))
    }

    fn max_line_bytes(&self) -> u64 {
        self.max_line_bytes.map_or(MAX_LINE_BYTES, Size::bytes)
    }

    /// The columns of the first file, by a look into it.
    fn names(&self, patterns: &Patterns) -> Result<Vec<String>, SpecError> {
        let help = "name the columns with `carry`, such as `carry: [label]`";
        let Some(item) = patterns.first() else {
            let message = format!("which columns `{}` has cannot be seen before the run", patterns.detail());
            return Err(SpecError::new(message).at(&["path"]).label(help));
        };
        let stores = Stores::new(self.store.clone());
        let locators = patterns.locators(&stores);
        let opened = locators.location(&item).and_then(|location| Stream::open(&stores, location));
        let names = opened.and_then(|stream| self.format.names(&item.uri, stream, self.max_line_bytes()));
        names.map_err(|reject| {
            let message = format!("which columns there are cannot be seen: {}", reject.message);
            SpecError::new(message).at(&["path"]).note(help)
        })
    }

    /// The columns that are carried along.
    fn carried(&self, patterns: &Patterns) -> Result<Vec<String>, SpecError> {
        match (self.carry, &self.format) {
            (Carry::Word(CarryWord::None), _) => Ok(Vec::new()),
            (Carry::Columns(names), _) => Ok(names.clone()),
            (Carry::Word(CarryWord::All), format) => {
                let mut names = match format {
                    Format::Csv { names: Some(names), .. } => names.clone(),
                    _ => self.names(patterns)?,
                };
                names.retain(|name| !OWN.contains(&name.as_str()));
                Ok(names)
            }
        }
    }

    pub(super) fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let patterns = self.patterns(cx.base)?;
        self.file_base(cx.base)?;
        self.store.check().map_err(|error| spec_error(error).at(&["store", "endpoint"]))?;
        if self.parallel == Some(0) {
            return Err(SpecError::new("`parallel` is at least 1").at(&["parallel"]));
        }
        let ids = if self.id_column.is_some() { Ids::Own } else { Ids::Uris };
        let mut spec = rows_source(patterns.detail(), ids);
        if self.column.is_some() {
            // Whether these are paths or URLs is not known yet.
            spec = spec.with_new("bytes", ColumnType::Bytes, Role::Auxiliary)?.with_readers(REMOTE_READERS);
        }
        let carried = self.carried(&patterns)?;
        if let Some(name) = self.types.keys().find(|name| !carried.contains(name)) {
            let names: Vec<_> = carried.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("there is no column `{name}` that is carried along");
            return Err(SpecError::new(message).at(&["types", name]).note(format!("columns: {}", names.join(", "))));
        }
        for name in &carried {
            let ty = match self.types.get(name) {
                None | Some(CellType::Text) => ColumnType::Text,
                Some(CellType::Int) => ColumnType::Int,
                Some(CellType::Float) => ColumnType::Float,
            };
            spec = spec.with_new(name, ty, Role::Result).map_err(|error| {
                SpecError { notes: Vec::new(), ..error }.at(&["carry"]).label("name the columns, without this one")
            })?;
        }
        Ok(spec)
    }

    pub(super) fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let bad = |error: SpecError| Fault::permanent(error.to_string());
        let patterns = self.patterns(cx.base).map_err(bad)?;
        if !cx.is_resumed {
            patterns.check(&cx.cancel)?;
        }
        let stores = Stores::within(self.store.clone(), &cx.cancel);
        let first = if self.column.is_some() { BYTES + 1 } else { BYTES };
        let carried =
            cx.spec.outputs[first..].iter().map(|output| (output.field.name.clone(), output.field.ty.clone()));
        let table = Table {
            locators: patterns.locators(&stores),
            format: self.format.clone(),
            columns: Columns::new(carried.collect(), self.column, self.id_column),
            files: References {
                stores: stores.clone(),
                base: self.file_base(cx.base).map_err(bad)?,
                max_bytes: self.max_file_bytes.map_or(MAX_FILE_BYTES, Size::bytes),
            },
            max_line_bytes: self.max_line_bytes(),
            parallel: self.parallel.unwrap_or(PARALLEL),
        };
        Ok(Stage::Source(SourceStage {
            list: Box::new(Listed::new(patterns, stores, cx.cancel.clone(), cx.is_resumed)),
            reading: Reading::Unpacked(Arc::new(table)),
            count: None,
        }))
    }
}
