//! Rows that are in memory already, again and again.

use std::sync::Arc;

use engine::data::{Batch, Reject, RowMut, RowPos};
use engine::node::{Fault, Fetch, Fold, Item, List, Reading, SourceStage, Stamp};

/// A source of rows without content, of which there is no end.
pub(super) fn numbers() -> SourceStage {
    SourceStage { list: Box::new(Numbers), reading: Reading::Rows(Arc::new(Numbers)), count: None }
}

/// Gives rows of `batches`, of which there is one at least, in the place of those that come.
pub(super) fn feeding(batches: Arc<Vec<Batch>>) -> Box<dyn Fold> {
    Box::new(Feeding { batches, batch: 0, row: 0 })
}

struct Numbers;

impl List for Numbers {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let item = || Item { uri: String::new(), id: None, locator: Default::default(), size_hint: 0 };
        items.extend((0..max).map(|_| item()));
        Ok(())
    }

    fn seek(&mut self, _index: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn is_fixed(&self) -> bool {
        true
    }
}

impl Fetch for Numbers {
    fn fetch(&self, _index: u64, _item: &Item, _out: &mut RowMut<'_>) -> Result<Stamp, Reject> {
        Ok(Stamp::NONE)
    }
}

struct Feeding {
    batches: Arc<Vec<Batch>>,
    /// The next row is in this batch, and this one there.
    batch: usize,
    row: usize,
}

impl Fold for Feeding {
    fn push(&mut self, batch: Batch, out: &mut Vec<Batch>) -> Result<(), Fault> {
        let mut positions = batch.positions();
        while !positions.is_empty() {
            let stored = &self.batches[self.batch];
            let n_rows = positions.len().min(stored.n_rows() - self.row);
            let (these, rest) = positions.split_at(n_rows);
            let columns = stored.slice(self.row..self.row + n_rows).columns().to_vec();
            out.push(Batch::new(these.to_vec(), columns));
            positions = rest;
            self.row += n_rows;
            if self.row == stored.n_rows() {
                (self.batch, self.row) = ((self.batch + 1) % self.batches.len(), 0);
            }
        }
        Ok(())
    }

    fn held(&self) -> Option<RowPos> {
        None
    }

    fn flush(&mut self, _out: &mut Vec<Batch>) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use engine::data::{Column, ColumnBuilder, ColumnType};

    use super::*;

    fn rows(texts: &[&str]) -> Batch {
        let mut column = ColumnBuilder::new(&ColumnType::Text);
        texts.iter().for_each(|text| column.push_text(text));
        Batch::new((0..texts.len() as u64).map(|index| RowPos::new(0, index)).collect(), vec![column.finish()])
    }

    #[test]
    fn rows_of_memory_take_the_positions_of_those_that_come() {
        let mut feeding = feeding(Arc::new(vec![rows(&["a", "b"]), rows(&["c"])]));
        let mut out = Vec::new();
        for first in [10, 15] {
            let positions = (first..first + 5).map(|index| RowPos::new(0, index)).collect();
            feeding.push(Batch::new(positions, Vec::new()), &mut out).expect("no fault");
        }
        let texts: String = out
            .iter()
            .flat_map(|batch| {
                let Column::Text(texts) = &batch.columns()[0] else { panic!() };
                (0..batch.n_rows()).map(|row_idx| texts.get(row_idx).to_owned())
            })
            .collect();
        assert_eq!(texts, "abcabcabca");
        let positions = out.iter().flat_map(|batch| batch.positions()).map(|pos| pos.index);
        assert!(positions.eq(10..20));
    }
}
