//! An output that has its final name only when it is complete.
//!
//! Until then it lies beside it under one rule for all sinks: `out/labels.jsonl` is written as `out/.labels.jsonl.partial`.
//! Publishing makes it durable, renames it, and makes the folder durable; what was there before stays until then.
//! Standard output, pipes and devices have no temporary name: they are written straight away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use engine::node::{Fault, Published};

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// The path that stands for standard output.
pub(super) const STDOUT: &str = "-";

/// An unfinished output.
pub(super) struct Partial {
    /// The path as the user wrote it.
    shown: String,
    target: Target,
    buffer: Vec<u8>,
    /// Bytes that were handed to the system.
    n_written: u64,
    state: State,
}

enum Target {
    File {
        file: File,
        partial: PathBuf,
        path: PathBuf,
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
    pub(super) fn open(shown: &str, path: &Path) -> Result<Self, Fault> {
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
        // A link to a file keeps being a link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(name) = path.file_name() else {
            return Err(Fault::permanent(format!("cannot write `{shown}`: it is no file name")));
        };
        let mut partial_name = std::ffi::OsString::from(".");
        partial_name.push(name);
        partial_name.push(".partial");
        let partial = path.with_file_name(partial_name);
        let folder = folder_of(&path);
        fs::create_dir_all(folder).map_err(|error| Fault::io("create the folder", folder, &error))?;
        let earlier = if partial.exists() { Earlier::Kept } else { Earlier::None };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&partial);
        let file = file.map_err(|error| Fault::io("create", &partial, &error))?;
        Ok(Partial::new(shown, Target::File { file, partial, path }, State::Opened(earlier)))
    }

    fn new(shown: &str, target: Target, state: State) -> Self {
        Partial { shown: shown.to_owned(), target, buffer: Vec::new(), n_written: 0, state }
    }

    /// Where the next bytes go; they are written by [`Partial::spill`] and the like.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// All bytes so far, written or not.
    pub(super) fn n_bytes(&self) -> u64 {
        self.n_written + self.buffer.len() as u64
    }

    /// Writes the buffer if it is large.
    pub(super) fn spill(&mut self) -> Result<(), Fault> {
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends a batch of rows: whoever reads a pipe wants them now.
    pub(super) fn end_batch(&mut self) -> Result<(), Fault> {
        match self.target {
            Target::File { .. } => self.spill(),
            Target::Direct { .. } | Target::Stdout(_) => self.flush(),
        }
    }

    /// Makes all bytes durable and returns how many they are.
    pub(super) fn sync(&mut self) -> Result<u64, Fault> {
        self.begin()?;
        self.flush()?;
        if let Target::File { file, .. } = &self.target {
            file.sync_data().map_err(|error| self.fault("sync", &error))?;
        }
        Ok(self.n_written)
    }

    /// Goes back to the first `n_bytes` bytes of what an earlier run, or this one, wrote.
    pub(super) fn resume(&mut self, n_bytes: u64) -> Result<(), Fault> {
        self.buffer.clear();
        let Target::File { file, partial, .. } = &mut self.target else {
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
        let cut = file.set_len(n_bytes).and_then(|()| file.seek(SeekFrom::Start(n_bytes)));
        cut.map_err(|error| Fault::io("go on with", partial, &error))?;
        self.n_written = n_bytes;
        self.state = State::Begun;
        Ok(())
    }

    /// Writes over bytes that are there already.
    pub(super) fn overwrite(&mut self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.flush()?;
        match &self.target {
            Target::File { file, .. } | Target::Direct { file, .. } => {
                file.write_all_at(bytes, at).map_err(|error| self.fault("write", &error))
            }
            Target::Stdout(_) => unreachable!("only files are written over"),
        }
    }

    /// Makes the output durable and gives it its final name.
    pub(super) fn publish(mut self, n_rows: u64) -> Result<Published, Fault> {
        let n_bytes = self.sync()?;
        if let Target::File { file, partial, path } = &self.target {
            file.sync_all().map_err(|error| self.fault("sync", &error))?;
            fs::rename(partial, path).map_err(|error| Fault::io("rename the finished output to", path, &error))?;
            let folder = folder_of(path);
            let synced = File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|error| Fault::io("sync the folder", folder, &error))?;
        }
        Ok(Published { path: self.shown.clone(), rows: n_rows, bytes: n_bytes })
    }

    /// Where the unfinished output lies.
    pub(super) fn unfinished(&self) -> Option<PathBuf> {
        match &self.target {
            Target::File { partial, .. } => Some(partial.clone()),
            Target::Direct { .. } | Target::Stdout(_) => None,
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.begin()?;
        let written = match &mut self.target {
            Target::File { file, .. } | Target::Direct { file, .. } => file.write_all(&self.buffer),
            Target::Stdout(stdout) => stdout.write_all(&self.buffer).and_then(|()| stdout.flush()),
        };
        written.map_err(|error| self.fault("write", &error))?;
        self.n_written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Takes away what an earlier run left, unless it is gone on with.
    fn begin(&mut self) -> Result<(), Fault> {
        if let (State::Opened(_), Target::File { file, .. }) = (self.state, &self.target) {
            file.set_len(0).map_err(|error| self.fault("write", &error))?;
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

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use engine::node::FaultKind;

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
        out.publish(1).unwrap();
        assert_eq!(fs::read(folder.path().join("o.txt")).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["o.txt"]);
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
        out.resume(4).unwrap();
        out.buffer().extend_from_slice(b"x");
        assert_eq!(out.sync().unwrap(), 5);
        assert_eq!(fs::read(&left).unwrap(), b"0123x");
        let fault = open(folder.path(), "o.txt").resume(6).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Permanent);
        assert!(fault.message.contains("has 5 bytes, and 6 were written"), "{fault}");
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
        assert_eq!(out.publish(1).unwrap(), Published { path: "-".to_owned(), rows: 1, bytes: 4 });
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
        out.publish(1).unwrap();
        assert!(folder.path().join("link.txt").is_symlink());
        assert_eq!(fs::read(folder.path().join("other/real.txt")).unwrap(), b"new");
    }
}
