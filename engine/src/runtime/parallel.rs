//! Work on many threads, with results in order: the stage behind sources and row maps.
//!
//! The input comes in chunks. A chunk is cut into grains that take long enough to be worth a hand-over and are small
//! enough to keep all threads at work; the size follows from what the rows before took, in time and in bytes. Grains
//! run on a pool, side by side; a slow one holds back only the emission of those behind it, not their work.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::{Receiver as Channel, Sender as ChannelSender, select, unbounded};

use super::board::{At, Described, Holding, Lane};
use super::exit::{Exit, Step};
use super::outlets::Outlets;
use super::pace::{Pace, Past};
use super::pools::Spawner;
use super::queue::{Packet, Receiver};
use super::shared::Me;
use super::stats::{NodeStats, nanos};
use super::window::Window;
use crate::data::{Batch, RejectRow, RowPos};
use crate::node::{Fault, Stamp};
use crate::schedule::Room;

/// What a stage does to a piece of its input.
pub(super) trait Task: Send + Sync + 'static {
    /// A chunk of input.
    type Input: Chunk;
    /// Works on the rows `range` of `input`, on a thread of the pool, and notes which of them it is `at`.
    fn run(&self, input: &Self::Input, range: Range<usize>, at: &At) -> Result<Grain, Fault>;
    /// What is done with row `row_idx` of `input`.
    fn describe(&self, input: &Self::Input, row_idx: usize) -> Described;
    /// Whether no further work is to be begun.
    fn is_stopped(&self) -> bool {
        false
    }
    /// A piece leaves, in order.
    fn leaves(&self, _grain: &Grain) {}
    /// All pieces have left; the last one's watermark, if there was one, and whether some of the input was left out.
    fn ends(&self, _upto: Option<RowPos>, _is_stopped: bool) {}
}

/// A chunk of input rows.
pub(super) trait Chunk: Send + Sync + 'static {
    fn n_rows(&self) -> usize;
    /// Bytes of all its rows; 0 if they are not known.
    fn bytes(&self) -> usize;
    /// The watermark when all its rows before `row_idx` are done and that row is not.
    fn upto(&self, row_idx: usize) -> RowPos;
    /// Rejects of nodes before, which travel along.
    fn take_rejects(&mut self) -> Vec<Arc<RejectRow>>;
}

/// What came of a piece.
#[derive(Default)]
pub(super) struct Grain {
    pub(super) batch: Option<Batch>,
    pub(super) rejects: Vec<Arc<RejectRow>>,
    /// What each item was when it was read; sources alone have them.
    pub(super) stamps: Vec<Stamp>,
}

struct Finished {
    grain: Grain,
    passed: Vec<Arc<RejectRow>>,
    upto: RowPos,
    bytes: usize,
}

/// One grain's end, as a thread of the pool reports it.
struct Report {
    number: u64,
    n_rows: usize,
    input_per_row: f64,
    nanos: u64,
    outcome: Result<Grain, Exit>,
}

/// A stage of parallel work.
pub(super) struct Parallel<T: Task> {
    pub(super) me: Me,
    pub(super) task: Arc<T>,
    pub(super) input: Receiver<T::Input>,
    pub(super) outlets: Outlets,
    pub(super) spawner: Spawner,
    pub(super) threads: usize,
    pub(super) room: Room,
    /// Whether waiting for input is this node's own work: a source waits for its listing.
    pub(super) waiting: Waiting,
}

/// What waiting for input counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// The node before is too slow.
    Starved,
    /// This node is at work.
    Work,
}

/// A grain that a thread works on.
struct UnderWay<T: Task> {
    task: Arc<T>,
    input: Arc<T::Input>,
    start: usize,
    at: At,
}

impl<T: Task> Holding for UnderWay<T> {
    fn progress(&self) -> u64 {
        self.at.get() as u64
    }

    fn describe(&self) -> Described {
        self.task.describe(&self.input, self.start + self.at.get())
    }
}

struct State<I> {
    lane: Arc<Lane>,
    window: Window<Finished>,
    /// Passed rejects and watermarks of grains that are under way, by number.
    pending: std::collections::HashMap<u64, (Vec<Arc<RejectRow>>, RowPos)>,
    /// Rows of those grains.
    rows_under_way: usize,
    /// Bytes of the grains that have ended and wait for others.
    bytes: usize,
    current: Option<Current<I>>,
    pace: Pace,
    ended: bool,
    upto: Option<RowPos>,
}

/// The chunk that grains are cut from.
struct Current<I> {
    input: Arc<I>,
    /// Its first row that is in no grain yet.
    start: usize,
    input_per_row: f64,
    passed: Vec<Arc<RejectRow>>,
}

impl<T: Task> Parallel<T> {
    /// Runs until the input ends.
    pub(super) fn run(mut self) -> Exit {
        match self.drive() {
            Ok(()) => self.outlets.end(),
            Err(exit) => exit,
        }
    }

