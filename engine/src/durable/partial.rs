//! An output that has its final name only when it is complete.
//!
//! Until then it lies beside it under one rule for all outputs: `out/labels.jsonl` is written as
//! `out/.labels.jsonl.partial`, which is locked as long as somebody writes to it. What was there before stays until
//! [`publish`] renames it. Standard output, pipes and devices have no temporary name: they are written straight away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk;
use super::lock::try_lock;
use crate::node::{Durable, Fault, Place, Sealed};

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// How long rows may be gathered while more come: whoever looks at the file that grows sees them then.
const GATHER: Duration = Duration::from_millis(100);

/// The path that stands for standard output.
pub const STDOUT: &str = "-";

/// An unfinished output.
pub struct Partial {
    /// The path as the user wrote it.
    shown: String,
    target: Target,
    buffer: Vec<u8>,
    /// Bytes that were handed to the system.
    n_written: u64,
    written_at: Option<Instant>,
    state: State,
}

enum Target {
    File {
        file: Arc<File>,
        partial: PathBuf,
    },
    /// A pipe or a device.
    Direct {
        file: File,
        path: PathBuf,
    },
    Stdout(Box<dyn Write + Send>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was written. An unfinished output of an earlier run may lie there, to be gone on with or overwritten.
    Opened(Earlier),
    Begun,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Earlier {
    None,
    Kept,
}

impl Partial {
    /// Opens the temporary file of `path`, called `shown` in messages, and makes the folders above it. Does not touch what
    /// an earlier run left in it.
    ///
    /// # Errors
    /// If it may not be written, or if another run writes to it.
    pub fn open(shown: &str, path: &Path) -> Result<Self, Fault> {
        if shown == STDOUT {
            return Ok(Partial::new(shown, Target::Stdout(Box::new(io::stdout())), State::Begun));
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(Fault::permanent(format!("cannot write `{shown}`: it is a folder")).help("add a file name"));
            }
            Ok(metadata) if !metadata.is_file() => {
                let file =
                    OpenOptions::new().write(true).open(path).map_err(|error| Fault::io("open", path, &error))?;
                return Ok(Partial::new(shown, Target::Direct { file, path: path.to_owned() }, State::Begun));
            }
            _ => {}
        }
        if path.file_name().is_none() {
            return Err(Fault::permanent(format!("cannot write `{shown}`: it is no file name")));
        }
        let partial = partial_path(path);
        let folder = disk::folder_of(&partial);
        fs::create_dir_all(folder).map_err(|error| Fault::io("create the folder", folder, &error))?;
        let earlier = if partial.exists() { Earlier::Kept } else { Earlier::None };
        let failed = |error: io::Error| Fault::io("create", &partial, &error);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&partial);
        let file = file.map_err(failed)?;
        if let Some(held) = try_lock(&file).map_err(failed)? {
            let who = held.pid.map_or("another run".to_owned(), |pid| format!("another run (pid {pid})"));
            return Err(Fault::transient(format!("{who} is writing `{shown}`"))
                .help("wait until it has ended, or write to another path"));
        }
        Ok(Partial::new(shown, Target::File { file: Arc::new(file), partial }, State::Opened(earlier)))
    }

    fn new(shown: &str, target: Target, state: State) -> Self {
        Partial { shown: shown.to_owned(), target, buffer: Vec::new(), n_written: 0, written_at: None, state }
    }

    /// Where the next bytes go; they are written by [`Partial::spill`] and the like.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// All bytes so far, written or not.
    pub fn n_bytes(&self) -> u64 {
        self.n_written + self.buffer.len() as u64
    }

