//! Outputs of forms that cannot be cut back or gone on with: their rows are logged, and a part is made of them when it is
//! complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use engine::data::{Batch, RowPos};
use engine::durable::{disk, partial_path};
use engine::node::{Durable, Fault, Sealed, Sink, SinkPos};

use super::destination::{Destination, Spooled};
use super::rotate::{Progress, Rotate};
use super::row_log::{LoggedRows, RowLog};

/// How rows are logged, and how files are made of them.
pub(super) trait PartFormat: Send {
    /// The columns of the log.
    fn schema(&self) -> &SchemaRef;

    /// Rows as they are logged.
    fn rows(&self, batch: &Batch) -> Result<RecordBatch, Fault>;

    /// Bytes of a row's values.
    fn row_bytes(&self, batch: &Batch, row_idx: usize) -> u64;

    /// Makes the part that is to be called `name`, in bounded memory.
    fn make(&self, rows: &LoggedRows, name: &str, destination: &Destination) -> Result<Vec<Sealed>, Fault>;

    /// The rows of a part that was made, as they were logged.
    fn read(&self, part: &Path) -> Result<LoggedBatches, Fault> {
        let message = format!("`{}` was complete, and cannot be gone back into", part.display());
        Err(Fault::permanent(message).help("start afresh with `--fresh`"))
    }
}

/// Rows, read one after the other.
pub(super) type LoggedBatches = Box<dyn Iterator<Item = Result<RecordBatch, Fault>>>;

/// A sink of such an output.
pub(super) struct Spooling<F> {
    format: F,
    destination: Destination,
    rotate: Option<Rotate>,
    folder: PathBuf,
    /// The rows of the part that is being written; none between two.
    log: Option<RowLog>,
    progress: Progress,
    closed: Vec<Sealed>,
    spent: Arc<Mutex<Spent>>,
}

/// Logs of which parts were made.
#[derive(Default)]
struct Spent {
    /// The part that was being written at the last cut that was made durable.
    part: u32,
    logs: Vec<(u32, PathBuf)>,
}

impl Spent {
    /// A cut at which part number `part` is being written is being made durable. The one before it was committed by now, so
    /// that the run never goes back to parts that were complete there.
    fn reach(&mut self, part: u32) -> Result<(), Fault> {
        let before = std::mem::replace(&mut self.part, part);
        let (gone, kept) = std::mem::take(&mut self.logs).into_iter().partition(|(of_part, _)| *of_part < before);
        self.logs = kept;
        let gone: Vec<(u32, PathBuf)> = gone;
        gone.iter().try_for_each(|(_, log)| disk::remove(log))
    }
}

impl<F: PartFormat> Spooling<F> {
    /// A sink that logs in the folder `log` of its spool. Whether the output may be written is found out now.
    pub(super) fn open(
        format: F,
        destination: Destination,
        rotate: Option<Rotate>,
        spool: &Path,
    ) -> Result<Self, Fault> {
        drop(destination.open(&destination.name(0))?);
        let mut sink = Spooling {
            format,
            destination,
            rotate,
            folder: spool.join("log"),
            log: None,
            progress: Progress::default(),
            closed: Vec::new(),
            spent: Arc::default(),
        };
        sink.log()?;
        Ok(sink)
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join(format!("rows-{:05}", self.progress.part.part))
    }

    fn log(&mut self) -> Result<&mut RowLog, Fault> {
        if self.log.is_none() {
            self.log = Some(RowLog::open(&self.log_path(), self.format.schema())?);
        }
        Ok(self.log.as_mut().expect("it was made just now"))
    }

    /// Makes the log of the part that is being written anew, of the part as it was when it was complete.
    fn take_back(&mut self) -> Result<(), Fault> {
        let n_rows = self.progress.part.rows;
        let part = self.destination.unfinished(&self.destination.name(self.progress.part.part)).unwrap_or_default();
        let batches = self.format.read(&part)?;
        let log = self.log()?;
        log.resume(0)?;
        let mut n_left = usize::try_from(n_rows).unwrap_or(usize::MAX);
        for rows in batches {
            let rows = rows?;
            let rows = rows.slice(0, rows.num_rows().min(n_left));
            n_left -= rows.num_rows();
            log.append(&rows)?;
            if n_left == 0 {
                return Ok(());
            }
        }
        let message = format!("`{}` does not have the {n_rows} rows that were written to it", part.display());
        Err(Fault::permanent(message).help("start afresh with `--fresh`"))
    }

