//! One look at the input: whether it gives rows, and some of them as they are before the first batch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::data::Batch;
use engine::graph::Graph;
use engine::node::{Role, Stage};

use super::driver::{End, Next, drive};
use super::parts::Parts;
use super::sink::Counting;
use super::stub::Stub;
use super::{Meter, counted, leave_no_trace, n_rejected};
use crate::failure::Failure;
use crate::progress::human::count;

/// Rows that are kept at each place.
const MOST_ROWS: usize = 256;
/// Bytes that are kept, at all places together.
const MOST_BYTES: usize = 256 << 20;
/// How long it may take once there are rows: a slow source gives fewer.
const LONGEST: Duration = Duration::from_secs(10);

/// Rows as they come to the first batch.
pub(crate) struct Sampled {
    /// By node of the border; nothing where no row came in time.
    pub(super) batches: Vec<Arc<Vec<Batch>>>,
}

/// What is kept at one place.
struct Tap {
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
}

impl Tap {
    fn take(&self, batch: &Batch) {
        let mut kept = self.lock();
        let left = self.most_bytes.saturating_sub(kept.bytes);
        let row_bytes = batch.bytes() / batch.n_rows().max(1) + 1;
        // One row always, however large.
        let room = (left / row_bytes).min(MOST_ROWS - kept.rows).max(usize::from(kept.rows == 0));
        let batch = batch.slice(0..batch.n_rows().min(room));
        if batch.n_rows() > 0 {
            kept.rows += batch.n_rows();
            kept.bytes += batch.bytes();
            kept.batches.push(batch);
        } else {
            kept.bytes = self.most_bytes;
        }
    }

    fn is_full(&self) -> bool {
        let kept = self.lock();
        kept.rows >= MOST_ROWS || kept.bytes >= self.most_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs what comes before the first batch, once.
///
/// # Errors
/// If the input is empty, or all of it is rejected.
pub(super) fn take(meter: &Meter<'_>, graph: &Graph, parts: &Parts) -> Result<Sampled, Failure> {
    let mut front = parts.front(graph, meter.registry);
    leave_no_trace(&mut front);
    let n_taps = parts.border.len();
    let tap = |_| Arc::new(Tap { most_bytes: MOST_BYTES / n_taps.max(1), kept: Mutex::default() });
    let taps: Vec<_> = (0..n_taps).map(tap).collect();
    let first_tap = front.nodes.len() - n_taps;
    let has_rows = Arc::new(AtomicBool::new(false));
    let counted: Vec<_> = counted(&front).collect();
    for (node_idx, node) in front.nodes.iter_mut().enumerate() {
        if node.kind.role() != Role::Sink {
            continue;
        }
        let tap = node_idx.checked_sub(first_tap).map(|at| taps[at].clone());
        let (is_counted, has_rows) = (counted.contains(&node_idx), has_rows.clone());
        let see = Arc::new(move |batch: &Batch| {
            tap.iter().for_each(|tap| tap.take(batch));
            has_rows.fetch_or(is_counted, Ordering::Relaxed);
        });
        node.node = Stub::node(move |_| Ok(Stage::Sink(Box::new(Counting(see.clone())))));
    }
    let (stats, end) = drive(front, meter.inventory, |stats, elapsed| {
        if !has_rows.load(Ordering::Relaxed) {
            return meter.wait(stats, elapsed);
        }
        let is_enough = taps.iter().all(|tap| tap.is_full()) || elapsed > LONGEST.max(meter.length);
        Ok(if is_enough { Next::Stop } else { Next::GoOn })
    })?;
    if end == End::Done && !has_rows.load(Ordering::Relaxed) {
        return Err(nothing(n_rejected(&stats)));
    }
    let batches = taps.iter().map(|tap| Arc::new(std::mem::take(&mut tap.lock().batches)));
    Ok(Sampled { batches: batches.collect() })
}

fn nothing(n_rejected: u64) -> Failure {
    match n_rejected {
        0 => Failure::fault("there is nothing to measure: the input is empty"),
        n => {
            let rows = count(n, "row");
            Failure::fault(format!("there is nothing to measure: no row came through, and {rows} were rejected"))
        }
    }
}