    fn drive(&mut self) -> Step {
        let (reports, reported) = unbounded();
        let mut state = State {
            lane: self.me.lane(self.threads),
            window: Window::new(),
            pending: std::collections::HashMap::new(),
            rows_under_way: 0,
            bytes: 0,
            current: None,
            pace: Pace::default(),
            ended: false,
            upto: None,
        };
        let mut is_stopped = false;
        loop {
            self.me.shared.check()?;
            let has_more = !state.ended || state.current.is_some();
            if !is_stopped && has_more && self.task.is_stopped() {
                is_stopped = true;
                state.ended = true;
                state.current = None;
            }
            while let Ok(report) = reported.try_recv() {
                self.finish(&mut state, report)?;
            }
            if let Some(finished) = state.window.pop() {
                state.bytes -= finished.bytes;
                state.upto = Some(finished.upto);
                self.task.leaves(&finished.grain);
                self.outlets.emit(finished.grain.batch, finished.passed, finished.grain.rejects, finished.upto)?;
                continue;
            }
            if state.current.is_some() && self.has_room(&state) {
                self.dispatch(&mut state, &reports);
                continue;
            }
            if state.ended && state.current.is_none() && state.window.is_empty() {
                self.task.ends(state.upto, is_stopped);
                return Ok(());
            }
            self.wait(&mut state, &reported)?;
        }
    }

    /// A few grains always may be under way; more only when it is known what they will give.
    fn has_room(&self, state: &State<T::Input>) -> bool {
        let n_under_way = state.window.len();
        if n_under_way < self.room.at_once {
            return true;
        }
        let input_per_row = state.current.as_ref().map_or(0.0, |current| current.input_per_row);
        let bytes = state.bytes + state.pace.bytes_of(state.rows_under_way) + state.pace.grain_bytes(input_per_row);
        state.pace.is_known() && n_under_way < self.room.window && bytes <= self.room.window_bytes
    }

    /// Cuts the next grain off the current chunk and hands it to the pool.
    fn dispatch(&self, state: &mut State<T::Input>, reports: &ChannelSender<Report>) {
        let Some(Current { input, start, input_per_row, passed }) = state.current.take() else { return };
        let end = input.n_rows().min(start + state.pace.grain_rows(input_per_row));
        let upto = input.upto(end);
        let number = state.window.begin();
        state.rows_under_way += end - start;
        state.pending.insert(number, (passed, upto));
        if end < input.n_rows() {
            state.current = Some(Current { input: input.clone(), start: end, input_per_row, passed: Vec::new() });
        }
        let (task, reports, me, lane) = (self.task.clone(), reports.clone(), self.me.clone(), state.lane.clone());
        self.spawner.spawn(Box::new(move || {
            let started = Instant::now();
            let grain = Arc::new(UnderWay { task, input, start, at: At::default() });
            let hold = lane.hold(grain.clone());
            let work = || grain.task.run(&grain.input, start..end, &grain.at);
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let outcome = match caught {
                Ok(outcome) => outcome.map_err(Exit::Faulted),
                Err(panic) => Err(Exit::Panicked(crate::worker::panic_text(&*panic))),
            };
            drop((hold, grain));
            let nanos = nanos(started.elapsed());
            me.worked(started);
            // If the stage has ended over another fault, nobody waits for this.
            let _ = reports.send(Report { number, n_rows: end - start, input_per_row, nanos, outcome });
        }));
    }

    fn finish(&self, state: &mut State<T::Input>, report: Report) -> Step {
        let grain = report.outcome?;
        let (passed, upto) = state.pending.remove(&report.number).expect("each grain ends once");
        let bytes = grain.batch.as_ref().map_or(0, Batch::bytes);
        state.rows_under_way -= report.n_rows;
        state.bytes += bytes;
        let Report { number, n_rows, input_per_row, nanos, .. } = report;
        state.pace.learn(Past { n_rows, nanos, bytes, input_per_row });
        state.window.finish(number, Finished { grain, passed, upto, bytes });
        Ok(())
    }

    /// Waits for input if there is room for it, and for grains to end.
    fn wait(&self, state: &mut State<T::Input>, reported: &Channel<Report>) -> Step {
        let wants_input = state.current.is_none() && !state.ended && self.has_room(state);
        if !wants_input {
            let report = reported.recv().expect("this stage holds a sender");
            return self.finish(state, report);
        }
        if state.window.n_pending() == 0 {
            let start = Instant::now();
            let packet = self.input.channel().recv();
            if self.waiting == Waiting::Starved {
                NodeStats::add_time(&self.me.stats.starved, start);
            }
            return self.take(state, packet.map_err(|_| Exit::Cancelled)?);
        }
        select! {
            recv(self.input.channel()) -> packet => self.take(state, packet.map_err(|_| Exit::Cancelled)?),
            recv(reported) -> report => self.finish(state, report.expect("this stage holds a sender")),
        }
    }

    fn take(&self, state: &mut State<T::Input>, packet: Packet<T::Input>) -> Step {
        let Some(mut input) = self.input.took(packet) else {
            state.ended = true;
            return Ok(());
        };
        self.me.stats.queue.store(self.input.len(), Ordering::Relaxed);
        let n_rows = input.n_rows();
        self.me.stats.rows_in.fetch_add(n_rows as u64, Ordering::Relaxed);
        let passed = input.take_rejects();
        if n_rows == 0 {
            let upto = input.upto(0);
            let grain = Grain::default();
            state.window.pass(Finished { grain, passed, upto, bytes: 0 });
        } else {
            let input_per_row = input.bytes() as f64 / n_rows as f64;
            state.current = Some(Current { input: Arc::new(input), start: 0, input_per_row, passed });
        }
        Ok(())
    }
}