    fn append(&mut self, batch: &Batch) -> Result<(), Fault> {
        if batch.n_rows() == 0 {
            return Ok(());
        }
        let rows = self.format.rows(batch)?;
        self.log()?.append(&rows)
    }

    /// Makes the part of the rows that are logged.
    fn close(&mut self, spooled: Spooled) -> Result<Vec<Sealed>, Fault> {
        let number = self.progress.part.part;
        let name = self.destination.name(number);
        let n_rows = self.progress.part.rows;
        self.log()?;
        let mut log = self.log.take().expect("it was made just now");
        let made = self.format.make(&log.rows(n_rows)?, &name, &self.destination)?;
        if spooled == Spooled::Goes {
            self.spent.lock().unwrap_or_else(PoisonError::into_inner).logs.push((number, log.path()));
        }
        self.progress.close(made.iter().map(|sealed| sealed.bytes).sum());
        // What was made can be made again of the log, so the file itself needs not to stay.
        made.into_iter().map(|sealed| self.destination.sealed(sealed, Spooled::Goes)).collect()
    }
}

impl<F: PartFormat> Sink for Spooling<F> {
    fn write(&mut self, batch: &Batch) -> Result<(), Fault> {
        let mut start = 0;
        for row_idx in 0..batch.n_rows() {
            self.progress.add_row(self.format.row_bytes(batch, row_idx));
            if self.rotate.is_some_and(|rotate| rotate.is_full(self.progress.part.rows, self.progress.part.size)) {
                self.append(&batch.slice(start..row_idx + 1))?;
                start = row_idx + 1;
                let made = self.close(Spooled::Goes)?;
                self.closed.extend(made);
            }
        }
        self.append(&batch.slice(start..batch.n_rows()))
    }

    fn cut(&mut self, _upto: RowPos) -> Result<(SinkPos, Durable), Fault> {
        let (bytes, durable) = match &mut self.log {
            Some(log) => log.cut()?,
            None => (0, Box::new(|| Ok(())) as Durable),
        };
        let (spent, part) = (self.spent.clone(), self.progress.part.part);
        let durable: Durable = Box::new(move || {
            durable()?;
            spent.lock().unwrap_or_else(PoisonError::into_inner).reach(part)
        });
        Ok((self.progress.position(bytes)?, durable))
    }

    fn closed(&mut self) -> Vec<Sealed> {
        std::mem::take(&mut self.closed)
    }

    fn resume(&mut self, at: &SinkPos) -> Result<u64, Fault> {
        let (progress, bytes) = Progress::at(at)?;
        // The one that is open already stays so: a process that is being started may hold its lock for a moment longer.
        if progress.part.part != self.progress.part.part {
            self.log = None;
        }
        self.progress = progress;
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).part = progress.part.part;
        let log = self.log()?;
        let (n_kept, n_found) = (log.count(bytes), log.count(u64::MAX));
        if n_kept == progress.part.rows {
            log.resume(bytes)?;
        } else {
            // The part was complete before, and its log has gone.
            self.take_back()?;
        }
        remove_other_logs(&self.folder, &partial_path(&self.log_path()))?;
        Ok(n_found.saturating_sub(n_kept))
    }

    fn seal(mut self: Box<Self>) -> Result<Vec<Sealed>, Fault> {
        if self.progress.is_superfluous() { Ok(Vec::new()) } else { self.close(Spooled::Stays) }
    }

    fn unfinished(&self) -> Option<PathBuf> {
        Some(partial_path(&self.log_path()))
    }
}

/// Removes logs of parts that are complete, or were begun later than where the run goes on.
fn remove_other_logs(folder: &Path, kept: &Path) -> Result<(), Fault> {
    let failed = |error| Fault::io("read the folder", folder, &error);
    let kept = kept.file_name();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let is_log = name.to_str().is_some_and(|name| name.starts_with(".rows-") && name.ends_with(".partial"));
        if is_log && Some(&*name) != kept {
            disk::remove(&folder.join(name))?;
        }
    }
    Ok(())
}
