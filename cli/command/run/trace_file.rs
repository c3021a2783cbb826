//! `--trace`: the file that a run's trace goes to.
//!
//! A trace is worth most after a run that went wrong, so it gets its name after every run that ended by itself, however
//! that was. Of a run that was killed there is what was written, under the temporary name: viewers need no closing
//! bracket.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::node::Fault;
use engine::runtime::{Report, Trace};

use super::output_file::OutputFile;
use crate::failure::Failure;

/// What is younger than this may be missing from the trace of a run that was killed.
const PROMPTNESS: Duration = Duration::from_millis(250);
/// Bytes that are written at once, about.
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

/// Writes many lines at once, but lets none lie for long while there are more; what is in the file ends with a line, so
/// that a trace can be read at any time.
struct Prompt {
    file: File,
    pending: Vec<u8>,
    written: Instant,
}

impl Prompt {
    fn new(file: File) -> Self {
        Prompt { file, pending: Vec::with_capacity(BUFFER), written: Instant::now() }
    }

    fn write_out(&mut self, len: usize) -> io::Result<()> {
        self.written = Instant::now();
        self.file.write_all(&self.pending[..len])?;
        self.pending.drain(..len);
        Ok(())
    }
}

impl Write for Prompt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        // Events are written in many pieces, and the clock need not be asked for each.
        let Some(after_line) = bytes.iter().rposition(|&byte| byte == b'\n') else { return Ok(bytes.len()) };
        if self.pending.len() >= BUFFER || self.written.elapsed() >= PROMPTNESS {
            self.write_out(self.pending.len() - bytes.len() + after_line + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_out(self.pending.len())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_are_written_whole_when_they_are_many_or_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut prompt = Prompt::new(File::create(&path).unwrap());
        // As if it were from the future: nothing is old.
        prompt.written += Duration::from_secs(3_600);
        prompt.write_all(b"[\n1").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        prompt.written = Instant::now().checked_sub(PROMPTNESS).unwrap();
        prompt.write_all(b"2,\n3").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"[\n12,\n");
        prompt.written += Duration::from_secs(3_600);
        let long = vec![b'4'; BUFFER];
        prompt.write_all(&long).unwrap();
        prompt.write_all(b",\n5").unwrap();
        assert_eq!(fs::read(&path).unwrap(), [b"[\n12,\n3", &long[..], b",\n"].concat());
        prompt.flush().unwrap();
        assert!(fs::read(&path).unwrap().ends_with(b",\n5"));
    }
}
