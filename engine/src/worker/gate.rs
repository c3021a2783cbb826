//! Batches go through side by side, and now and then one alone.
//!
//! Models that share a device share its memory. A batch that found none left is tried again while no other is under way,
//! so that what is learnt of its size is not about its neighbours.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Lets batches through. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Batches under way.
    inside: usize,
    /// Those who are alone or wait for it. While there is one nobody else is let in, or its turn might never come.
    loners: usize,
    alone: bool,
}

impl Gate {
    /// Waits until a batch may start; it is under way until the value is dropped.
    pub(super) fn enter(&self) -> Entered {
        let mut state = self.wait(|state| state.loners == 0);
        state.inside += 1;
        Entered(self.clone())
    }

    /// Waits until nothing is under way, and keeps it so until the value is dropped. Whoever calls this has nothing
    /// under way itself.
    pub(super) fn alone(&self) -> Alone {
        self.0.lock().loners += 1;
        let mut state = self.wait(|state| state.inside == 0 && !state.alone);
        state.alone = true;
        Alone(self.clone())
    }

    fn wait(&self, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.0.changed.wait_while(self.0.lock(), |state| !until(state)).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch is under way.
#[derive(Debug)]
pub(super) struct Entered(Gate);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.0.lock().inside -= 1;
        self.0.0.changed.notify_all();
    }
}

/// Nothing else is under way.
#[derive(Debug)]
pub(super) struct Alone(Gate);

impl Drop for Alone {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.alone = false;
        state.loners -= 1;
        drop(state);
        self.0.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_under_way_beside_the_one_that_is_alone() {
        let (gate, inside) = (Gate::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..500 {
                        if round % 5 == 0 {
                            let _alone = gate.alone();
                            assert_eq!(inside.swap(100, Ordering::SeqCst), 0);
                            inside.store(0, Ordering::SeqCst);
                        } else {
                            let _entered = gate.enter();
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < 4);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
    }
}
