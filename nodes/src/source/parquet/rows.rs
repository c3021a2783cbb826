//! The rows of a row group, one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use engine::data::{Reject, code};
use engine::node::{Entries, Entry, Stamp};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::schema::types::SchemaDescriptor;

use super::columns::{CarriedColumn, ImageForm, column_type, names};
use super::file::ParquetFile;
use super::groups::Group;
use super::pages::Pages;
use super::part::{Chosen, Numbers, Part};
use super::values::{Cell, Image, cell, image};
use crate::source::picking::Container;
use crate::source::references::without_secrets;

/// Rows that are unpacked at once: their bytes are held twice for a moment.
const BATCH_ROWS: usize = 8;

/// A row before its columns are written.
pub(super) struct Row {
    pub(super) image: Image,
    pub(super) cells: Vec<Cell>,
}

/// The columns that are wanted.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) image: String,
    pub(super) carried: Vec<CarriedColumn>,
    /// The most bytes of a page when it is unpacked.
    pub(super) max_page_bytes: u64,
}

/// The rows of a row group.
pub(super) struct Rows {
    reader: ParquetRecordBatchReader,
    file: ParquetFile,
    pages: Pages,
    uri: String,
    wanted: Arc<Wanted>,
    batch: Option<RecordBatch>,
    at: usize,
    /// The rows' numbers in their file.
    numbers: Numbers,
    is_ended: bool,
    /// What kept the rows from being read to their end.
    broken: Option<Reject>,
}

impl Rows {
    pub(super) fn open(
        file: ParquetFile,
        metadata: ArrowReaderMetadata,
        uri: &str,
        wanted: Arc<Wanted>,
        group: Group,
        skip: u32,
    ) -> Result<Self, Reject> {
        let places = places(&metadata, uri, &wanted)?;
        if group.number >= metadata.metadata().num_row_groups() {
            let names = names(metadata.schema());
            let message = format!("`{uri}` has no row group {} any more; it has {names}", group.number);
            return Err(Reject::new(code::CORRUPT, message));
        }
        let numbers = Numbers::From(group.n_before + u64::from(skip));
        let chosen = Chosen { groups: vec![group.number], selection: None, numbers };
        Rows::of_chosen(file, metadata, uri, wanted, places, chosen, skip)
    }

    /// Rows of any row groups, from row `skip` of the part on.
    pub(super) fn of_part(
        file: ParquetFile,
        metadata: ArrowReaderMetadata,
        uri: &str,
        wanted: Arc<Wanted>,
        part: &Part<'_>,
        skip: u32,
    ) -> Result<Self, Reject> {
        let places = places(&metadata, uri, &wanted)?;
        let mut chosen = part.choose(metadata.metadata(), uri)?;
        for _ in 0..skip {
            chosen.numbers.next();
        }
        Rows::of_chosen(file, metadata, uri, wanted, places, chosen, skip)
    }

    fn of_chosen(
        file: ParquetFile,
        metadata: ArrowReaderMetadata,
        uri: &str,
        wanted: Arc<Wanted>,
        places: Vec<usize>,
        chosen: Chosen,
        skip: u32,
    ) -> Result<Self, Reject> {
        let Chosen { groups, selection, numbers } = chosen;
        let pages = Pages::new(file.clone(), &metadata, &groups, uri, wanted.max_page_bytes)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages.clone(), metadata);
        let mask = ProjectionMask::leaves(builder.parquet_schema(), leaves(builder.parquet_schema(), &places));
        let builder = builder.with_row_groups(groups).with_projection(mask).with_batch_size(BATCH_ROWS);
        let builder = match selection {
            Some(selection) => builder.with_row_selection(selection),
            None => builder,
        };
        let builder = if skip > 0 { builder.with_offset(skip as usize) } else { builder };
        let reader = builder.build();
        let reader = reader.map_err(|error| {
            let corrupt = || Reject::new(code::CORRUPT, format!("`{uri}` cannot be read: {error}"));
            pages.take_refused().or_else(|| file.failed()).unwrap_or_else(corrupt)
        })?;
        let (uri, batch) = (uri.to_owned(), None);
        Ok(Rows { reader, file, pages, uri, wanted, batch, at: 0, numbers, is_ended: false, broken: None })
    }

    fn row(&self, batch: &RecordBatch, row_idx: usize) -> (Row, Option<String>) {
        let column = |name: &str| batch.column_by_name(name).expect("it was chosen");
        let (image, path) = image(column(&self.wanted.image), row_idx);
        let cells = self.wanted.carried.iter().map(|carried| cell(column(&carried.name), row_idx));
        (Row { image, cells: cells.collect() }, path)
    }
}

