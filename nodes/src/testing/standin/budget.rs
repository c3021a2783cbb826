//! A device's memory: bytes that are taken and given back.
//!
//! It is the memory as one process sees it. Processes that share a device do not see what the others take.

use std::sync::{Arc, Mutex, PoisonError};

use engine::node::ModelError;

/// Memory of a device. Clones are the same memory.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    total: u64,
    used: Arc<Mutex<u64>>,
}

impl Budget {
    pub(super) fn new(total: u64) -> Self {
        Budget { total, used: Arc::default() }
    }

    /// Takes memory until the lease is dropped.
    pub(super) fn take(&self, bytes: u64) -> Result<Lease, ModelError> {
        self.reserve(bytes)?;
        Ok(Lease { budget: self.clone(), bytes })
    }

    fn reserve(&self, bytes: u64) -> Result<(), ModelError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.total - *used;
        if bytes > free {
            return Err(ModelError::OutOfMemory(format!("{bytes} bytes wanted, {free} of {} are free", self.total)));
        }
        *used += bytes;
        Ok(())
    }

    fn release(&self, bytes: u64) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
    }
}

/// Memory that is taken.
#[derive(Debug)]
pub(super) struct Lease {
    budget: Budget,
    bytes: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

/// The memory that a stream computes in. Its batches are computed one after the other and use it in turn, so that it is
/// as large as the largest batch under way needs.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    budget: Budget,
    under_way: Arc<Mutex<Vec<u64>>>,
}

impl Scratch {
    pub(super) fn new(budget: Budget) -> Self {
        Scratch { budget, under_way: Arc::default() }
    }

    /// Memory for a batch, from its start until it was waited for.
    pub(super) fn hold(&self, bytes: u64) -> Result<Hold, ModelError> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        self.budget.reserve(bytes.saturating_sub(largest(&under_way)))?;
        under_way.push(bytes);
        Ok(Hold { scratch: self.clone(), bytes })
    }
}

fn largest(under_way: &[u64]) -> u64 {
    under_way.iter().copied().max().unwrap_or(0)
}

/// A batch's share in a stream's memory.
#[derive(Debug)]
pub(super) struct Hold {
    scratch: Scratch,
    bytes: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut under_way = self.scratch.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let before = largest(&under_way);
        if let Some(at) = under_way.iter().position(|&bytes| bytes == self.bytes) {
            under_way.swap_remove(at);
        }
        self.scratch.budget.release(before - largest(&under_way));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(budget: &Budget) -> u64 {
        budget.total - *budget.used.lock().unwrap()
    }

    #[test]
    fn what_is_taken_comes_back_when_it_is_dropped() {
        let budget = Budget::new(100);
        let first = budget.take(60).unwrap();
        let error = budget.take(41).unwrap_err();
        assert_eq!(error, ModelError::OutOfMemory("41 bytes wanted, 40 of 100 are free".to_owned()));
        let second = budget.take(40).unwrap();
        assert_eq!(free(&budget), 0);
        drop(first);
        assert_eq!(free(&budget), 60);
        drop(second);
        assert_eq!(free(&budget), 100);
    }

    #[test]
    fn a_stream_takes_what_its_largest_batch_needs() {
        let budget = Budget::new(100);
        let scratch = Scratch::new(budget.clone());
        let small = scratch.hold(30).unwrap();
        let large = scratch.hold(80).unwrap();
        let other = scratch.hold(80).unwrap();
        assert_eq!(free(&budget), 20);
        assert!(scratch.hold(101).is_err());
        assert_eq!(free(&budget), 20);
        drop(large);
        assert_eq!(free(&budget), 20);
        drop(other);
        assert_eq!(free(&budget), 70);
        drop(small);
        assert_eq!(free(&budget), 100);
    }

    #[test]
    fn streams_do_not_share() {
        let budget = Budget::new(100);
        let (one, two) = (Scratch::new(budget.clone()), Scratch::new(budget.clone()));
        let _held = one.hold(60).unwrap();
        assert!(two.hold(60).is_err());
        assert!(two.hold(40).is_ok());
    }
}
