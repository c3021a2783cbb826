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
use super::values::{Cell, Image, cell, image};
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
    /// The row's number in its file.
    number: u64,
    is_ended: bool,
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
        if group.number >= metadata.metadata().num_row_groups() {
            return Err(bad(format!("has no row group {} any more", group.number)));
        }
        let pages = Pages::new(file.clone(), &metadata, group.number, uri, wanted.max_page_bytes)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages.clone(), metadata);
        let mask = ProjectionMask::leaves(builder.parquet_schema(), leaves(builder.parquet_schema(), &places));
        let builder = builder.with_row_groups(vec![group.number]).with_projection(mask).with_batch_size(BATCH_ROWS);
        let builder = if skip > 0 { builder.with_offset(skip as usize) } else { builder };
        let reader = builder.build();
        let reader = reader.map_err(|error| {
            let corrupt = || Reject::new(code::CORRUPT, format!("`{uri}` cannot be read: {error}"));
            file.failed().unwrap_or_else(corrupt)
        })?;
        let number = group.n_before + u64::from(skip);
        Ok(Rows { reader, file, pages, uri: uri.to_owned(), wanted, batch: None, at: 0, number, is_ended: false })
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
                    let (code, why) = known.map_or_else(
                        || (code::CORRUPT, error.to_string()),
                        |known| (known.code, known.message),
                    );
                    let message = format!("`{}` cannot be read from row {} on: {why}", self.uri, self.number);
                    let uri = format!("{}#{}", self.uri, self.number);
                    return Some(Entry { uri, id: None, bytes: 0, content: Err(Reject::new(code, message)) });
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
        let uri = format!("{}#{}", self.uri, self.number);
        self.at += 1;
        self.number += 1;
        let id = path.map(|path| without_secrets(&path));
        Some(Entry { uri, id, bytes, content: Ok(Box::new(row)) })
    }

    fn stamp(&self) -> Stamp {
        self.file.stamp()
    }
}
