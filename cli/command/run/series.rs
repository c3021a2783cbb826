//! Several shards, one after the other.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::node::Shard;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::unregister;

use crate::failure::{Failure, exit, reason};

/// The signals that end a series: each run obeys them by itself, but one may come when a run is at its end.
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// Shards to be run.
pub(super) struct Series<'a> {
    shards: &'a [Shard],
    /// Whether the process was asked to stop.
    asked: Arc<AtomicBool>,
    registered: Vec<signal_hook::SigId>,
}

impl<'a> Series<'a> {
    pub(super) fn new(shards: &'a [Shard]) -> Result<Self, Failure> {
        let mut series = Series { shards, asked: Arc::default(), registered: Vec::new() };
        for signal in SIGNALS {
            let failed = |error: io::Error| Failure::fault(format!("cannot listen for signals: {}", reason(&error)));
            series.registered.push(flag::register(signal, series.asked.clone()).map_err(failed)?);
        }
        Ok(series)
    }

    /// Runs them, and says the exit code of all: the worst. One that fails does not keep the others from being tried;
    /// being asked to stop does.
    pub(super) fn run(&self, mut run: impl FnMut(Shard) -> Result<u8, Failure>) -> Result<u8, Failure> {
        if let [shard] = self.shards {
            return run(*shard);
        }
        let mut worst = exit::DONE;
        for (n_before, &shard) in self.shards.iter().enumerate() {
            if n_before > 0 && self.asked.load(Ordering::Relaxed) {
                return Ok(worse(worst, exit::INTERRUPTED));
            }
            let code = run(shard).unwrap_or_else(|failure| failure.tell());
            worst = worse(worst, code);
            if code == exit::INTERRUPTED {
                break;
            }
        }
        Ok(worst)
    }
}

impl Drop for Series<'_> {
    fn drop(&mut self) {
        for &id in &self.registered {
            unregister(id);
        }
    }
}

/// Of two exit codes the one that asks for more: a mistake, a fault, to go on, to look at rejects, nothing.
fn worse(one: u8, other: u8) -> u8 {
    const WORST_FIRST: [u8; 4] = [exit::USAGE, exit::FAULT, exit::INTERRUPTED, exit::REJECTS];
    let rank = |code: u8| WORST_FIRST.iter().position(|known| *known == code).unwrap_or(WORST_FIRST.len());
    if rank(other) < rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(n_shards: usize) -> Vec<Shard> {
        (0..n_shards as u32).map(|index| Shard { index, of: 16 }).collect()
    }

    #[test]
    fn the_exit_code_of_several_is_the_worst_and_an_interrupt_ends_them() {
        let check = |codes: &[u8], expected: u8, n_run: usize| {
            let shards = shards(codes.len());
            let mut done = 0;
            let code = Series::new(&shards).unwrap().run(|shard| {
                done += 1;
                Ok(codes[shard.index as usize])
            });
            assert_eq!((code.unwrap(), done), (expected, n_run), "{codes:?}");
        };
        check(&[0, 0], 0, 2);
        check(&[0, 3, 0], 3, 3);
        check(&[3, 1, 0], 1, 3);
        check(&[1, 2, 3], 2, 3);
        check(&[3, 130, 0], 130, 2);
        check(&[1, 130, 0], 1, 2);
    }

    #[test]
    fn a_wish_to_stop_that_comes_when_a_shard_is_done_ends_them_too() {
        let shards = shards(3);
        let series = Series::new(&shards).unwrap();
        let code = series.run(|shard| {
            series.asked.store(shard.index == 1, Ordering::Relaxed);
            Ok(exit::REJECTS)
        });
        assert_eq!(code.unwrap(), exit::INTERRUPTED);
        assert!(series.asked.load(Ordering::Relaxed), "the third was not run");
    }
}