/// The columns of the file that are read, of the fields at `places`, of which the first is the image: of its struct no more
/// than what an image has.
fn leaves(schema: &SchemaDescriptor, places: &[usize]) -> Vec<usize> {
    let is_read = |leaf: &usize| {
        let (column, root) = (schema.column(*leaf), schema.get_column_root_idx(*leaf));
        let is_wanted = match column.path().parts() {
            [_] => true,
            [_, part] if root == places[0] => matches!(part.as_str(), "bytes" | "path"),
            _ => root != places[0],
        };
        is_wanted && places.contains(&root)
    };
    (0..schema.num_columns()).filter(is_read).collect()
}

impl Entries for Rows {
    fn next_entry(&mut self) -> Option<Entry> {
        if self.is_ended {
            return None;
        }
        while self.batch.as_ref().is_none_or(|batch| self.at == batch.num_rows()) {
            self.pages.next_rows();
            // The library believes some numbers that it should not.
            let next = catch_unwind(AssertUnwindSafe(|| self.reader.next()));
            match next.unwrap_or_else(|_| Some(Err(ArrowError::ParquetError("its pages make no sense".to_owned())))) {
                Some(Ok(batch)) => (self.batch, self.at) = (Some(batch), 0),
                Some(Err(error)) => {
                    self.is_ended = true;
                    let known = self.pages.take_refused().or_else(|| self.file.failed());
                    let (code, why) =
                        known.map_or_else(|| (code::CORRUPT, error.to_string()), |known| (known.code, known.message));
                    let number = self.numbers.next().unwrap_or_default();
                    let message = format!("`{}` cannot be read from row {number} on: {why}", self.uri);
                    let uri = format!("{}#{number}", self.uri);
                    let reject = Reject::new(code, message);
                    self.broken = Some(reject.clone());
                    return Some(Entry { uri, id: None, bytes: 0, content: Err(reject) });
                }
                None => {
                    self.is_ended = true;
                    return None;
                }
            }
        }
        let batch = self.batch.as_ref()?;
        let (row, path) = self.row(batch, self.at);
        let bytes = match &row.image {
            Image::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        };
        let uri = format!("{}#{}", self.uri, self.numbers.next()?);
        self.at += 1;
        let id = path.map(|path| without_secrets(&path));
        Some(Entry { uri, id, bytes, content: Ok(Box::new(row)) })
    }

    fn stamp(&self) -> Stamp {
        self.file.stamp()
    }
}

impl Container for Rows {
    fn broken(&self) -> Option<&Reject> {
        self.broken.as_ref()
    }
}

/// Where the columns are that are wanted, the image first.
fn places(metadata: &ArrowReaderMetadata, uri: &str, wanted: &Wanted) -> Result<Vec<usize>, Reject> {
    let schema = metadata.schema().clone();
    let bad = |what: String| Reject::new(code::CORRUPT, format!("`{uri}` {what}; it has {}", names(&schema)));
    let place = |name: &str| {
        schema.index_of(name).map_err(|_| bad(format!("has no column `{name}`, which the first file has")))
    };
    let mut places = vec![place(&wanted.image)?];
    if ImageForm::of(schema.field(places[0]).data_type()).is_none() {
        return Err(bad(format!("has no images in its column `{}`", wanted.image)));
    }
    for carried in &wanted.carried {
        let at = place(&carried.name)?;
        if column_type(schema.field(at).data_type()).as_ref() != Some(&carried.ty) {
            return Err(bad(format!("has another type in its column `{}` than the first file", carried.name)));
        }
        places.push(at);
    }
    Ok(places)
}
