//! A slice of a listing whose items have the same numbers in every run.

use crate::node::{Fault, Item, List};

/// The items from one number to before another.
pub(super) struct ByNumber {
    list: Box<dyn List>,
    start: u64,
    n_items: u64,
    /// The next item, as the slice numbers them.
    next: u64,
    /// Whether the listing stands there.
    is_there: bool,
}

impl ByNumber {
    pub(super) fn new(list: Box<dyn List>, start: u64, end: u64) -> Self {
        ByNumber { list, start, n_items: end - start, next: 0, is_there: false }
    }
}

impl List for ByNumber {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let max = (self.n_items.saturating_sub(self.next)).min(max as u64) as usize;
        if max == 0 {
            return Ok(());
        }
        if !self.is_there {
            self.list.seek(self.start + self.next)?;
            self.is_there = true;
        }
        let before = items.len();
        self.list.next_items(max, items)?;
        self.next += (items.len() - before) as u64;
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.next = index;
        self.is_there = false;
        Ok(())
    }

    fn is_fixed(&self) -> bool {
        true
    }
}
