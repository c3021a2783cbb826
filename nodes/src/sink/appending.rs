//! Outputs that are written row by row and can be cut back by bytes: lines, tables, archives.

use std::io::Read;
use std::path::PathBuf;

use engine::data::{Batch, RowPos};
use engine::node::{Durable, Fault, Sealed, Sink, SinkPos};

use super::compression::Compression;
use super::destination::{Destination, Spooled};
use super::packed::Packed;
use super::rotate::{Progress, Rotate};

/// How rows become bytes.
pub(crate) trait RowFormat: Send {
    /// Appends what precedes the rows of a part.
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    /// Appends a row.
    fn row(&mut self, batch: &Batch, row_idx: usize, out: &mut Vec<u8>) -> Result<(), Fault>;

    /// Appends what follows the rows of a part.
    fn end(&mut self, _out: &mut Vec<u8>) {}

    /// About how many rows there are in bytes that begin with one. They may end anywhere.
    fn count(&self, rows: &mut dyn Read) -> u64 {
        let (mut buffer, mut n_lines) = (vec![0; 64 << 10], 0);
        while let Ok(n_bytes @ 1..) = rows.read(&mut buffer) {
            n_lines += buffer[..n_bytes].iter().filter(|&&byte| byte == b'\n').count() as u64;
        }
        n_lines
    }
}

/// A sink of such an output, in one part or in several.
pub(crate) struct Appending<F> {
    format: F,
    destination: Destination,
    rotate: Option<Rotate>,
    compression: Compression,
    /// The part that is being written; none between two.
    part: Option<Packed>,
    progress: Progress,
    closed: Vec<Sealed>,
}

impl<F: RowFormat> Appending<F> {
    /// A sink whose first part may be written: that is found out now.
    pub(super) fn open(
        format: F,
        destination: Destination,
        rotate: Option<Rotate>,
        compression: Compression,
    ) -> Result<Self, Fault> {
        let progress = Progress::default();
        let mut sink = Appending { format, destination, rotate, compression, part: None, progress, closed: Vec::new() };
        sink.part()?;
        Ok(sink)
    }

    /// The part that is being written.
    fn part(&mut self) -> Result<&mut Packed, Fault> {
        if self.part.is_none() {
            let out = self.destination.open(&self.name())?;
            self.part = Some(Packed::new(out, self.compression));
        }
        Ok(self.part.as_mut().expect("it was made just now"))
    }

    fn name(&self) -> String {
        self.destination.name(self.progress.part.part)
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.part()?;
        if let Some(part) = self.part.as_mut().filter(|part| part.is_empty()) {
            self.format.begin(part.buffer());
        }
        Ok(())
    }

    /// Completes the part that is being written.
    fn close(&mut self, spooled: Spooled) -> Result<Sealed, Fault> {
        self.begin()?;
        let mut part = self.part.take().expect("it was made just now");
        self.format.end(part.buffer());
        let sealed = part.seal(self.progress.part.rows)?;
        self.progress.close(sealed.bytes);
        self.destination.sealed(sealed, spooled)
    }
}

impl<F: RowFormat> Sink for Appending<F> {
    fn write(&mut self, batch: &Batch) -> Result<(), Fault> {
        for row_idx in 0..batch.n_rows() {
            if self.progress.part.rows == 0 {
                self.begin()?;
            }
            let part = self.part.as_mut().ok_or_else(|| Fault::bug("a part has rows and is not open"))?;
            let before = part.buffer().len();
            self.format.row(batch, row_idx, part.buffer())?;
            let size = part.buffer().len() - before;
            part.spill()?;
            self.progress.add_row(size as u64);
            if self.rotate.is_some_and(|rotate| rotate.is_full(self.progress.part.rows, self.progress.part.size)) {
                let sealed = self.close(Spooled::Goes)?;
                self.closed.push(sealed);
            }
        }
        self.part.as_mut().map_or(Ok(()), Packed::end_batch)
    }

    fn cut(&mut self, _upto: RowPos) -> Result<(SinkPos, Durable), Fault> {
        let (bytes, durable) = match &mut self.part {
            Some(part) => part.cut()?,
            None => (0, Box::new(|| Ok(())) as Durable),
        };
        let pos = match self.rotate {
            Some(_) => self.progress.position(bytes)?,
            None => SinkPos { rows: self.progress.rows, bytes, ..SinkPos::default() },
        };
        Ok((pos, durable))
    }

    fn closed(&mut self) -> Vec<Sealed> {
        std::mem::take(&mut self.closed)
    }

    fn resume(&mut self, at: &SinkPos) -> Result<u64, Fault> {
        let (progress, bytes) = Progress::at(at)?;
        if progress.part.part != self.progress.part.part {
            self.part = None;
        }
        self.progress = progress;
        self.part()?;
        let part = self.part.as_mut().expect("it was made just now");
        part.resume(bytes, |rows| self.format.count(rows))
    }

    fn seal(mut self: Box<Self>) -> Result<Vec<Sealed>, Fault> {
        if !self.progress.is_superfluous() {
            return Ok(vec![self.close(Spooled::Stays)?]);
        }
        if let Some(part) = self.part {
            part.into_partial().discard()?;
        }
        Ok(Vec::new())
    }

    fn unfinished(&self) -> Option<PathBuf> {
        match &self.part {
            Some(part) => part.partial().unfinished(),
            None => self.destination.unfinished(&self.name()),
        }
    }
}
