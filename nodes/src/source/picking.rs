//! Single rows of items that hold many: which are wanted, and why others do not come.

use std::collections::HashSet;

use engine::data::Reject;
use engine::node::Entries;

/// The rows that are wanted of an item, by what stands behind the `#` of their uris.
pub(super) struct Picks(HashSet<Box<str>>);

impl Picks {
    /// These rows.
    pub(super) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Picks(names.into_iter().map(Box::from).collect())
    }

    /// Whether the row called `name` is wanted.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// The names that are numbers, in ascending order.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<_> = self.0.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// The rows of an item, which says why they ended where they should not.
pub(super) trait Container: Entries {
    /// What kept the item from being read to its end, once there are no more rows.
    fn broken(&self) -> Option<&Reject>;
}
