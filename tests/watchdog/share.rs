//! A share that hangs: a file system of this test's own, by FUSE, that does not answer.
//!
//! Root alone may mount it; where that cannot be done, the test says so and is done.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;

use crate::program::Folder;

// The protocol's numbers: linux/fuse.h.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;
const NOSYS: i32 = -38;
const NOENT: i32 = -2;

const DIR: u32 = 0o040_755;
const REGULAR: u32 = 0o100_644;
const CONTENT: &[u8] = b"not much";

/// What is not answered until the share is let go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hung {
    /// Reading the file `b.txt`.
    Read,
    /// Listing.
    List,
}

/// A mounted share with the files `a.txt` and `b.txt`.
struct Share {
    path: std::path::PathBuf,
    thread: Option<JoinHandle<()>>,
    go: Arc<AtomicBool>,
}

impl Share {
    /// `None` if this machine does not let one mount.
    fn mount(folder: &Folder, hung: Hung) -> Option<Share> {
        let path = folder.path("share");
        std::fs::create_dir(&path).expect("a folder");
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").ok()?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        let options = std::ffi::CString::new(options).expect("no zeros");
        mount("test", &path, "fuse.test", MountFlags::empty(), Some(options.as_c_str())).ok()?;
        let go = Arc::new(AtomicBool::new(false));
        let serve = {
            let go = go.clone();
            move || serve(&device, hung, &go)
        };
        Some(Share { path, thread: Some(std::thread::spawn(serve)), go })
    }

    /// It answers from now on.
    fn let_go(&self) {
        self.go.store(true, Ordering::Release);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.let_go();
        // Whoever still waits for an answer gets an error, and the server's reads end.
        unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::FORCE).expect("it is mounted");
        if let Some(thread) = self.thread.take() {
            // A panic of it has failed the test already.
            let _ = thread.join();
        }
    }
}

/// A request that waits for its answer.
struct Kept {
    unique: u64,
    answer: Vec<u8>,
}

