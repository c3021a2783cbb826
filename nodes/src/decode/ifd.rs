//! The directories of tags of which TIFF files and EXIF blocks are made.
//!
//! Reads one directory, with the leniency of Pillow: an entry that cannot be read is as if it were not there, of two entries with
//! one tag the first counts, and a directory that is cut keeps what stood before the cut. Never follows one directory to the next,
//! so that loops do no harm. What entries point at is borrowed from the block; no number in it makes anything be allocated.

use std::collections::BTreeMap;

/// A directory, by its tags.
#[derive(Debug)]
pub(super) struct Directory<'a> {
    block: &'a [u8],
    order: ByteOrder,
    entries: BTreeMap<u16, Entry>,
}

/// Which end of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// `II`: the low end.
    Little,
    /// `MM`: the high end.
    Big,
}

impl ByteOrder {
    /// The number that these bytes are, of which there are at most eight.
    pub(super) fn number(self, bytes: &[u8]) -> u64 {
        let join = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, join),
            Self::Big => bytes.iter().fold(0, join),
        }
    }
}

#[derive(Debug)]
struct Entry {
    kind: u16,
    /// Where its value lies in the block.
    at: usize,
    len: usize,
}

/// Widths of the fields of a directory, which BigTIFF has made larger.
struct Widths {
    count: usize,
    entry: usize,
    value: usize,
}

const CLASSIC: Widths = Widths { count: 2, entry: 12, value: 4 };
const BIG: Widths = Widths { count: 8, entry: 20, value: 8 };

impl<'a> Directory<'a> {
    /// The first directory of a block that begins with the header of a TIFF file. `None` where there is none.
    pub(super) fn first(block: &'a [u8]) -> Option<Self> {
        let order = match block.get(..2)? {
            b"II" => ByteOrder::Little,
            b"MM" => ByteOrder::Big,
            _ => return None,
        };
        let (widths, at) = match block.get(2..4)? {
            // Some writers swap the two bytes of the version, and nothing else.
            [42, 0] | [0, 42] => (CLASSIC, order.number(block.get(4..8)?)),
            [43, 0] | [0, 43] => (BIG, order.number(block.get(8..16)?)),
            _ => return None,
        };
        Self::read(block, order, widths, usize::try_from(at).ok()?)
    }

    fn read(block: &'a [u8], order: ByteOrder, widths: Widths, at: usize) -> Option<Self> {
        let body = block.get(at..)?;
        let count = order.number(body.get(..widths.count)?);
        let mut directory = Self { block, order, entries: BTreeMap::new() };
        let mut used = 0usize;
        let entries = body[widths.count..].chunks_exact(widths.entry);
        for (n, raw) in entries.take(usize::try_from(count).unwrap_or(usize::MAX)).enumerate() {
            let (tag, kind) = (order.number(&raw[..2]) as u16, order.number(&raw[2..4]) as u16);
            let count = order.number(&raw[4..4 + widths.value]);
            let Some(unit) = unit(kind) else { continue };
            if directory.entries.contains_key(&tag) {
                continue;
            }
            let Some(len) = usize::try_from(count).ok().and_then(|count| count.checked_mul(unit)) else { continue };
            let inline = &raw[4 + widths.value..];
            let value_at = if len <= widths.value {
                at + widths.count + n * widths.entry + 4 + widths.value
            } else {
                // All that a directory speaks of cannot be longer than the block.
                used = len.saturating_add(used);
                if used > block.len() {
                    continue;
                }
                match usize::try_from(order.number(inline)) {
                    Ok(at) if at.checked_add(len).is_some_and(|end| end <= block.len()) => at,
                    _ => break,
                }
            };
            if len > 0 {
                directory.entries.insert(tag, Entry { kind, at: value_at, len });
            }
        }
        Some(directory)
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    /// The bytes of a tag's value.
    pub(super) fn bytes(&self, tag: u16) -> Option<&'a [u8]> {
        let entry = self.entries.get(&tag)?;
        self.block.get(entry.at..entry.at + entry.len)
    }

    /// How many whole numbers a tag holds: none if it is not there or holds something else.
    pub(super) fn count(&self, tag: u16) -> usize {
        self.entries
            .get(&tag)
            .filter(|entry| is_whole(entry.kind))
            .map_or(0, |entry| entry.len / unit(entry.kind).unwrap_or(1))
    }

