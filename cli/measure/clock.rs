//! Which rows are counted, and in what time.
//!
//! Before the first batch comes to a sink a pipeline starts up, and rows gather before what is slow in that. They would count
//! as done in no time, so the measurement begins with the first batch behind them. From then on the time between batches
//! counts, not the one before the first or behind the last.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::turns::Turn;

/// The time of one measurement.
#[derive(Debug)]
pub(super) struct Clock {
    length: Duration,
    patience: Duration,
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the first batch came to a sink.
    first: Option<Instant>,
    /// Rows that are to come to a sink before the measurement begins.
    expected: Option<u64>,
    /// When the measurement began.
    begin: Option<Instant>,
    sinks: Vec<Counted>,
}

/// What came to one sink.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    total: u64,
    /// The batch before those that count, and the last that does.
    span: Option<(Instant, Instant)>,
    rows: u64,
}

impl Clock {
    pub(super) fn new(length: Duration, patience: Duration, n_nodes: usize) -> Self {
        let sinks = vec![Counted::default(); n_nodes];
        let state = State { first: None, expected: None, begin: None, sinks };
        Clock { length, patience, start: Instant::now(), state: Mutex::new(state) }
    }

    /// Rows have come to the sink `node_idx`.
    pub(super) fn count(&self, node_idx: usize, n_rows: usize) {
        self.count_at(node_idx, n_rows, Instant::now());
    }

    fn count_at(&self, node_idx: usize, n_rows: usize, now: Instant) {
        let mut state = self.lock();
        let first = *state.first.get_or_insert(now);
        let total = state.sinks[node_idx].total + n_rows as u64;
        state.sinks[node_idx].total = total;
        let is_warm = state.expected.is_some_and(|expected| total >= expected) || now - first >= self.length;
        if state.begin.is_none() && is_warm {
            state.begin = Some(now);
        }
        let Some(begin) = state.begin else { return };
        let counted = &mut state.sinks[node_idx];
        match &mut counted.span {
            None => counted.span = Some((now, now)),
            // What comes late counts only if nothing else did.
            Some((_, last)) if now - begin <= self.length || counted.rows == 0 => {
                *last = now;
                counted.rows += n_rows as u64;
            }
            Some(_) => {}
        }
    }

    /// When the first batch came.
    pub(super) fn first(&self) -> Option<Instant> {
        self.lock().first
    }

    /// So many rows are to come before the measurement begins, if that was not said before.
    pub(super) fn expect(&self, n_rows: u64) {
        self.lock().expected.get_or_insert(n_rows);
    }

    /// Whether the time is up, and something was measured.
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        let is_late = state.begin.is_some_and(|begin| begin.elapsed() >= self.length);
        is_late && state.sinks.iter().any(|sink| sink.rows > 0)
    }

    /// Whether a source has had its part of the time. Where no row comes, the next one begins before patience is out.
    pub(super) fn has_had(&self, turn: Turn) -> bool {
        if turn.is_last() {
            return false;
        }
        match self.lock().begin {
            Some(begin) => begin.elapsed() >= turn.end(self.length),
            None => self.start.elapsed() >= turn.end(self.patience) / 2,
        }
    }

    /// Rows a second of `sinks`, each with its sources: of those that share a source, the busiest counts.
    pub(super) fn rate(&self, sinks: &[(usize, Vec<u32>)]) -> Option<f64> {
        let state = self.lock();
        let of = |(sink, sources): &(usize, Vec<u32>)| {
            let Counted { span: Some((before, last)), rows, .. } = state.sinks[*sink] else { return None };
            (rows > 0).then(|| (rows as f64 / (last - before).as_secs_f64().max(1e-9), sources.clone()))
        };
        let mut rates: Vec<_> = sinks.iter().filter_map(of).collect();
        rates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut sum, mut counted) = (None, Vec::new());
        for (rate, sources) in rates {
            if !sources.iter().any(|source| counted.contains(source)) {
                sum = Some(sum.unwrap_or(0.0) + rate);
                counted.extend(sources);
            }
        }
        sum
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A clock of ten seconds to whose sinks rows come as (sink, rows, seconds).
    fn counted(expected: u64, batches: &[(usize, usize, u32)]) -> Clock {
        let clock = Clock::new(SECOND * 10, SECOND * 30, 2);
        clock.expect(expected);
        batches.iter().for_each(|&(sink, n_rows, at)| clock.count_at(sink, n_rows, clock.start + SECOND * at));
        clock
    }

    #[test]
    fn what_was_under_way_at_the_first_batch_does_not_count() {
        let clock = counted(20, &[(0, 10, 5), (0, 10, 6), (0, 10, 8), (0, 10, 10)]);
        assert_eq!(clock.rate(&[(0, vec![0])]), Some(5.0));
    }

    #[test]
    fn warming_up_takes_no_longer_than_measuring() {
        let clock = counted(1_000, &[(0, 10, 0), (0, 10, 9), (0, 10, 12), (0, 10, 14)]);
        assert_eq!(clock.rate(&[(0, vec![0])]), Some(5.0));
    }

    #[test]
    fn what_comes_late_counts_only_if_nothing_else_did() {
        let clock = counted(0, &[(0, 10, 0), (0, 10, 5), (0, 10, 11), (1, 10, 0), (1, 10, 20), (1, 10, 30)]);
        assert_eq!(clock.rate(&[(0, vec![0])]), Some(2.0));
        assert_eq!(clock.rate(&[(1, vec![0])]), Some(0.5));
    }

    #[test]
    fn sinks_of_one_source_count_once_and_others_add_up() {
        let clock = counted(0, &[(0, 10, 0), (0, 10, 5), (1, 10, 0), (1, 20, 5)]);
        assert_eq!(clock.rate(&[(0, vec![0]), (1, vec![0])]), Some(4.0));
        assert_eq!(clock.rate(&[(0, vec![0]), (1, vec![1])]), Some(6.0));
        assert_eq!(clock.rate(&[]), None);
    }
}
