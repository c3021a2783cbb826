//! The rows of a row group, one after the other.

use std::sync::Arc;

use arrow_array::RecordBatch;
use engine::data::{Reject, code};
use engine::node::{Entries, Entry, Stamp};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::columns::{CarriedColumn, ImageForm, column_type, names};
use super::file::ParquetFile;
use super::groups::Group;
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
}

/// The rows of a row group.
pub(super) struct Rows {
    reader: ParquetRecordBatchReader,
    file: ParquetFile,
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
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata);
        let mask = ProjectionMask::roots(builder.parquet_schema(), places);
        let builder = builder.with_row_groups(vec![group.number]).with_projection(mask).with_batch_size(BATCH_ROWS);
        let builder = if skip > 0 { builder.with_offset(skip as usize) } else { builder };
        let reader = builder.build();
        let reader = reader.map_err(|error| {
            let corrupt = || Reject::new(code::CORRUPT, format!("`{uri}` cannot be read: {error}"));
            file.failed().unwrap_or_else(corrupt)
        })?;
        let number = group.n_before + u64::from(skip);
        Ok(Rows { reader, file, uri: uri.to_owned(), wanted, batch: None, at: 0, number, is_ended: false })
    }

    fn row(&self, batch: &RecordBatch, row_idx: usize) -> (Row, Option<String>) {
        let column = |name: &str| batch.column_by_name(name).expect("it was chosen");
        let (image, path) = image(column(&self.wanted.image), row_idx);
        let cells = self.wanted.carried.iter().map(|carried| cell(column(&carried.name), row_idx));
        (Row { image, cells: cells.collect() }, path)
    }
}

impl Entries for Rows {
    fn next_entry(&mut self) -> Option<Entry> {
        if self.is_ended {
            return None;
        }
        while self.batch.as_ref().is_none_or(|batch| self.at == batch.num_rows()) {
            match self.reader.next() {
                Some(Ok(batch)) => (self.batch, self.at) = (Some(batch), 0),
                Some(Err(error)) => {
                    self.is_ended = true;
                    let failed = self.file.failed();
                    let why = failed.as_ref().map_or_else(|| error.to_string(), |failed| failed.message.clone());
                    let message = format!("`{}` cannot be read from row {} on: {why}", self.uri, self.number);
                    let reject = Reject::new(failed.map_or(code::CORRUPT, |failed| failed.code), message);
                    let uri = format!("{}#{}", self.uri, self.number);
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
