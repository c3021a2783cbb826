//! Which parts of an arena are free: arithmetic alone, no memory.
//!
//! The best fit is taken and neighbours are merged when they come back, so that batches of varying sizes do not wear
//! the arena down. There are about as many free parts as batches under way: a search through all of them is short.

use std::collections::BTreeMap;

/// The free parts of the bytes `0..end`.
#[derive(Debug, Default)]
pub(super) struct Extents {
    /// Lengths by offset; no two touch.
    free: BTreeMap<u64, u64>,
    end: u64,
    in_use: u64,
}

impl Extents {
    /// Bytes given out.
    pub(super) fn in_use(&self) -> u64 {
        self.in_use
    }

    /// Bytes there are, free or not.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Takes `len` bytes from the smallest part that has them, the first of equals.
    pub(super) fn take(&mut self, len: u64) -> Option<u64> {
        let fits = self.free.iter().filter(|(_, free)| **free >= len);
        let (&offset, &free) = fits.min_by_key(|(_, free)| **free)?;
        self.free.remove(&offset);
        if free > len {
            self.free.insert(offset + len, free - len);
        }
        self.in_use += len;
        Some(offset)
    }

    /// Where the bytes would have to end for `len` of them to be free at the end; `None` if no number says that.
    pub(super) fn end_for(&self, len: u64) -> Option<u64> {
        let tail = self.free.last_key_value().filter(|(offset, free)| **offset + **free == self.end);
        tail.map_or(self.end, |(offset, _)| *offset).checked_add(len)
    }

    /// Says that there are bytes up to `end` now.
    pub(super) fn grow(&mut self, end: u64) {
        let before = std::mem::replace(&mut self.end, end);
        self.insert(before, end - before);
    }

    /// Takes bytes back.
    pub(super) fn put(&mut self, offset: u64, len: u64) {
        self.in_use -= len;
        self.insert(offset, len);
    }

    fn insert(&mut self, mut offset: u64, mut len: u64) {
        if let Some((&before, &free)) = self.free.range(..offset).next_back()
            && before + free == offset
        {
            offset = before;
            len += free;
        }
        if let Some(free) = self.free.remove(&(offset + len)) {
            len += free;
        }
        // In the place of the part before, where they were merged.
        self.free.insert(offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(end: u64) -> Extents {
        let mut extents = Extents::default();
        extents.grow(end);
        extents
    }

    #[test]
    fn parts_that_come_back_in_any_order_become_one_again() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut extents = extents(30);
            let parts: Vec<_> = (0..3).map(|_| extents.take(10).unwrap()).collect();
            assert_eq!((extents.take(1), extents.in_use()), (None, 30));
            order.iter().for_each(|&at| extents.put(parts[at], 10));
            assert_eq!((extents.take(30), extents.in_use()), (Some(0), 30), "{order:?}");
        }
    }

    #[test]
    fn the_smallest_part_that_fits_is_taken() {
        let mut extents = extents(100);
        let parts: Vec<_> = [30, 10, 20, 10, 30].map(|len| (extents.take(len).unwrap(), len)).into();
        for &at in &[0, 2, 4] {
            extents.put(parts[at].0, parts[at].1);
        }
        assert_eq!(extents.take(15), Some(40));
    }

    #[test]
    fn growing_counts_what_is_free_at_the_end() {
        let mut extents = extents(10);
        assert_eq!(extents.take(6), Some(0));
        assert_eq!(extents.end_for(7), Some(13));
        assert_eq!(extents.end_for(u64::MAX), None);
        extents.grow(13);
        assert_eq!(extents.take(7), Some(6));
        assert_eq!(extents.end_for(5), Some(18));
    }
}
