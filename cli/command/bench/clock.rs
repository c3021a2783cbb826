//! How long is measured, and what came in that time.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The measured time of one run. It begins with the first batch that reaches a sink, so that starting up is not in it.
#[derive(Debug)]
pub(super) struct Clock {
    length: Duration,
    counted: Mutex<Vec<Counted>>,
}

/// What one sink was given.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    span: Option<(Instant, Instant)>,
    rows: u64,
}

impl Clock {
    pub(super) fn new(length: Duration, n_nodes: usize) -> Self {
        Clock { length, counted: Mutex::new(vec![Counted::default(); n_nodes]) }
    }

    /// Whether enough was measured.
    pub(super) fn is_over(&self) -> bool {
        let firsts = self.counted().iter().filter_map(|counted| counted.span).map(|(first, _)| first).min();
        firsts.is_some_and(|first| first.elapsed() > self.length)
    }

    /// Notes that rows have come to the sink `node_idx`. Those of the first batch only start the time.
    pub(super) fn count(&self, node_idx: usize, rows: usize) {
        let now = Instant::now();
        let counted = &mut self.counted()[node_idx];
        match &mut counted.span {
            None => counted.span = Some((now, now)),
            Some((_, last)) => {
                *last = now;
                counted.rows += rows as u64;
            }
        }
    }

    /// Rows a second at the busiest sink; nothing, if no more than one batch came.
    pub(super) fn rate(&self) -> Option<f64> {
        let rate = |counted: &Counted| {
            let (first, last) = counted.span?;
            (counted.rows > 0).then(|| counted.rows as f64 / (last - first).as_secs_f64().max(1e-9))
        };
        self.counted().iter().filter_map(rate).max_by(f64::total_cmp)
    }

    fn counted(&self) -> std::sync::MutexGuard<'_, Vec<Counted>> {
        self.counted.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