    /// Writes the buffer if it is large.
    pub fn spill(&mut self) -> Result<(), Fault> {
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends a batch of rows: whoever reads a pipe wants them now, and the first ones are wanted everywhere.
    pub fn end_batch(&mut self) -> Result<(), Fault> {
        let is_file = matches!(self.target, Target::File { .. });
        if is_file && self.written_at.is_some_and(|at| at.elapsed() < GATHER) { self.spill() } else { self.flush() }
    }

    /// Makes all bytes durable and returns how many they are.
    ///
    /// # Errors
    /// A full disk and the like.
    pub fn sync(&mut self) -> Result<u64, Fault> {
        let (n_bytes, durable) = self.cut()?;
        durable()?;
        Ok(n_bytes)
    }

    /// Hands all bytes to the system and returns how many they are, and what makes them durable, on any thread.
    ///
    /// # Errors
    /// A full disk and the like.
    pub fn cut(&mut self) -> Result<(u64, Durable), Fault> {
        self.begin()?;
        self.flush()?;
        let durable: Durable = match &self.target {
            Target::File { file, partial } => {
                let (file, partial) = (file.clone(), partial.clone());
                Box::new(move || disk::sync(&file).map_err(|error| Fault::io("sync", &partial, &error)))
            }
            Target::Direct { .. } | Target::Stdout(_) => Box::new(|| Ok(())),
        };
        Ok((self.n_written, durable))
    }

    /// Goes back to the first `n_bytes` bytes of what an earlier run, or this one, wrote, and returns the bytes behind them
    /// that are given up.
    ///
    /// # Errors
    /// If there is less than that.
    pub fn resume(&mut self, n_bytes: u64) -> Result<u64, Fault> {
        self.buffer.clear();
        let Target::File { file, partial } = &mut self.target else {
            return Err(Fault::permanent(format!(
                "`{}` is no file, so what was written to it cannot be gone on with",
                self.shown
            )));
        };
        let found = file.metadata().map(|metadata| metadata.len());
        let found = found.map_err(|error| Fault::io("read", partial, &error))?;
        if found < n_bytes {
            let message = format!("`{}` has {found} bytes, and {n_bytes} were written to it", partial.display());
            return Err(Fault::permanent(message).help("start afresh with `--fresh`"));
        }
        let cut = disk::cut(file, n_bytes).and_then(|()| (&**file).seek(SeekFrom::Start(n_bytes)));
        cut.map_err(|error| Fault::io("go on with", partial, &error))?;
        self.n_written = n_bytes;
        self.state = State::Begun;
        Ok(found - n_bytes)
    }

    /// The file, to read back what was written; `None` for standard output, pipes and devices.
    pub fn file(&self) -> Option<&File> {
        match &self.target {
            Target::File { file, .. } => Some(file),
            Target::Direct { .. } | Target::Stdout(_) => None,
        }
    }

    /// Writes over bytes that are there already.
    pub fn overwrite(&mut self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.flush()?;
        let written = match &self.target {
            Target::File { file, .. } => file.write_all_at(bytes, at),
            Target::Direct { file, .. } => file.write_all_at(bytes, at),
            Target::Stdout(_) => return Err(Fault::bug("standard output cannot be written over")),
        };
        written.map_err(|error| self.fault("write", &error))
    }

    /// Makes the output durable: all that is left to do is to give it its name, see [`publish`].
    ///
    /// # Errors
    /// A full disk and the like.
    pub fn seal(mut self, n_rows: u64) -> Result<Sealed, Fault> {
        let bytes = self.sync()?;
        let place = match self.target {
            Target::File { .. } => Place::File,
            Target::Direct { .. } | Target::Stdout(_) => Place::Stream,
        };
        Ok(Sealed { path: self.shown.clone(), spooled: None, rows: n_rows, bytes, place })
    }

    /// Removes what an earlier run left.
    ///
    /// # Errors
    /// If it may not be removed.
    pub fn discard(self) -> Result<(), Fault> {
        let Some(partial) = self.unfinished() else { return Ok(()) };
        fs::remove_file(&partial).map_err(|error| Fault::io("remove", &partial, &error))
    }

    /// Where the unfinished output lies.
    pub fn unfinished(&self) -> Option<PathBuf> {
        match &self.target {
            Target::File { partial, .. } => Some(partial.clone()),
            Target::Direct { .. } | Target::Stdout(_) => None,
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.begin()?;
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = match &mut self.target {
            Target::File { file, .. } => disk::write_all(file, &self.buffer),
            Target::Direct { file, .. } => file.write_all(&self.buffer),
            Target::Stdout(stdout) => stdout.write_all(&self.buffer).and_then(|()| stdout.flush()),
        };
        written.map_err(|error| self.fault("write", &error))?;
        self.n_written += self.buffer.len() as u64;
        self.written_at = Some(Instant::now());
        self.buffer.clear();
        Ok(())
    }

    /// Takes away what an earlier run left, unless it is gone on with.
    fn begin(&mut self) -> Result<(), Fault> {
        if let (State::Opened(_), Target::File { file, .. }) = (self.state, &self.target) {
            disk::cut(file, 0).map_err(|error| self.fault("write", &error))?;
        }
        self.state = State::Begun;
        Ok(())
    }

    fn fault(&self, what: &str, error: &io::Error) -> Fault {
        let path = match &self.target {
            Target::File { partial, .. } => partial,
            Target::Direct { path, .. } => path,
            Target::Stdout(_) => Path::new("standard output"),
        };
        match error.kind() {
            ErrorKind::BrokenPipe => Fault::closed(&self.shown),
            _ => Fault::io(what, path, error),
        }
    }
}

/// A run that ends before it wrote anything leaves no empty file behind.
impl Drop for Partial {
    fn drop(&mut self) {
        if let (State::Opened(Earlier::None), Target::File { partial, .. }) = (self.state, &self.target) {
            // Nothing depends on it: an empty file that stays is overwritten by the next run.
            let _ = fs::remove_file(partial);
        }
    }
}

/// The temporary name of the output `path`: of the file behind it, if it is a link, so that it stays one.
pub fn partial_path(path: &Path) -> PathBuf {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".partial");
    path.with_file_name(name)
}

/// Gives sealed outputs their final names, relative to `base`. Those that have theirs already keep it, so that this can
/// be done again after it was interrupted.
///
/// # Errors
/// If an output is not there, or may not be renamed.
pub fn publish(base: &Path, sealed: &[Sealed]) -> Result<(), Fault> {
    for output in sealed.iter().filter(|output| output.place == Place::File) {
        let path = base.join(&output.path);
        let path = fs::canonicalize(&path).unwrap_or(path);
        let partial = partial_path(&path);
        if partial.exists() || !is_there(base, output) {
            disk::rename(&partial, &path).map_err(|error| Fault::io("rename the finished output to", &path, &error))?;
        }
        disk::sync_folder_of(&path).map_err(|error| Fault::io("sync the folder of", &path, &error))?;
    }
    Ok(())
}

/// Whether an output has its final name, and the length that it was sealed with.
pub fn is_there(base: &Path, output: &Sealed) -> bool {
    let metadata = fs::metadata(base.join(&output.path));
    output.place == Place::Stream || metadata.is_ok_and(|metadata| metadata.len() == output.bytes)
}

#[cfg(test)]
mod tests {
    use crate::node::FaultKind;

