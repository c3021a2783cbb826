//! Work under way, given out in the order in which it was begun.

use std::collections::VecDeque;

/// Slots in order: each is filled when its work is done, and leaves when all before it have left.
pub(super) struct Window<T> {
    slots: VecDeque<Option<T>>,
    first: u64,
    n_pending: usize,
}

impl<T> Window<T> {
    pub(super) fn new() -> Self {
        Window { slots: VecDeque::new(), first: 0, n_pending: 0 }
    }

    /// Begins a piece of work: its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.slots.push_back(None);
        self.n_pending += 1;
        self.first + self.slots.len() as u64 - 1
    }

    /// Puts in what needs no work, behind what was begun.
    pub(super) fn pass(&mut self, value: T) {
        self.slots.push_back(Some(value));
    }

    /// Ends piece `number`.
    pub(super) fn finish(&mut self, number: u64, value: T) {
        let slot = &mut self.slots[(number - self.first) as usize];
        debug_assert!(slot.is_none(), "a piece of work ends once");
        *slot = Some(value);
        self.n_pending -= 1;
    }

    /// The first piece, if it is done.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.slots.front()?.as_ref()?;
        self.first += 1;
        self.slots.pop_front().flatten()
    }

    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Pieces in it, done ones that wait for others included.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Pieces that are not done.
    pub(super) fn n_pending(&self) -> usize {
        self.n_pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_early_waits_for_what_began_before_it() {
        let mut window = Window::new();
        let (a, b) = (window.begin(), window.begin());
        window.pass("c");
        window.finish(b, "b");
        assert_eq!(window.pop(), None);
        window.finish(a, "a");
        let order: Vec<_> = std::iter::from_fn(|| window.pop()).collect();
        assert_eq!(order, ["a", "b", "c"]);
        assert!(window.is_empty());
    }
}
