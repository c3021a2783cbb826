//! How fast rows are done lately, and when the rest will be.

use std::collections::VecDeque;
use std::time::Duration;

use super::snapshot::Snapshot;

/// Older counts say nothing about now.
const WINDOW: Duration = Duration::from_secs(15);
/// A guess made from less than this would jump about.
const SHORTEST: Duration = Duration::from_secs(2);

/// The counts of the last seconds.
#[derive(Debug, Default)]
pub struct Pace {
    seen: VecDeque<(Duration, u64)>,
}

impl Pace {
    /// Takes note of a snapshot and gives the rows done in a second over the last ones.
    pub fn note(&mut self, snapshot: &Snapshot) -> f64 {
        let now = (snapshot.elapsed, snapshot.done);
        self.seen.push_back(now);
        // One count from before the window stays, so that the window is always spanned.
        while self.seen.get(1).is_some_and(|second| second.0 + WINDOW <= now.0) {
            self.seen.pop_front();
        }
        let first = self.seen.front().copied().unwrap_or(now);
        let seconds = now.0.saturating_sub(first.0).as_secs_f64();
        if seconds > 0.0 { now.1.saturating_sub(first.1) as f64 / seconds } else { 0.0 }
    }
}

/// The time until all rows are done, if that can be said.
#[must_use]
pub fn time_left(snapshot: &Snapshot, pace: f64) -> Option<Duration> {
    let left = snapshot.total?.saturating_sub(snapshot.done);
    if snapshot.elapsed < SHORTEST || pace <= 0.0 {
        return None;
    }
    Duration::try_from_secs_f64(left as f64 / pace).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, done: u64) -> Snapshot {
        Snapshot { elapsed: Duration::from_secs(seconds), total: Some(10_000), done, ..Snapshot::default() }
    }

    #[test]
    fn only_the_last_seconds_count() {
        let mut pace = Pace::default();
        assert_eq!(pace.note(&at(0, 0)), 0.0);
        for second in 1..=100 {
            assert_eq!(pace.note(&at(second, second * 10)), 10.0);
        }
        for second in 101..=130 {
            pace.note(&at(second, 1_000 + (second - 100) * 50));
        }
        assert_eq!(pace.note(&at(131, 1_000 + 31 * 50)), 50.0);
    }

    #[test]
    fn rows_of_an_earlier_run_do_not_count_as_speed() {
        let mut pace = Pace::default();
        pace.note(&at(0, 4_000));
        assert_eq!(pace.note(&at(5, 4_500)), 100.0);
    }

    #[test]
    fn the_rest_is_guessed_only_from_something() {
        assert_eq!(time_left(&at(10, 4_000), 100.0), Some(Duration::from_secs(60)));
        assert_eq!(time_left(&at(1, 4_000), 100.0), None);
        assert_eq!(time_left(&at(10, 4_000), 0.0), None);
        assert_eq!(time_left(&Snapshot { total: None, ..at(10, 4_000) }, 100.0), None);
        assert_eq!(time_left(&at(10, 12_000), 100.0), Some(Duration::ZERO));
    }
}