    use super::*;

    fn open(folder: &Path, name: &str) -> Partial {
        Partial::open(name, &folder.join(name)).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_older_output_stays_until_the_new_one_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("o.txt"), "old").unwrap();
        let mut out = open(folder.path(), "o.txt");
        out.buffer().extend_from_slice(b"new");
        out.sync().unwrap();
        assert_eq!(fs::read(folder.path().join("o.txt")).unwrap(), b"old");
        assert_eq!(fs::read(folder.path().join(".o.txt.partial")).unwrap(), b"new");
        assert_eq!(out.unfinished(), Some(folder.path().canonicalize().unwrap().join(".o.txt.partial")));
        let sealed = [out.seal(1).unwrap()];
        assert_eq!(fs::read(folder.path().join("o.txt")).unwrap(), b"old");
        for _ in 0..2 {
            publish(folder.path(), &sealed).unwrap();
            assert_eq!(fs::read(folder.path().join("o.txt")).unwrap(), b"new");
            assert_eq!(names(folder.path()), ["o.txt"]);
        }
    }

    #[test]
    fn what_an_earlier_run_left_is_kept_until_something_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(".o.txt.partial");
        fs::write(&left, "earlier").unwrap();
        drop(open(folder.path(), "o.txt"));
        assert_eq!(fs::read(&left).unwrap(), b"earlier");
        let mut out = open(folder.path(), "o.txt");
        out.buffer().extend_from_slice(b"x");
        out.sync().unwrap();
        assert_eq!(fs::read(&left).unwrap(), b"x");
    }

    #[test]
    fn a_run_that_wrote_nothing_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path(), "o.txt"));
        assert_eq!(names(folder.path()), [] as [&str; 0]);
    }

    #[test]
    fn resuming_cuts_back_and_refuses_what_is_too_short() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(".o.txt.partial");
        fs::write(&left, "0123456789").unwrap();
        let mut out = open(folder.path(), "o.txt");
        assert_eq!(out.resume(4).unwrap(), 6);
        out.buffer().extend_from_slice(b"x");
        assert_eq!(out.sync().unwrap(), 5);
        assert_eq!(fs::read(&left).unwrap(), b"0123x");
        drop(out);
        let fault = open(folder.path(), "o.txt").resume(6).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Permanent);
        assert!(fault.message.contains("has 5 bytes, and 6 were written"), "{fault}");
    }

    #[test]
    fn two_cannot_write_one_output() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path(), "o.txt");
        let fault = Partial::open("o.txt", &folder.path().join("o.txt")).map(|_| ()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Transient);
        assert_eq!(fault.message, format!("another run (pid {}) is writing `o.txt`", std::process::id()));
        drop(first);
        open(folder.path(), "o.txt");
    }

    #[test]
    fn a_full_disk_is_a_fault_that_says_so() {
        let mut out = Partial::open("/dev/full", Path::new("/dev/full")).unwrap();
        out.buffer().extend_from_slice(b"x");
        let fault = out.end_batch().unwrap_err();
        assert_eq!(fault.kind, FaultKind::Transient);
        assert_eq!(fault.message, "cannot write `/dev/full`: no space left on the device");
        assert!(fault.help.unwrap().contains("free some space"));
        assert_eq!(out.unfinished(), None);
    }

    #[test]
    fn a_reader_that_has_gone_is_a_quiet_end() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut out = Partial::new(STDOUT, Target::Stdout(Box::new(writer)), State::Begun);
        out.buffer().extend_from_slice(b"x");
        assert_eq!(out.end_batch().unwrap_err().kind, FaultKind::Closed);
    }

    #[test]
    fn a_pipe_gets_each_batch_at_once() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut out = Partial::new(STDOUT, Target::Stdout(Box::new(writer)), State::Begun);
        out.buffer().extend_from_slice(b"row\n");
        out.end_batch().unwrap();
        let mut row = [0; 4];
        io::Read::read_exact(&mut reader, &mut row).unwrap();
        assert_eq!(&row, b"row\n");
        let sealed = out.seal(1).unwrap();
        assert_eq!(sealed, Sealed { path: "-".to_owned(), spooled: None, rows: 1, bytes: 4, place: Place::Stream });
    }

    #[test]
    fn a_folder_that_may_not_be_written_is_a_fault_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().to_owned();
        // Only this thread becomes another user: the superuser may write everywhere.
        let opened = std::thread::spawn(move || {
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            } else {
                fs::set_permissions(&base, std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
            }
            Partial::open("o.txt", &base.join("o.txt")).map(|_| ())
        });
        let fault = opened.join().unwrap().unwrap_err();
        assert!(fault.message.contains("permission denied"), "{fault}");
        assert_eq!(fault.help.as_deref(), Some("choose a path that may be written"));
    }

    #[test]
    fn a_folder_is_no_output() {
        let folder = tempfile::tempdir().unwrap();
        let fault = Partial::open("o", folder.path()).map(|_| ()).unwrap_err();
        assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::Permanent, "cannot write `o`: it is a folder"));
    }

    #[test]
    fn a_link_to_a_file_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("other")).unwrap();
        fs::write(folder.path().join("other/real.txt"), "old").unwrap();
        std::os::unix::fs::symlink("other/real.txt", folder.path().join("link.txt")).unwrap();
        let mut out = open(folder.path(), "link.txt");
        out.buffer().extend_from_slice(b"new");
        publish(folder.path(), &[out.seal(1).unwrap()]).unwrap();
        assert!(folder.path().join("link.txt").is_symlink());
        assert_eq!(fs::read(folder.path().join("other/real.txt")).unwrap(), b"new");
    }
}