    /// The whole numbers of a tag: none if it is not there or holds something else. Negative ones are huge.
    pub(super) fn numbers(&self, tag: u16) -> impl Iterator<Item = u64> + use<'a> {
        let entry = self.entries.get(&tag).filter(|entry| is_whole(entry.kind));
        let unit = entry.and_then(|entry| unit(entry.kind)).unwrap_or(1);
        let bytes = entry.and_then(|entry| self.block.get(entry.at..entry.at + entry.len)).unwrap_or(&[]);
        let order = self.order;
        bytes.chunks_exact(unit).map(move |number| order.number(number))
    }

    /// The first whole number of a tag.
    pub(super) fn number(&self, tag: u16) -> Option<u64> {
        self.numbers(tag).next()
    }
}

/// Bytes of one value of a kind.
fn unit(kind: u16) -> Option<usize> {
    match kind {
        1 | 2 | 6 | 7 => Some(1),
        3 | 8 => Some(2),
        4 | 9 | 11 | 13 => Some(4),
        5 | 10 | 12 | 16 => Some(8),
        _ => None,
    }
}

/// Two, four or eight bytes that are a number; single bytes are not taken for numbers.
fn is_whole(kind: u16) -> bool {
    matches!(kind, 3 | 4 | 8 | 9 | 13 | 16)
}

#[cfg(test)]
mod tests {
    use super::Directory;

    /// A little-endian block with one directory at 8, of entries as `(tag, kind, count, value)`.
    fn block(count: u16, entries: &[(u16, u16, u32, u32)], behind: &[u8]) -> Vec<u8> {
        let mut block = b"II*\0\x08\0\0\0".to_vec();
        block.extend(count.to_le_bytes());
        for (tag, kind, count, value) in entries {
            block.extend(
                [&tag.to_le_bytes()[..], &kind.to_le_bytes(), &count.to_le_bytes(), &value.to_le_bytes()].concat(),
            );
        }
        block.extend(behind);
        block
    }

    #[test]
    fn numbers_stand_in_their_entry_or_where_it_points() {
        let bytes = block(2, &[(256, 3, 1, 640), (273, 4, 2, 34)], &[7, 0, 0, 0, 0, 1, 0, 0]);
        let directory = Directory::first(&bytes).unwrap();
        assert_eq!(directory.number(256), Some(640));
        assert_eq!(directory.numbers(273).collect::<Vec<_>>(), [7, 256]);
        assert_eq!((directory.count(273), directory.count(1)), (2, 0));
        assert_eq!(directory.number(257), None);
    }

    #[test]
    fn both_orders_and_both_sizes_are_read() {
        let big =
            b"MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x01\x01\x12\0\x03\0\0\0\0\0\0\0\x01\0\x06\0\0\0\0\0\0";
        assert_eq!(Directory::first(big).unwrap().number(0x112), Some(6));
        let small = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0";
        assert_eq!(Directory::first(small).unwrap().number(0x112), Some(8));
        let swapped = b"MM*\0\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0";
        assert_eq!(Directory::first(swapped).unwrap().number(0x112), Some(8));
    }

    #[test]
    fn what_lies_costs_its_entry_and_no_memory() {
        // A count of four billion, a pointer behind the end, fewer entries than stated.
        let bytes = block(9, &[(1, 4, u32::MAX, 8), (2, 12, u32::MAX, 8), (3, 3, 1, 5), (3, 3, 1, 6)], &[]);
        let directory = Directory::first(&bytes).unwrap();
        assert_eq!((directory.number(1), directory.number(2), directory.number(3)), (None, None, Some(5)));
        let bytes = block(2, &[(1, 4, 2, u32::MAX), (3, 3, 1, 5)], &[]);
        assert_eq!(Directory::first(&bytes).unwrap().number(3), None);
        for bytes in [&b""[..], b"II", b"II*\0\xff\xff\xff\xff", b"XX*\0\x08\0\0\0\0\0", b"II*\0\x08\0\0\0\x01"] {
            assert!(Directory::first(bytes).is_none());
        }
    }
}
