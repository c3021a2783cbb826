//! Sources whose items hold many rows: one thread opens what was listed, others read ahead, rows go on in order.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::board::{Described, Holding, Lane};
use super::exit::{Exit, Step};
use super::parallel::Chunk;
use super::progress::Listed;
use super::queue::{Receiver, Sender, queue};
use super::shared::Me;
use super::source::Items;
use crate::data::{Reject, RejectRow, RowPos, code};
use crate::graph::render::figures::grouped;
use crate::node::{Entry, Fault, Item, Stamp, Unpack};

/// Rows of a chunk at most.
const CHUNK_ROWS: usize = 256;
/// Bytes from which on a chunk is passed on.
const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks and bytes that are read ahead of an item at most.
const AHEAD: (usize, usize) = (8, 16 << 20);

/// An item that holds rows, with its number for the source.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) number: u64,
    pub(super) item: Item,
}

/// Rows of one item, one after the other.
pub(super) struct Unpacked {
    pub(super) container: Arc<Container>,
    pub(super) first: RowPos,
    pub(super) entries: Vec<Entry>,
    /// Whether the item has no more.
    is_last: bool,
}

impl Chunk for Unpacked {
    fn n_rows(&self) -> usize {
        self.entries.len()
    }

    fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes as usize).sum()
    }

    fn upto(&self, row_idx: usize) -> RowPos {
        if self.is_last && row_idx == self.entries.len() {
            return RowPos::new(self.first.source, self.first.index + 1);
        }
        RowPos { sub: self.first.sub + row_idx as u32, ..self.first }
    }

    fn take_rejects(&mut self) -> Vec<Arc<RejectRow>> {
        Vec::new()
    }
}

/// Opens items until there are no more, the limit is reached, or it is asked to stop.
pub(super) struct Unpacker {
    pub(super) me: Me,
    pub(super) unpack: Arc<dyn Unpack>,
    pub(super) input: Receiver<Items>,
    pub(super) output: Sender<Unpacked>,
    /// The first row, and how many there are before it.
    pub(super) start: RowPos,
    pub(super) n_before: u64,
    /// Rows after which it stops, those before the start among them.
    pub(super) limit: u64,
    /// What is added to an index for the source's own: in a shard it is not the same.
    pub(super) offset: u64,
}

/// What a thread that reads an item passes on.
enum Read {
    Opened(Stamp),
    Rows(Vec<Entry>),
}

/// An item that is being read.
struct Open {
    container: Arc<Container>,
    pos: RowPos,
    read: Receiver<Read>,
}

/// Items that were listed and not opened yet.
struct Listing {
    input: Receiver<Items>,
    listed: VecDeque<(RowPos, Item)>,
    is_ended: bool,
}

impl Unpacker {
    /// Runs until all rows have been passed on.
    pub(super) fn run(self) -> Exit {
        let shared = self.me.shared.clone();
        match self.drive() {
            Ok(()) => Exit::Finished,
            // What reads the rows has stopped before.
            Err(Exit::DownstreamClosed) if shared.cancel.is_draining() => Exit::Finished,
            Err(exit) => exit,
        }
    }

    fn drive(self) -> Step {
        let Unpacker { me, unpack, input, output, start, n_before, limit, offset } = self;
        let mut work = Work {
            lane: me.lane(unpack.n_open() + 1),
            me: me.clone(),
            unpack,
            output,
            start,
            rows: n_before,
            limit,
            offset,
            open: VecDeque::new(),
        };
        let mut listing = Listing { input, listed: VecDeque::new(), is_ended: false };
        let how = work.all(&mut listing)?;
        let shared = &me.shared;
        let number = start.source as usize;
        let mut notes = shared.progress.source(number);
        notes.unpacked = how;
        // Where the listing itself was stopped, nobody knows how many rows there would have been.
        if how == Some(Listed::Limit) || (how.is_none() && notes.listed == Some(Listed::All)) {
            shared.stats.totals[number].store(work.rows, Ordering::Relaxed);
        }
        drop(notes);
        work.output.end().map_err(|_| Exit::DownstreamClosed)
    }
}

struct Work {
    me: Me,
    lane: Arc<Lane>,
    unpack: Arc<dyn Unpack>,
    output: Sender<Unpacked>,
    start: RowPos,
    /// Rows passed on so far.
    rows: u64,
    limit: u64,
    offset: u64,
    open: VecDeque<Open>,
}

impl Work {
    /// How it ended, if not with the last item.
    fn all(&mut self, listing: &mut Listing) -> Result<Option<Listed>, Exit> {
        loop {
            self.me.shared.check()?;
            if self.rows >= self.limit {
                return Ok(Some(Listed::Limit));
            }
            if self.me.shared.cancel.is_draining() {
                return Ok(Some(Listed::Stopped));
            }
            while self.open.len() < self.unpack.n_open().max(1) {
                // With something open, what was not listed yet is not waited for.
                let Some((pos, item)) = listing.next(self.open.is_empty())? else { break };
                // An earlier run may have stopped within the first.
                self.open(pos.max(self.start), item)?;
            }
            let Some(open) = self.open.pop_front() else { return Ok(None) };
            if let Some(how) = self.pass_on(open)? {
                return Ok(Some(how));
            }
        }
    }

