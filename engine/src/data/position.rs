//! Where a row comes from, which is also its place in the order of the output.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The position of a row: the source that listed it, its index in that source's listing, and a sub-index for rows that
/// were made from one item. The order of positions is the order of rows on every edge.
///
/// Used as a *watermark* (`upto`), a position says that every row before it has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RowPos {
    /// The source's number. Sources are numbered in the order in which unions concatenate them.
    pub source: u32,
    /// The item's index in the source's listing.
    pub index: u64,
    /// The row's index within its item.
    pub sub: u32,
}

impl RowPos {
    /// After every row of every source.
    pub const END: RowPos = RowPos { source: u32::MAX, index: u64::MAX, sub: u32::MAX };

    /// The only row of item `index` of `source`.
    pub fn new(source: u32, index: u64) -> Self {
        RowPos { source, index, sub: 0 }
    }

    /// The watermark before the first row of `source`.
    pub fn start_of(source: u32) -> Self {
        RowPos::new(source, 0)
    }

    /// The watermark just after this row.
    pub fn next(self) -> Self {
        match self.sub.checked_add(1) {
            Some(sub) => RowPos { sub, ..self },
            None => RowPos { index: self.index.saturating_add(1), sub: 0, ..self },
        }
    }
}

impl fmt::Display for RowPos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.index)?;
        if self.sub > 0 {
            write!(f, ".{}", self.sub)?;
        }
        Ok(())
    }
}
