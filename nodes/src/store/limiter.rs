//! How many requests are in flight to one bucket: as many as it bears.
//!
//! All callers of a bucket share one limiter. It grows by one for each full round of successes and halves when the store
//! says that it is too much, and then nobody sends anything for a while: a pause that doubles with each failed attempt at
//! going on. Of the many requests that fail together only the first halves and pauses; the others were sent before it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The first pause.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause that no server asked for.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// How a bucket is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The most requests that may be in flight at present.
    pub permits: usize,
    /// Those that are.
    pub in_flight: usize,
    /// How often all of its requests were held back for a while.
    pub n_pauses: u64,
}

pub(super) struct Limiter {
    state: Mutex<State>,
    freed: Notify,
    most: f64,
    first_pause: Duration,
}

struct State {
    permits: f64,
    in_flight: usize,
    /// Counts the halvings: a request that was sent before one says nothing about what came after it.
    epoch: u64,
    /// Halvings since the last success.
    n_failed: u32,
    paused_until: Option<Instant>,
    n_pauses: u64,
}

/// Leave to send one request. Given back when dropped.
pub(super) struct Permit {
    limiter: Arc<Limiter>,
    epoch: u64,
}

impl Limiter {
    pub(super) fn new(most: u32) -> Self {
        Limiter::with_first_pause(most, FIRST_PAUSE)
    }

    fn with_first_pause(most: u32, first_pause: Duration) -> Self {
        let state = State {
            permits: f64::from(most.max(1)),
            in_flight: 0,
            epoch: 0,
            n_failed: 0,
            paused_until: None,
            n_pauses: 0,
        };
        Limiter { most: state.permits, state: Mutex::new(state), freed: Notify::new(), first_pause }
    }

    /// Waits for leave to send a request.
    pub(super) async fn permit(self: &Arc<Self>) -> Permit {
        loop {
            let paused_until = {
                let mut state = self.state();
                let paused_until = state.paused_until.filter(|until| *until > Instant::now());
                if paused_until.is_none() && state.in_flight < state.permits as usize {
                    state.in_flight += 1;
                    if state.in_flight < state.permits as usize {
                        self.freed.notify_one();
                    }
                    return Permit { limiter: self.clone(), epoch: state.epoch };
                }
                paused_until
            };
            match paused_until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => self.freed.notified().await,
            }
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let state = self.state();
        Standing { permits: state.permits as usize, in_flight: state.in_flight, n_pauses: state.n_pauses }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a panic leaves behind are still counts.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// The request was answered.
    pub(super) fn succeeded(self) {
        let mut state = self.limiter.state();
        state.permits = (state.permits + 1.0 / state.permits).min(self.limiter.most);
        if self.epoch == state.epoch {
            state.n_failed = 0;
        }
    }

    /// The request was too much: everybody waits, at least as long as the server `asked`. Returns how long, if this is the
    /// first to say so.
    pub(super) fn overloaded(self, asked: Option<Duration>) -> Option<Duration> {
        let mut state = self.limiter.state();
        let now = Instant::now();
        let is_first = self.epoch == state.epoch;
        let mut pause = asked.unwrap_or_default();
        if is_first {
            state.epoch += 1;
            state.permits = (state.permits / 2.0).max(1.0);
            pause = pause.max(pause_after(self.limiter.first_pause, state.n_failed));
            state.n_failed = state.n_failed.saturating_add(1);
            state.n_pauses += 1;
        }
        let until = now + pause;
        state.paused_until = state.paused_until.max(Some(until));
        is_first.then_some(pause)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.state().in_flight -= 1;
        self.limiter.freed.notify_one();
    }
}

/// The pause after so many failures: doubling, with a random half of it, so that several processes do not keep step.
pub(super) fn pause_after(first: Duration, n_failed: u32) -> Duration {
    let whole = first.saturating_mul(1 << n_failed.min(16)).min(LONGEST_PAUSE);
    let random = RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64;
    whole.mul_f64(0.5 + random / 2.0)
}

/// The pause before one request is sent again that failed for a reason of its own.
pub(super) fn pause_of_one(n_failed: u32) -> Duration {
    pause_after(FIRST_PAUSE, n_failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(future)
    }

    fn limiter(most: u32) -> Arc<Limiter> {
        Arc::new(Limiter::with_first_pause(most, Duration::from_millis(1)))
    }

    #[test]
    fn requests_that_fail_together_halve_once() {
        run(async {
            let limiter = limiter(64);
            let mut permits = Vec::new();
            for _ in 0..64 {
                permits.push(limiter.permit().await);
            }
            let first_to_say = permits.into_iter().filter_map(|permit| permit.overloaded(None)).count();
            assert_eq!(first_to_say, 1);
            assert_eq!(limiter.standing(), Standing { permits: 32, in_flight: 0, n_pauses: 1 });
        });
    }

    #[test]
    fn successes_bring_it_back_and_never_beyond_the_most() {
        run(async {
            let limiter = limiter(4);
            for _ in 0..3 {
                limiter.permit().await.overloaded(None);
            }
            assert_eq!(limiter.standing().permits, 1);
            let mut n_successes = 0;
            while limiter.standing().permits < 4 {
                limiter.permit().await.succeeded();
                n_successes += 1;
                assert!(n_successes < 20);
            }
            assert!(n_successes >= 5, "{n_successes}");
            for _ in 0..100 {
                limiter.permit().await.succeeded();
            }
            assert_eq!(limiter.standing().permits, 4);
        });
    }

    #[test]
    fn no_more_are_in_flight_than_there_are_permits() {
        run(async {
            let limiter = limiter(3);
            let peak = Arc::new(Mutex::new((0, 0)));
            let mut tasks = Vec::new();
            for _ in 0..50 {
                let (limiter, peak) = (limiter.clone(), peak.clone());
                tasks.push(tokio::spawn(async move {
                    let permit = limiter.permit().await;
                    {
                        let mut peak = peak.lock().unwrap();
                        peak.0 += 1;
                        peak.1 = peak.1.max(peak.0);
                    }
                    tokio::task::yield_now().await;
                    peak.lock().unwrap().0 -= 1;
                    permit.succeeded();
                }));
            }
            for task in tasks {
                task.await.unwrap();
            }
            let peak = *peak.lock().unwrap();
            assert_eq!(peak.0, 0);
            assert!((1..=3).contains(&peak.1), "{peak:?}");
            assert_eq!(limiter.standing().in_flight, 0);
        });
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_never_fall_below_what_was_asked() {
        for n_failed in 0..40 {
            let pause = pause_after(Duration::from_millis(200), n_failed);
            let whole = Duration::from_millis(200 << n_failed.min(16)).min(LONGEST_PAUSE);
            assert!(pause >= whole / 2 && pause <= whole, "{n_failed} {pause:?}");
        }
        run(async {
            let asked = Duration::from_secs(7);
            assert_eq!(limiter(2).permit().await.overloaded(Some(asked)), Some(asked));
        });
    }
}