    /// Starts to read an item.
    fn open(&mut self, pos: RowPos, item: Item) -> Step {
        let container = Arc::new(Container { number: pos.index + self.offset, item });
        let (sender, read) = queue(AHEAD.0, AHEAD.1);
        let (unpack, lane) = (self.unpack.clone(), self.lane.clone());
        let reading = Arc::new(Reading { container: container.clone(), me: self.me.clone(), rows: AtomicU64::new(0) });
        let read_all = move || {
            // Nobody takes any more: the run ends, or a limit was reached.
            let _ = read_all(&*unpack, &reading, &lane, pos.sub, &sender).and_then(|()| sender.end().map_err(drop));
        };
        let thread = std::thread::Builder::new().name(format!("{}/unpack", self.me.node().name)).spawn(read_all);
        thread.map_err(|error| Exit::Faulted(Fault::transient(format!("cannot start a thread: {error}"))))?;
        self.open.push_back(Open { container, pos, read });
        Ok(())
    }

    /// Passes on the rows of an item.
    fn pass_on(&mut self, Open { container, mut pos, read }: Open) -> Result<Option<Listed>, Exit> {
        let shared = self.me.shared.clone();
        loop {
            shared.check()?;
            let packet = read.channel().recv().map_err(|_| Exit::Cancelled)?;
            let mut entries = match read.took(packet) {
                Some(Read::Opened(stamp)) => {
                    shared.progress.stamp(self.start.source, &[stamp]);
                    continue;
                }
                Some(Read::Rows(entries)) => entries,
                None => {
                    self.note_rows_before(pos.index + 1, self.rows);
                    self.send(Unpacked { container, first: pos, entries: Vec::new(), is_last: true })?;
                    return Ok(None);
                }
            };
            entries.truncate(usize::try_from(self.limit - self.rows).unwrap_or(usize::MAX));
            self.rows += entries.len() as u64;
            shared.stats.listed[self.start.source as usize].store(self.rows, Ordering::Relaxed);
            let sub = u32::try_from(entries.len()).ok().and_then(|n_rows| pos.sub.checked_add(n_rows));
            self.send(Unpacked { container: container.clone(), first: pos, entries, is_last: false })?;
            pos.sub = sub.ok_or_else(|| {
                let message =
                    format!("`{}` has more rows than can be numbered, which are {}", container.item.uri, u32::MAX);
                Exit::Faulted(Fault::permanent(message))
            })?;
            if self.rows >= self.limit {
                return Ok(Some(Listed::Limit));
            }
            if shared.cancel.is_draining() {
                return Ok(Some(Listed::Stopped));
            }
        }
    }

    fn send(&self, rows: Unpacked) -> Step {
        let bytes = rows.bytes() + rows.entries.len() * size_of::<Entry>();
        self.output.send(rows, bytes).map_err(|_| Exit::DownstreamClosed)
    }

    fn note_rows_before(&self, item: u64, rows: u64) {
        let mut notes = self.me.shared.progress.source(self.start.source as usize);
        notes.rows_before.get_or_insert_default().insert(item, rows);
    }
}

impl Listing {
    /// The next item, if there is one; it is waited for if `waits`.
    fn next(&mut self, waits: bool) -> Result<Option<(RowPos, Item)>, Exit> {
        while self.listed.is_empty() && !self.is_ended {
            let packet = if waits {
                self.input.channel().recv().map_err(|_| Exit::Cancelled)?
            } else {
                let Ok(packet) = self.input.channel().try_recv() else { return Ok(None) };
                packet
            };
            match self.input.took(packet) {
                Some(items) => self.listed.extend(items.into_positioned()),
                None => self.is_ended = true,
            }
        }
        Ok(self.listed.pop_front())
    }
}

/// Reads an item from its row `skip` on to its end. What is held is noted only while it is read, not while it waits to be
/// taken.
fn read_all(
    unpack: &dyn Unpack,
    reading: &Arc<Reading>,
    lane: &Arc<Lane>,
    skip: u32,
    sender: &Sender<Read>,
) -> Result<(), ()> {
    let Container { number, item } = &*reading.container;
    let bad = |reject: Reject| Entry { uri: item.uri.clone(), id: item.id.clone(), bytes: 0, content: Err(reject) };
    let hold = lane.hold(reading.clone());
    let opened = caught(|| unpack.open(*number, item, skip));
    drop(hold);
    let mut opened = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(reject)) | Err(reject) => {
            sender.send(Read::Opened(unpack.stamp(item)), 0).map_err(drop)?;
            return sender.send(Read::Rows(vec![bad(reject)]), 0).map_err(drop);
        }
    };
    sender.send(Read::Opened(opened.stamp()), 0).map_err(drop)?;
    let (mut wanted, mut is_end) = (1, false);
    while !is_end {
        let hold = lane.hold(reading.clone());
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while !is_end && entries.len() < wanted && bytes < CHUNK_BYTES {
            let entry = match caught(|| opened.next_entry()) {
                Ok(Some(entry)) => entry,
                Ok(None) => {
                    is_end = true;
                    break;
                }
                Err(reject) => {
                    is_end = true;
                    bad(reject)
                }
            };
            bytes += entry.bytes;
            entries.push(entry);
            reading.rows.fetch_add(1, Ordering::Relaxed);
        }
        drop(hold);
        if !entries.is_empty() {
            sender.send(Read::Rows(entries), bytes as usize).map_err(drop)?;
        }
        // The first rows at once, so that work begins.
        wanted = (wanted * 4).min(CHUNK_ROWS);
    }
    Ok(())
}

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Reject> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        Reject::new(code::PANIC, format!("reading this panicked: {}", crate::worker::panic_text(&*panic)))
    })
}

/// An item that a thread reads, for whoever watches.
struct Reading {
    container: Arc<Container>,
    me: Me,
    rows: AtomicU64,
}

impl Holding for Reading {
    fn progress(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    fn describe(&self) -> Described {
        let item = &self.container.item;
        let rows = grouped(self.rows.load(Ordering::Relaxed));
        Described::new(format!("reading `{}`, {rows} rows so far", item.uri)).at(self
            .me
            .shared
            .graph
            .base
            .join(&item.locator))
    }
}
