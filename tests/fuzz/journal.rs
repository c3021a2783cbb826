//! What a run finds on disk of the run before it: its journal, its listing, its stamps, what it was decoding, its slice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::config::Document;
use engine::durable::{Lines, Log};
use engine::graph::Graph;
use engine::journal::{Flight, History, Journal, Listing, Opened, Slice, Stamps, Start, StateFolder, suspects};
use engine::node::Registry;

use crate::mutate::Random;
use crate::sums::crc32;
use crate::target::{Check, Target};
use crate::unpacking::Scratch;

pub const TARGET: Target =
    Target { name: "journal", n_cases: 3_000, max_memory: 64 << 20, seeds: &[], made, dress, prepare };

const PIPELINE: &str = "
name: damaged
nodes:
  rows: {kind: source.synthetic, with: {rows: {count: 400}}}
  out: {kind: sink.jsonl, with: {path: out.jsonl}}
";

fn prepare() -> Check {
    let scratch = Scratch::new();
    let file = scratch.write("p.yaml", PIPELINE.as_bytes());
    let registry: Registry = nodes::registry();
    let document = Document::read(&file, &[], &|_| None, &registry).expect("a pipeline");
    let graph = Graph::compile(&document, &registry).expect("a graph");
    let folder = StateFolder::of(&graph, None);
    Box::new(move |input| {
        let _ = fs::remove_dir_all(folder.path());
        folder.create().expect("a folder");
        lines(input, &folder.journal());
        let put = |path: PathBuf| {
            fs::write(&path, input).expect("a file");
            path
        };
        listing(&put(folder.listing(0)));
        let stamps = Stamps::read(&put(folder.stamps(0))).expect("it can be read");
        assert_eq!(stamps.len(), input.len() / 4);
        let in_flight = Flight::read(&put(folder.flight()));
        assert!(in_flight.len() <= input.len());
        let _ = Slice::read(&put(folder.slice(0)));
        if let Ok(Some(history)) = Lines::read(&folder.journal()).and_then(|lines| History::of(&lines)) {
            let suspects = suspects(&history, &in_flight);
            assert!(suspects.len() <= input.len());
            history.last_cut();
        }
        opened(&graph);
    })
}

/// A log that was opened has what was whole in it, and nothing behind that.
fn lines(input: &[u8], path: &Path) {
    fs::write(path, input).expect("a file");
    let read = Lines::read(path).expect("it can be read");
    assert_eq!(read.n_bytes + read.n_torn, input.len() as u64);
    let (log, opened) = Log::open(path).expect("it can be opened");
    drop(log);
    assert_eq!(opened, read);
    assert_eq!(fs::read(path).expect("it is there"), input[..read.n_bytes as usize]);
    let again = Lines::read(path).expect("it can be read");
    assert_eq!((again.lines, again.n_torn), (read.lines, 0));
}

/// A listing that was opened gives what is whole in it, without an error, and the same again.
fn listing(path: &Path) {
    let items = |path: &Path| {
        let listing = Listing::open(path).expect("it can be opened");
        let items = listing.items().expect("it can be read");
        items.collect::<Result<Vec<_>, _>>().unwrap_or_else(|fault| panic!("what is whole cannot be read: {fault}"))
    };
    let first = items(path);
    let n_bytes = fs::metadata(path).expect("it is there").len();
    assert_eq!(items(path), first);
    assert_eq!(fs::metadata(path).expect("it is there").len(), n_bytes, "cut twice");
}

/// A run is begun, gone on with, or refused with words.
fn opened(graph: &Graph) {
    match Journal::open(graph, None, Start::Resume, "fuzz") {
        Ok(Opened::Ready(journal)) => {
            let _ = (journal.from(), journal.closed("out"), journal.note());
        }
        Ok(Opened::Finished(finished)) => assert!(finished.sealed.outputs.len() < 1 << 16),
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}

/// Makes the sums of lines right.
fn dress(random: &mut Random, input: Vec<u8>) -> Vec<u8> {
    if input.starts_with(&[0x1f, 0x8b]) || random.one_in(6) {
        return input;
    }
    let mut dressed = Vec::with_capacity(input.len());
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        match line.split_at_checked(9) {
            Some((sum, text)) if sum[8] == b' ' && text.ends_with(b"\n") => {
                dressed.extend_from_slice(format!("{:08x} ", crc32(&text[..text.len() - 1])).as_bytes());
                dressed.extend_from_slice(text);
            }
            _ => dressed.extend_from_slice(line),
        }
    }
    dressed
}

/// What runs leave behind that were stopped, and one that was not.
fn made() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for args in [&["--limit", "100"][..], &[]] {
        let folder = Scratch::new();
        folder.write("p.yaml", PIPELINE.as_bytes());
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgpu"));
        let ended = command.args(["run", "p.yaml"]).args(args).current_dir(folder.path()).output().expect("it starts");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let state = fs::read_dir(folder.path().join(".flowgpu/damaged")).expect("a state");
        let mut paths: Vec<_> =
            state.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()).collect();
        paths.sort();
        files.extend(paths.iter().map(|path| fs::read(path).expect("a file")));
    }
    let folder = Scratch::new();
    let flight = Flight::create(&folder.path().join("in-flight"), &["pixels", "small"], 3).expect("a file");
    let slot = flight.enter(1).expect("a slot");
    slot.note(engine::data::RowPos::new(0, 7));
    files.push(fs::read(folder.path().join("in-flight")).expect("a file"));
    files
}
