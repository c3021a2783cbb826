//! An unfinished output whose rows are compressed on their way, or not.

use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use engine::durable::Partial;
use engine::node::{Durable, Fault, Sealed};

use super::compression::{Compression, Packer};

/// Bytes that are compressed at once.
const TEXT_BYTES: usize = 64 << 10;

/// An unfinished output.
pub(super) struct Packed {
    out: Partial,
    compression: Compression,
    packer: Packer,
    /// What is still to be compressed.
    text: Vec<u8>,
}

impl Packed {
    pub(super) fn new(out: Partial, compression: Compression) -> Self {
        Packed { out, compression, packer: Packer::new(compression), text: Vec::new() }
    }

    /// Where the next bytes go.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.compression == Compression::None { self.out.buffer() } else { &mut self.text }
    }

    /// Whether nothing has been written.
    pub(super) fn is_empty(&self) -> bool {
        self.out.n_bytes() == 0 && self.text.is_empty() && !self.packer.is_begun()
    }

    /// Writes the buffer if it is large.
    pub(super) fn spill(&mut self) -> Result<(), Fault> {
        if self.text.len() >= TEXT_BYTES {
            self.pack()?;
        }
        self.out.spill()
    }

    /// Ends a batch of rows: whoever reads a pipe wants them now.
    pub(super) fn end_batch(&mut self) -> Result<(), Fault> {
        if self.out.file().is_none() {
            self.pack()?;
            self.packer.flush(self.out.buffer()).map_err(failed)?;
        }
        self.spill()?;
        self.out.end_batch()
    }

    /// Hands all bytes to the system, see [`Partial::cut`].
    pub(super) fn cut(&mut self) -> Result<(u64, Durable), Fault> {
        self.end_piece()?;
        self.out.cut()
    }

    /// Goes back to the first `n_bytes` bytes; how many rows are given up, which `count` finds in what follows them.
    pub(super) fn resume(&mut self, n_bytes: u64, count: impl FnOnce(&mut dyn Read) -> u64) -> Result<u64, Fault> {
        // Nothing but a figure depends on it, so what cannot be read is not counted.
        let tail = self.out.file().and_then(|file| {
            let tail = Tail { file, at: n_bytes };
            Some(count(&mut self.compression.reader(tail).ok()?))
        });
        let n_rows = tail.unwrap_or(0);
        self.text.clear();
        self.packer = Packer::new(self.compression);
        self.out.resume(n_bytes)?;
        Ok(n_rows)
    }

    /// Makes the output complete and durable, but for its name.
    pub(super) fn seal(mut self, n_rows: u64) -> Result<Sealed, Fault> {
        if self.compression != Compression::None && self.is_empty() {
            // No bytes at all are no file of this form.
            self.packer.write(&[], self.out.buffer()).map_err(failed)?;
        }
        self.end_piece()?;
        self.out.seal(n_rows)
    }

    /// The output, to take it away.
    pub(super) fn into_partial(self) -> Partial {
        self.out
    }

    /// The output, to ask it.
    pub(super) fn partial(&self) -> &Partial {
        &self.out
    }

    fn pack(&mut self) -> Result<(), Fault> {
        if !self.text.is_empty() {
            self.packer.write(&self.text, self.out.buffer()).map_err(failed)?;
            self.text.clear();
        }
        Ok(())
    }

    fn end_piece(&mut self) -> Result<(), Fault> {
        self.pack()?;
        self.packer.end_piece(self.out.buffer()).map_err(failed)
    }
}

fn failed(error: io::Error) -> Fault {
    Fault::bug(format!("rows cannot be compressed: {error}"))
}

/// What lies in a file from a byte on.
struct Tail<'a> {
    file: &'a std::fs::File,
    at: u64,
}

impl Read for Tail<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.file.read_at(buffer, self.at)?;
        self.at += n_bytes as u64;
        Ok(n_bytes)
    }
}
