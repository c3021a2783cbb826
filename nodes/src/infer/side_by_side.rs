//! The rows of batches side by side on the threads of a pool, each row on one thread.
//!
//! A thread that finds no more rows of one batch goes on with the next, so none waits for another where a batch ends.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use engine::data::Tensor;
use engine::node::{Computed, ModelError, Pending, Span, SpanStage, monotonic_ns};
use rayon::Yield;

/// Batches under way at once: one whose last rows are computed, and one that the threads without any of these go on with.
pub(super) const SLOTS: usize = 2;

/// Starts batches of one model.
#[derive(Clone, Default)]
pub(super) struct SideBySide {
    /// When the last batch that was waited for was computed, on the system's monotonic clock.
    until_ns: Arc<AtomicU64>,
}

impl SideBySide {
    /// Starts a batch of `n_rows` rows on the rayon pool of the calling thread: `row` computes each of them, `join` makes the
    /// batch's outputs of them. Rows of batches that were started earlier come first.
    pub(super) fn start<T: Send + 'static>(
        &self,
        n_rows: usize,
        row: impl Fn(usize) -> Result<T, ModelError> + Send + Sync + 'static,
        join: impl FnOnce(Vec<T>) -> Result<Vec<Tensor>, ModelError> + Send + 'static,
    ) -> Box<dyn Pending> {
        let row = Arc::new(row);
        let (sender, rows) = channel();
        for row_idx in 0..n_rows {
            let (row, sender) = (row.clone(), sender.clone());
            rayon::spawn_fifo(move || {
                let start_ns = monotonic_ns();
                let outcome = catch_unwind(AssertUnwindSafe(|| row(row_idx)));
                // What it holds of the batch is given back before the batch is told of.
                drop(row);
                // Nobody waits for a batch any more when the model is dropped.
                let _ = sender.send(Row { row_idx, outcome, start_ns, end_ns: monotonic_ns() });
            });
        }
        Box::new(UnderWay { rows, n_rows, join, until_ns: self.until_ns.clone() })
    }
}

/// A row that was computed.
struct Row<T> {
    row_idx: usize,
    outcome: thread::Result<Result<T, ModelError>>,
    start_ns: u64,
    end_ns: u64,
}

struct UnderWay<T, J> {
    rows: Receiver<Row<T>>,
    n_rows: usize,
    join: J,
    until_ns: Arc<AtomicU64>,
}

impl<T: Send, J: FnOnce(Vec<T>) -> Result<Vec<Tensor>, ModelError> + Send> Pending for UnderWay<T, J> {
    fn wait(self: Box<Self>) -> Result<Computed, ModelError> {
        let mut rows: Vec<_> = iter::from_fn(|| next(&self.rows)).take(self.n_rows).collect();
        rows.sort_unstable_by_key(|row| row.row_idx);
        // Batches overlap, but what is told of them does not: the times of all together are the time that the model took.
        let start_ns = rows.iter().map(|row| row.start_ns).min().unwrap_or_else(monotonic_ns);
        let end_ns = rows.iter().map(|row| row.end_ns).max().unwrap_or(start_ns);
        let start_ns = start_ns.max(self.until_ns.fetch_max(end_ns, Ordering::Relaxed));
        let end_ns = end_ns.max(start_ns);
        let rows = rows.into_iter().map(|row| row.outcome.unwrap_or_else(|panic| resume_unwind(panic)));
        let outputs = (self.join)(rows.collect::<Result<_, _>>()?)?;
        Ok(Computed { outputs, spans: vec![Span { stage: SpanStage::Compute, start_ns, end_ns }] })
    }
}

/// The next row that was computed. On a thread of the pool, which may be the only one, rows are computed meanwhile.
fn next<T>(rows: &Receiver<Row<T>>) -> Option<Row<T>> {
    loop {
        match rows.try_recv() {
            Ok(row) => return Some(row),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if rayon::yield_now() == Some(Yield::Executed) => {}
            // All are computed, or other threads are at them.
            Err(TryRecvError::Empty) => return rows.recv().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use engine::data::{DType, HeapPool};

    use super::*;

    fn pool(n_threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap()
    }

    fn numbers(rows: Vec<usize>) -> Result<Vec<Tensor>, ModelError> {
        let rows: Vec<_> = rows.iter().map(|&row| row as f32).collect();
        Ok(vec![Tensor::from_slice(&HeapPool::new(), DType::F32, vec![rows.len()], &rows)])
    }

    fn values(computed: &Computed) -> Vec<f32> {
        computed.outputs[0].view().to_f32().to_vec()
    }

    #[test]
    fn threads_without_rows_of_one_batch_go_on_with_the_next() {
        let (pool, model) = (pool(2), SideBySide::default());
        // One row of the first batch meets one of the second: in turns they would wait for each other forever.
        let both = Arc::new(Barrier::new(2));
        let meet = |both: &Arc<Barrier>| {
            let both = both.clone();
            move |row| {
                if row == 0 {
                    both.wait();
                }
                Ok(row)
            }
        };
        let [first, second] = [1, 3].map(|n_rows| pool.install(|| model.start(n_rows, meet(&both), numbers)));
        let [first, second] = [first, second].map(|pending| pending.wait().unwrap());
        assert_eq!((values(&first), values(&second)), (vec![0.0], vec![0.0, 1.0, 2.0]));
        assert!(first.spans[0].end_ns <= second.spans[0].start_ns, "{:?} {:?}", first.spans, second.spans);
    }

    #[test]
    fn a_batch_can_be_waited_for_on_the_only_thread_of_its_pool() {
        let computed = pool(1).install(|| SideBySide::default().start(5, Ok, numbers).wait());
        assert_eq!(values(&computed.unwrap()), [0.0, 1.0, 2.0, 3.0, 4.0]);
        let nothing = pool(1).install(|| SideBySide::default().start(0, Ok, numbers).wait());
        assert_eq!(values(&nothing.unwrap()).len(), 0);
    }

    #[test]
    fn the_first_row_that_fails_is_the_reason_and_all_others_are_computed() {
        let n_computed = Arc::new(AtomicUsize::new(0));
        let count = n_computed.clone();
        let row = move |row| {
            count.fetch_add(1, Ordering::Relaxed);
            if row % 2 == 1 { Err(ModelError::Failed(format!("row {row}"))) } else { Ok(row) }
        };
        let pending = pool(2).install(|| SideBySide::default().start(6, row, numbers));
        assert_eq!(pending.wait().err(), Some(ModelError::Failed("row 1".to_owned())));
        assert_eq!(n_computed.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn a_panic_of_a_row_comes_out_where_the_batch_is_waited_for() {
        let (pool, model) = (pool(1), SideBySide::default());
        let row = |row| if row == 1 { panic!("row 1") } else { Ok(row) };
        let pending = pool.install(|| model.start(2, row, numbers));
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| pending.wait())) else { panic!("nothing came out") };
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"row 1"));
        assert_eq!(values(&pool.install(|| model.start(1, Ok, numbers)).wait().unwrap()), [0.0]);
    }
}
