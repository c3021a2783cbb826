//! Sources that start over at their end.

use std::sync::Arc;

use engine::node::{Cancel, Fault, Item, List, Reading, SourceStage};

use super::clock::Clock;
use super::portion::{Left, Portion, Portioned};
use super::turns::Turn;

/// The source, starting over when all of it, or its first `limit` rows, have been listed.
pub(super) fn repeating(
    stage: SourceStage,
    limit: Option<u64>,
    turn: Turn,
    clock: &Arc<Clock>,
    cancel: &Cancel,
) -> SourceStage {
    let SourceStage { list, mut reading, .. } = stage;
    let (mut items, mut portion) = (limit.unwrap_or(u64::MAX), None);
    if let (Reading::Unpacked(unpack), Some(rows)) = (&reading, limit) {
        let of_rows = Arc::new(Portion::new(rows, cancel.clone()));
        reading = Reading::Unpacked(Arc::new(Portioned { inner: unpack.clone(), portion: of_rows.clone() }));
        (items, portion) = (u64::MAX, Some(of_rows));
    }
    let list = Box::new(Repeating { inner: list, at: 0, limit: items, portion, turn, clock: clock.clone() });
    // Nobody knows how many there will be.
    SourceStage { list, reading, count: None }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::node::harness::Harness;
    use nodes::source::synthetic::Synthetic;

    use super::*;

    /// The first items of a listing of `n_items` that starts over after `limit`.
    fn listed(n_items: u64, limit: u64, max: usize, n_calls: usize) -> String {
        let clock = Arc::new(Clock::new(Duration::from_secs(1), Duration::from_secs(1), 0));
        let stage = Harness::new::<Synthetic>(&format!("rows: {{count: {n_items}}}"), Vec::new()).source();
        let inner = stage.expect("a source").list;
        let mut repeating = Repeating { inner, at: 0, limit, portion: None, turn: Turn::ONLY, clock };
        let mut items = Vec::new();
        (0..n_calls).for_each(|_| repeating.next_items(max, &mut items).expect("numbers"));
        items.iter().map(|item| item.uri.trim_start_matches("synthetic/")).collect()
    }

    #[test]
    fn a_listing_starts_over_at_its_end_or_limit() {
        assert_eq!(listed(3, u64::MAX, 2, 5), "01201201");
        assert_eq!(listed(9, 3, 2, 5), "01201201");
        assert_eq!(listed(0, u64::MAX, 2, 5), "");
    }
}
