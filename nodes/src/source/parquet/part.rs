//! Parts of a Parquet file, of any row groups.

use std::ops::Range;
use std::vec;

use engine::data::{Reject, code};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::file::metadata::ParquetMetaData;

use crate::source::picking::Picks;

/// Which rows of a file.
pub(in crate::source) enum Part<'a> {
    /// All.
    All,
    /// Those of one row group.
    Group(usize),
    /// These, by their numbers.
    Rows(&'a Picks),
}

/// What has to be read for a part.
pub(super) struct Chosen {
    pub(super) groups: Vec<usize>,
    /// Of the rows in these groups; all of them if there is none.
    pub(super) selection: Option<RowSelection>,
    pub(super) numbers: Numbers,
}

/// The numbers in their file of rows that come one after the other.
pub(super) enum Numbers {
    From(u64),
    Of(vec::IntoIter<u64>),
}

impl Iterator for Numbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self {
            Numbers::From(number) => {
                *number += 1;
                Some(*number - 1)
            }
            Numbers::Of(numbers) => numbers.next(),
        }
    }
}

impl Part<'_> {
    /// Finds the part in a file of that name.
    pub(super) fn choose(&self, metadata: &ParquetMetaData, uri: &str) -> Result<Chosen, Reject> {
        let mut end = 0;
        let rows: Vec<Range<u64>> = metadata
            .row_groups()
            .iter()
            .map(|group| {
                let start = end;
                end += group.num_rows().unsigned_abs();
                start..end
            })
            .collect();
        match self {
            Part::All => Ok(Chosen { groups: (0..rows.len()).collect(), selection: None, numbers: Numbers::From(0) }),
            Part::Group(number) => match rows.get(*number) {
                Some(range) => {
                    Ok(Chosen { groups: vec![*number], selection: None, numbers: Numbers::From(range.start) })
                }
                None => Err(Reject::new(code::NOT_FOUND, format!("`{uri}` has no row group {number} any more"))),
            },
            Part::Rows(picks) => Ok(of_rows(&rows, picks.numbers())),
        }
    }
}

/// Of each row group that holds some of `numbers`, which are in order, only those.
fn of_rows(rows: &[Range<u64>], mut numbers: Vec<u64>) -> Chosen {
    let n_rows = rows.last().map_or(0, |range| range.end);
    numbers.truncate(numbers.partition_point(|number| *number < n_rows));
    let (mut groups, mut selectors) = (Vec::new(), Vec::new());
    for (number, range) in rows.iter().enumerate() {
        let of_group = numbers.partition_point(|number| *number < range.start)
            ..numbers.partition_point(|number| *number < range.end);
        if of_group.is_empty() {
            continue;
        }
        groups.push(number);
        let mut at = range.start;
        for &wanted in &numbers[of_group] {
            selectors.push(RowSelector::skip((wanted - at) as usize));
            selectors.push(RowSelector::select(1));
            at = wanted + 1;
        }
        selectors.push(RowSelector::skip((range.end - at) as usize));
    }
    Chosen { groups, selection: Some(selectors.into()), numbers: Numbers::Of(numbers.into_iter()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_groups_without_wanted_rows_are_left_out() {
        let chosen = of_rows(&[0..10, 10..10, 10..20, 20..25], vec![2, 3, 24, 25, 99]);
        assert_eq!(chosen.groups, [0, 3]);
        assert_eq!(chosen.numbers.collect::<Vec<_>>(), [2, 3, 24]);
        let selectors: Vec<_> = chosen.selection.unwrap().into();
        let expected = [(true, 2), (false, 2), (true, 10), (false, 1)];
        assert_eq!(selectors.iter().map(|part| (part.skip, part.row_count)).collect::<Vec<_>>(), expected);
        assert!(of_rows(&[0..5, 5..10], vec![10]).groups.is_empty());
        assert!(of_rows(&[], vec![0]).groups.is_empty());
    }
}
