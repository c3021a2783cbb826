//! Rows of tables, with the files that they name.

use std::sync::Arc;

use engine::config::Size;
use engine::data::{ColumnType, Reject, RowMut, code};
use engine::node::{Entries, Entry, Item, Stamp, Unpack};

use super::records::{Format, Need, Record, Records};
use super::{MAX_LINE_BYTES, PARALLEL};
use crate::source::columns::BYTES;
use crate::source::listing::Locators;
use crate::source::picking::Container;
use crate::source::references::{References, without_secrets};
use crate::source::stream::Stream;

/// Opens tables.
pub(in crate::source) struct Table {
    pub(super) locators: Locators,
    pub(super) format: Format,
    pub(super) columns: Columns,
    pub(super) files: References,
    pub(super) max_line_bytes: u64,
    pub(super) parallel: usize,
}

/// Which columns of a table are wanted, and for what.
pub(super) struct Columns {
    /// All that are wanted.
    wanted: Arc<[Arc<str>]>,
    /// Those that are carried along, by their numbers in `wanted`.
    carried: Vec<(usize, ColumnType)>,
    /// The one that names the file.
    file: Option<usize>,
    /// The one that is the id.
    id: Option<usize>,
}

impl Columns {
    pub(super) fn new(carried: Vec<(Arc<str>, ColumnType)>, file: Option<&str>, id: Option<&str>) -> Self {
        let mut wanted: Vec<Arc<str>> = Vec::new();
        let mut number = |name: &str| {
            wanted.iter().position(|wanted| **wanted == *name).unwrap_or_else(|| {
                wanted.push(name.into());
                wanted.len() - 1
            })
        };
        let carried = carried.into_iter().map(|(name, ty)| (number(&name), ty)).collect();
        let (file, id) = (file.map(&mut number), id.map(&mut number));
        Columns { wanted: wanted.into(), carried, file, id }
    }
}

impl Table {
    /// Opens tables for the files that their column `column` names, and nothing else.
    pub(in crate::source) fn of_files(
        locators: Locators,
        format: Format,
        column: &str,
        files: References,
        max_line_bytes: Option<Size>,
    ) -> Self {
        let columns = Columns::new(Vec::new(), Some(column), None);
        let max_line_bytes = max_line_bytes.map_or(MAX_LINE_BYTES, Size::bytes);
        Table { locators, format, columns, files, max_line_bytes, parallel: PARALLEL }
    }

    /// The rows of a table from one of them on.
    pub(in crate::source) fn rows(&self, item: &Item, skip: u32) -> Result<Box<dyn Container>, Reject> {
        let stream = Stream::open(&self.locators.stores, self.locators.location(item)?)?;
        let mut records = self.format.open(&item.uri, stream, self.max_line_bytes, &self.columns.wanted)?;
        for _ in 0..skip {
            if records.next_record(Need::Count).is_none() {
                break;
            }
        }
        Ok(Box::new(Rows { records, uri: item.uri.clone(), id: self.columns.id }))
    }
}

impl Unpack for Table {
    fn open(&self, _index: u64, item: &Item, skip: u32) -> Result<Box<dyn Entries>, Reject> {
        let rows = self.rows(item, skip)?;
        Ok(rows)
    }

    fn read(&self, _item: &Item, entry: &Entry, out: &mut RowMut<'_>) -> Result<(), Reject> {
        let content = entry.content.as_ref().map_err(Reject::clone)?;
        let cells = content.downcast_ref::<Vec<String>>().expect("it is what `Rows` gives");
        let mut output = BYTES;
        if let Some(file) = self.columns.file {
            out.bytes(output, self.files.read(&entry.uri, &cells[file])?);
            output += 1;
        }
        for (number, ty) in &self.columns.carried {
            let (name, text) = (&self.columns.wanted[*number], &cells[*number]);
            let bad = |what: &str| {
                let shown: String = without_secrets(text).chars().take(40).collect();
                let message = format!("`{}`: `{name}` is `{shown}`, not {what}", entry.uri);
                Reject::new(code::CORRUPT, message)
            };
            match ty {
                ColumnType::Int => out.int(output, text.trim().parse().map_err(|_| bad("a whole number"))?),
                ColumnType::Float => out.float(output, text.trim().parse().map_err(|_| bad("a number"))?),
                _ if Some(*number) == self.columns.file => out.text(output, &without_secrets(text)),
                _ => out.text(output, text),
            }
            output += 1;
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

/// The rows of one table.
struct Rows {
    records: Records,
    uri: String,
    id: Option<usize>,
}

impl Entries for Rows {
    fn next_entry(&mut self) -> Option<Entry> {
        let Record { line, cells } = self.records.next_record(Need::Cells)?;
        let uri = format!("{}#{line}", self.uri);
        let id = match (&cells, self.id) {
            (Ok(cells), Some(id)) if !cells[id].is_empty() => Some(without_secrets(&cells[id])),
            _ => None,
        };
        let bytes = cells.as_ref().map_or(0, |cells| cells.iter().map(String::len).sum::<usize>() as u64);
        Some(Entry { uri, id, bytes, content: cells.map(|cells| Box::new(cells) as _) })
    }

    fn stamp(&self) -> Stamp {
        self.records.stream().stamp()
    }
}

impl Container for Rows {
    fn broken(&self) -> Option<&Reject> {
        self.records.broken()
    }
}