fn serve(mut device: &File, hung: Hung, go: &AtomicBool) {
    let mut kept: Vec<Kept> = Vec::new();
    let mut request = vec![0; 1 << 17];
    loop {
        // A short wait, so that what is kept is given as soon as it may be.
        let mut poll = [rustix::event::PollFd::new(&device, rustix::event::PollFlags::IN)];
        let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let ready = rustix::event::poll(&mut poll, Some(&wait)).unwrap_or(0);
        if go.load(Ordering::Acquire) {
            for Kept { unique, answer } in kept.drain(..) {
                reply(device, unique, 0, &answer);
            }
        }
        if ready == 0 {
            continue;
        }
        let Ok(n_bytes) = device.read(&mut request) else { return };
        let request = &request[..n_bytes];
        let word = |at: usize| u32::from_le_bytes(request[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().expect("eight bytes"));
        let (operation, unique, node) = (word(4), long(8), long(16));
        let body = &request[40..];
        let (error, answer) = match operation {
            INIT => (0, init(word(44))),
            LOOKUP => lookup(body),
            GETATTR => (0, [&[0; 16][..], &attributes(node)].concat()),
            OPEN | OPENDIR => (0, vec![0; 16]),
            READ => (0, CONTENT.get(long(48) as usize..).unwrap_or_default().to_vec()),
            READDIR => (0, if long(48) == 0 { entries() } else { Vec::new() }),
            RELEASE | RELEASEDIR | FLUSH => (0, Vec::new()),
            FORGET | BATCH_FORGET | INTERRUPT => continue,
            _ => (NOSYS, Vec::new()),
        };
        let is_hung = match hung {
            Hung::Read => operation == READ && node == 3,
            Hung::List => operation == READDIR,
        };
        if is_hung && !go.load(Ordering::Acquire) {
            kept.push(Kept { unique, answer });
        } else {
            reply(device, unique, error, &answer);
        }
    }
}

fn reply(mut device: &File, unique: u64, error: i32, answer: &[u8]) {
    let length = 16 + answer.len() as u32;
    let head = [&length.to_le_bytes()[..], &error.to_le_bytes(), &unique.to_le_bytes()].concat();
    // Whoever asked may have been killed.
    let _ = device.write(&[&head, answer].concat());
}

/// Version 7.31, and no options.
fn init(readahead: u32) -> Vec<u8> {
    let mut answer = Vec::new();
    [7u32, 31, readahead, 0].iter().for_each(|word| answer.extend(word.to_le_bytes()));
    answer.extend([0u16, 0].map(u16::to_le_bytes).concat());
    [4096u32, 1].iter().for_each(|word| answer.extend(word.to_le_bytes()));
    answer.resize(64, 0);
    answer
}

/// Node 1 is the folder, 2 and 3 are the files.
fn attributes(node: u64) -> Vec<u8> {
    let (size, mode) = if node == 1 { (0, DIR) } else { (CONTENT.len() as u64, REGULAR) };
    let mut attributes = Vec::new();
    [node, size, 1, 0, 0, 0].iter().for_each(|long| attributes.extend(long.to_le_bytes()));
    [0u32, 0, 0, mode, 1, 0, 0, 0, 4096, 0].iter().for_each(|word| attributes.extend(word.to_le_bytes()));
    attributes
}

fn lookup(name: &[u8]) -> (i32, Vec<u8>) {
    let node: u64 = match name {
        b"a.txt\0" => 2,
        b"b.txt\0" => 3,
        _ => return (NOENT, Vec::new()),
    };
    (0, [&node.to_le_bytes()[..], &[0; 32], &attributes(node)].concat())
}

fn entries() -> Vec<u8> {
    let mut entries = Vec::new();
    for (node, name) in [(2u64, b"a.txt"), (3, b"b.txt")] {
        entries.extend(node.to_le_bytes());
        entries.extend((node - 1).to_le_bytes());
        entries.extend((name.len() as u32).to_le_bytes());
        entries.extend(8u32.to_le_bytes());
        entries.extend(name);
        entries.resize(entries.len().next_multiple_of(8), 0);
    }
    entries
}

fn on_share(hung: Hung) -> Option<(Folder, Share)> {
    let folder = Folder::new();
    folder.write(
        "p.yaml",
        "name: p\nrun: {stall: 150ms, threads: {io: 3}}\nnodes:
  files: {kind: source.files, with: {path: \"share/*.txt\"}}
  out: {kind: sink.jsonl, with: {path: out.jsonl, columns: [uri]}}\n",
    );
    let share = Share::mount(&folder, hung);
    Some((folder, share?))
}

#[expect(clippy::print_stdout, reason = "a test that cannot be made says so")]
fn no_share() {
    println!("this machine does not let a test mount a file system by FUSE");
}

#[test]
fn a_file_on_a_share_that_hangs_is_named_with_the_share() {
    let Some((folder, share)) = on_share(Hung::Read) else { return no_share() };
    let mut run = folder.start(&["run", "p.yaml"]);
    let line = run.line_with("no progress");
    let told = "p: `files` has made no progress for 0 s: reading `share/b.txt` (1 of 3 threads); it lies on `";
    assert!(line.starts_with(told) && line.contains("/share` (fuse.test)"), "{line}");
    // It ends nothing.
    run.line_with("no progress");
    share.let_go();
    let done = run.end();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.read("out.jsonl"), "{\"uri\":\"share/a.txt\"}\n{\"uri\":\"share/b.txt\"}\n");
}

#[test]
fn a_folder_on_a_share_that_hangs_is_named() {
    let Some((folder, share)) = on_share(Hung::List) else { return no_share() };
    let mut run = folder.start(&["run", "p.yaml"]);
    let line = run.line_with("no progress");
    assert!(line.starts_with("p: `files` has made no progress for 0 s: "), "{line}");
    share.let_go();
    let done = run.end();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.rows("out.jsonl").len(), 2);
}

#[test]
fn two_signals_end_a_run_whose_share_hangs() {
    let Some((folder, share)) = on_share(Hung::Read) else { return no_share() };
    let mut run = folder.start(&["run", "p.yaml"]);
    run.line_with("no progress");
    run.signal(Signal::INT);
    run.line_with("stopping");
    run.signal(Signal::INT);
    // Without that the kernel keeps the process until the read is answered or given up.
    drop(share);
    let done = run.end();
    assert_eq!(done.code, 130, "{done:?}");
}
