//! `--trace`: the file that a run's trace goes to.
//!
//! A trace is worth most after a run that went wrong, so it gets its name after every run that ended by itself, however
//! that was. Of a run that was killed there is what was written, under the temporary name: viewers need no closing
//! bracket.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::node::Fault;
use engine::runtime::{Report, Trace};

use super::output_file::OutputFile;
use crate::failure::Failure;

/// What is younger than this may be missing from the trace of a run that was killed.
const PROMPTNESS: Duration = Duration::from_millis(250);
/// Bytes that are written at once.
const BUFFER: usize = 64 << 10;

/// A trace that is being written.
pub(super) struct TraceFile {
    file: OutputFile,
    trace: Arc<Trace>,
}

impl TraceFile {
    /// Opens it.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let file = OutputFile::create("trace", path)?;
        let trace = Arc::new(Trace::new(Box::new(Prompt::new(file.writer()?))));
        Ok(TraceFile { file, trace })
    }

    /// What the run writes to.
    pub(super) fn trace(&self) -> Arc<Trace> {
        self.trace.clone()
    }

    /// The file that it is in.
    pub(super) fn file(&self) -> &OutputFile {
        &self.file
    }

    /// Completes it, and says where it is; nowhere if the run has not started.
    pub(super) fn finish(self, report: &Report) -> Result<Option<PathBuf>, Fault> {
        if report.nodes.is_empty() {
            return Ok(None);
        }
        match self.trace.finish() {
            Ok(()) => self.file.publish().map(Some),
            Err(error) => {
                let fault = self.file.fault(&error);
                Err(match self.file.leave() {
                    Some(partial) => fault.help(format!("what there is of it is in `{}`", partial.display())),
                    None => fault,
                })
            }
        }
    }
}

/// Writes much at once, but lets nothing lie for long while there is more to write.
struct Prompt {
    out: BufWriter<File>,
    flushed: Instant,
}

impl Prompt {
    fn new(file: File) -> Self {
        Prompt { out: BufWriter::with_capacity(BUFFER, file), flushed: Instant::now() }
    }
}

impl Write for Prompt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_written = self.out.write(bytes)?;
        // Events are written in many pieces, and the clock need not be asked for each.
        if bytes.contains(&b'\n') && self.flushed.elapsed() >= PROMPTNESS {
            self.flush()?;
        }
        Ok(n_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushed = Instant::now();
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_old_is_written_with_the_next_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut prompt = Prompt::new(File::create(&path).unwrap());
        prompt.write_all(b"[\n1").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        prompt.flushed = Instant::now().checked_sub(PROMPTNESS).unwrap();
        prompt.write_all(b",\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"[\n1,\n");
    }
}
