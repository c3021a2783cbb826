//! Rows that are kept until they can be made into a file of a form that cannot be gone on with.
//!
//! A log is a stream of Arrow's: its schema, then a message for each batch. It can be cut back wherever a message ends, and
//! is read again without being held in memory.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use engine::durable::Partial;
use engine::node::{Durable, Fault};

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 256 << 10;

/// A log that is being written.
pub(super) struct RowLog {
    out: Partial,
    schema: SchemaRef,
    writer: Option<StreamWriter<Vec<u8>>>,
}

impl RowLog {
    /// Opens the log `path`. What an earlier run left in it stays until something is written.
    pub(super) fn open(path: &Path, schema: &SchemaRef) -> Result<Self, Fault> {
        let out = Partial::open(&path.display().to_string(), path)?;
        Ok(RowLog { out, schema: schema.clone(), writer: None })
    }

    /// Appends rows.
    pub(super) fn append(&mut self, rows: &RecordBatch) -> Result<(), Fault> {
        if self.writer.is_none() {
            let mut writer = StreamWriter::try_new(Vec::new(), &self.schema).map_err(failed)?;
            // A log that is gone on with says already what its columns are.
            let begin = std::mem::take(writer.get_mut());
            if self.out.n_bytes() == 0 {
                self.out.buffer().extend_from_slice(&begin);
            }
            self.writer = Some(writer);
        }
        let writer = self.writer.as_mut().expect("it was made just now");
        writer.write(rows).map_err(failed)?;
        self.out.buffer().append(writer.get_mut());
        self.out.spill()
    }

    /// Hands all bytes to the system, see [`Partial::cut`].
    pub(super) fn cut(&mut self) -> Result<(u64, Durable), Fault> {
        self.out.cut()
    }

    /// How many rows there are in the first `n_bytes` bytes, or in all of them.
    pub(super) fn count(&self, n_bytes: u64) -> u64 {
        let Ok(file) = File::open(self.path()) else { return 0 };
        let Ok(rows) = StreamReader::try_new(BufReader::new(file.take(n_bytes)), None) else { return 0 };
        // What was torn off is not counted.
        rows.map_while(Result::ok).map(|rows| rows.num_rows() as u64).sum()
    }

    /// Goes back to the first `n_bytes` bytes.
    pub(super) fn resume(&mut self, n_bytes: u64) -> Result<(), Fault> {
        self.writer = None;
        self.out.resume(n_bytes).map(drop)
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.out.unfinished().unwrap_or_default()
    }

    /// The rows so far, to be read as often as needed.
    pub(super) fn rows(&mut self, n_rows: u64) -> Result<LoggedRows, Fault> {
        let (n_bytes, _) = self.out.cut()?;
        Ok(LoggedRows { path: self.path(), n_bytes, n_rows, schema: self.schema.clone() })
    }
}

/// The rows of a log.
pub(super) struct LoggedRows {
    path: PathBuf,
    n_bytes: u64,
    /// How many there are.
    pub(super) n_rows: u64,
    /// Their columns.
    pub(super) schema: SchemaRef,
}

impl LoggedRows {
    /// The batches, from the first on.
    pub(super) fn batches(&self) -> Result<impl Iterator<Item = Result<RecordBatch, Fault>>, Fault> {
        let rows = match self.n_bytes {
            0 => None,
            n_bytes => {
                let file = File::open(&self.path).map_err(|error| Fault::io("open", &self.path, &error))?;
                let file = BufReader::with_capacity(BLOCK_BYTES, file.take(n_bytes));
                Some(StreamReader::try_new(file, None).map_err(|error| unreadable(&self.path, &error))?)
            }
        };
        let path = self.path.clone();
        Ok(rows.into_iter().flatten().map(move |rows| rows.map_err(|error| unreadable(&path, &error))))
    }
}

fn unreadable(path: &Path, error: &ArrowError) -> Fault {
    Fault::transient(format!("cannot read `{}` again: {error}", path.display())).help("start afresh with `--fresh`")
}

/// What rows cannot be made into.
pub(super) fn failed(error: ArrowError) -> Fault {
    Fault::bug(format!("rows cannot be written as Arrow's: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array, Int64Array};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn rows(values: std::ops::Range<i64>) -> RecordBatch {
        RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from_iter_values(values))]).unwrap()
    }

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
    }

    fn values(log: &mut RowLog) -> Vec<i64> {
        let logged = log.rows(0).unwrap();
        let columns = logged.batches().unwrap().map(|rows| rows.unwrap().column(0).to_data());
        columns.flat_map(|data| Int64Array::from(data).values().to_vec()).collect()
    }

    #[test]
    fn a_log_is_cut_back_where_a_message_ends_and_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let mut log = RowLog::open(&path, &schema()).unwrap();
        assert_eq!(values(&mut log), [] as [i64; 0]);
        log.append(&rows(0..3)).unwrap();
        let (n_bytes, _) = log.cut().unwrap();
        log.append(&rows(90..95)).unwrap();
        log.append(&rows(95..99)).unwrap();
        drop(log.cut().unwrap());
        drop(log);
        let mut log = RowLog::open(&path, &schema()).unwrap();
        assert_eq!((log.count(n_bytes), log.count(u64::MAX)), (3, 12));
        log.resume(n_bytes).unwrap();
        log.append(&rows(3..5)).unwrap();
        log.append(&rows(5..6)).unwrap();
        assert_eq!(values(&mut log), [0, 1, 2, 3, 4, 5]);
        assert_eq!(values(&mut log), [0, 1, 2, 3, 4, 5], "it can be read again");
    }

    #[test]
    fn a_log_that_lost_bytes_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let mut log = RowLog::open(&path, &schema()).unwrap();
        log.append(&rows(0..300)).unwrap();
        let (n_bytes, _) = log.cut().unwrap();
        let of_log = log.path();
        let logged = log.rows(300).unwrap();
        File::options().write(true).open(of_log).unwrap().set_len(n_bytes - 8).unwrap();
        assert!(logged.batches().unwrap().any(|rows| rows.is_err()));
        assert!(log.resume(n_bytes).unwrap_err().message.contains("were written to it"));
    }
}
