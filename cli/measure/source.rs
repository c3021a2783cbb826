//! Sources that start over at their end.

use std::sync::Arc;

use engine::node::{Cancel, Fault, Item, List, Reading, SourceStage};

use super::clock::Clock;
use super::portion::{Left, Portion, Portioned};
use super::turns::Turn;

/// Has a source start over when all of it, or its first `limit` rows, have been listed.
pub(super) fn repeat(stage: &mut SourceStage, limit: Option<u64>, turn: Turn, clock: &Arc<Clock>, cancel: &Cancel) {
    // Nobody knows how many there will be.
    stage.count = None;
    let mut repeating = Repeating {
        inner: std::mem::replace(&mut stage.list, Box::new(Nothing)),
        at: 0,
        limit: limit.unwrap_or(u64::MAX),
        portion: None,
        turn,
        clock: clock.clone(),
    };
    if let (Reading::Unpacked(unpack), Some(limit)) = (&stage.reading, limit) {
        let portion = Arc::new(Portion::new(limit, cancel.clone()));
        stage.reading = Reading::Unpacked(Arc::new(Portioned { inner: unpack.clone(), portion: portion.clone() }));
        (repeating.limit, repeating.portion) = (u64::MAX, Some(portion));
    }
    stage.list = Box::new(repeating);
}

struct Repeating {
    inner: Box<dyn List>,
    /// Items since it began.
    at: u64,
    /// Items after which it starts over.
    limit: u64,
    /// The same in rows, where items hold rows.
    portion: Option<Arc<Portion>>,
    turn: Turn,
    clock: Arc<Clock>,
}

impl List for Repeating {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        if self.clock.has_had(self.turn) {
            return Ok(());
        }
        match self.portion.as_ref().map(|portion| portion.wait()) {
            Some(Left::Cancelled) => return Ok(()),
            Some(Left::Nothing) => self.seek(0)?,
            Some(Left::Rows) | None => {}
        }
        if !self.take(max, items)? && self.at > 0 {
            self.seek(0)?;
            self.take(max, items)?;
        }
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.at = index;
        if let Some(portion) = &self.portion {
            portion.refill();
        }
        self.inner.seek(index)
    }

    fn is_fixed(&self) -> bool {
        self.inner.is_fixed()
    }
}

impl Repeating {
    /// Appends items, if there are some before the end.
    fn take(&mut self, max: usize, items: &mut Vec<Item>) -> Result<bool, Fault> {
        let left = usize::try_from(self.limit - self.at).unwrap_or(usize::MAX);
        let max = if self.portion.is_some() { 1 } else { max.min(left) };
        if max == 0 {
            return Ok(false);
        }
        let n_before = items.len();
        self.inner.next_items(max, items)?;
        let n_taken = items.len() - n_before;
        self.at += n_taken as u64;
        if let (Some(portion), true) = (&self.portion, n_taken > 0) {
            portion.begin();
        }
        Ok(n_taken > 0)
    }
}

/// What stands for a listing while it is wrapped.
struct Nothing;

impl List for Nothing {
    fn next_items(&mut self, _max: usize, _items: &mut Vec<Item>) -> Result<(), Fault> {
        Ok(())
    }

    fn seek(&mut self, _index: u64) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Lists the numbers before `end`.
    struct Numbers {
        next: u64,
        end: u64,
    }

    impl List for Numbers {
        fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
            let end = self.end.min(self.next + max as u64);
            let item =
                |number: u64| Item { uri: number.to_string(), id: None, locator: Default::default(), size_hint: 0 };
            items.extend((self.next..end).map(item));
            self.next = end;
            Ok(())
        }

        fn seek(&mut self, index: u64) -> Result<(), Fault> {
            self.next = index;
            Ok(())
        }
    }

    /// The first items of a listing of `n_items` that starts over after `limit`.
    fn listed(n_items: u64, limit: u64, max: usize, n_calls: usize) -> String {
        let clock = Arc::new(Clock::new(Duration::from_secs(1), Duration::from_secs(1), 0));
        let inner = Box::new(Numbers { next: 0, end: n_items });
        let mut repeating = Repeating { inner, at: 0, limit, portion: None, turn: Turn::ONLY, clock };
        let mut items = Vec::new();
        (0..n_calls).for_each(|_| repeating.next_items(max, &mut items).expect("numbers"));
        items.iter().map(|item| item.uri.as_str()).collect()
    }

    #[test]
    fn a_listing_starts_over_at_its_end_or_limit() {
        assert_eq!(listed(3, u64::MAX, 2, 5), "01201201");
        assert_eq!(listed(9, 3, 2, 5), "01201201");
        assert_eq!(listed(0, u64::MAX, 2, 5), "");
    }
}
