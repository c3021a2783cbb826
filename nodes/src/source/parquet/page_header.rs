//! What stands before a page: a struct in Thrift's compact protocol, of which only a few numbers matter here.
//!
//! It is read once more by the library, which believes it. So that nothing is believed that was not seen here, all of it is
//! read, also what is passed over, and of a number that is there twice the larger one counts.

/// Structs and lists within each other: the form has four levels.
const MAX_DEPTH: u32 = 16;

/// The numbers of a page's header, each as it is written there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// Bytes of the page when it is unpacked.
    pub(super) unpacked: i64,
    /// Bytes of it in the file.
    pub(super) packed: i64,
    /// Values of a page of data.
    pub(super) values: i64,
    /// Values of a dictionary.
    pub(super) dictionary_values: i64,
}

impl PageHeader {
    /// The header at the beginning of `bytes`; `None` if it ends behind them, or is none.
    pub(super) fn parse(bytes: &[u8]) -> Option<PageHeader> {
        let mut header = PageHeader::default();
        let mut thrift = Thrift(bytes);
        let mut field = 0;
        while let Some(kind) = thrift.next_field(&mut field)? {
            match (field, kind) {
                (2, Kind::INT32) => header.unpacked = header.unpacked.max(thrift.number()?),
                (3, Kind::INT32) => header.packed = header.packed.max(thrift.number()?),
                (5 | 8, Kind::STRUCT) => header.values = header.values.max(thrift.first_number()?),
                (7, Kind::STRUCT) => header.dictionary_values = header.dictionary_values.max(thrift.first_number()?),
                _ => thrift.skip(kind, MAX_DEPTH)?,
            }
        }
        Some(header)
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind(u8);

impl Kind {
    const INT32: Kind = Kind(5);
    const STRUCT: Kind = Kind(12);
}

/// What is left to be read.
struct Thrift<'a>(&'a [u8]);

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn pass(&mut self, n_bytes: usize) -> Option<()> {
        self.0 = self.0.get(n_bytes..)?;
        Some(())
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number of 32 bits, as the library takes it: what is beyond them is cut off.
    fn number(&mut self) -> Option<i64> {
        let zigzag = self.unsigned()?;
        let number = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        Some(i64::from(number as i32))
    }

    /// The type of the next field, whose number goes into `field`; `Some(None)` at the struct's end.
    fn next_field(&mut self, field: &mut i64) -> Option<Option<Kind>> {
        let byte = self.byte()?;
        if byte & 0x0f == 0 {
            return Some(None);
        }
        *field = match byte >> 4 {
            0 => self.number()?,
            further => field.checked_add(i64::from(further))?,
        };
        Some(Some(Kind(byte & 0x0f)))
    }

    /// The largest number that a struct has in its first field.
    fn first_number(&mut self) -> Option<i64> {
        let (mut field, mut number) = (0, 0);
        while let Some(kind) = self.next_field(&mut field)? {
            match (field, kind) {
                (1, Kind::INT32) => number = number.max(self.number()?),
                _ => self.skip(kind, MAX_DEPTH)?,
            }
        }
        Some(number)
    }

    fn skip(&mut self, kind: Kind, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind.0 {
            // The value of a boolean is in its type.
            1 | 2 => Some(()),
            3 => self.pass(1),
            4..=6 => self.unsigned().map(drop),
            7 => self.pass(8),
            8 => {
                let n_bytes = self.unsigned()?;
                self.pass(usize::try_from(n_bytes).ok()?)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let n_items = if byte >> 4 == 15 { self.unsigned()? } else { u64::from(byte >> 4) };
                self.items(Kind(byte & 0x0f), n_items, depth)
            }
            11 => {
                let n_items = self.unsigned()?;
                let kinds = if n_items == 0 { 0 } else { self.byte()? };
                for _ in 0..n_items {
                    self.items(Kind(kinds >> 4), 1, depth)?;
                    self.items(Kind(kinds & 0x0f), 1, depth)?;
                }
                Some(())
            }
            12 => {
                let mut field = 0;
                while let Some(kind) = self.next_field(&mut field)? {
                    self.skip(kind, depth)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Each takes a byte at least, so that any number of them comes to an end with the bytes.
    fn items(&mut self, kind: Kind, n_items: u64, depth: u32) -> Option<()> {
        for _ in 0..n_items {
            match kind.0 {
                1 | 2 => self.pass(1)?,
                _ => self.skip(kind, depth)?,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of data of 7 values: type 0, 300 bytes that are 20 in the file, a sum, and statistics to be passed over.
    const DATA: &[u8] =
        b"\x15\x00\x15\xd8\x04\x15\x28\x15\x02\x1c\x15\x0e\x15\x00\x15\x06\x15\x06\x1c\x18\x03abc\x00\x00\x00";

    #[test]
    fn the_numbers_of_a_page_are_read_and_the_rest_is_passed_over() {
        let expected = PageHeader { unpacked: 300, packed: 20, values: 7, dictionary_values: 0 };
        assert_eq!(PageHeader::parse(DATA), Some(expected));
        assert_eq!(PageHeader::parse(&[DATA, b"more"].concat()), Some(expected));
        let dictionary = b"\x15\x04\x15\xd8\x04\x15\x28\x4c\x15\x0e\x15\x00\x00\x00";
        let expected = PageHeader { values: 0, dictionary_values: 7, ..expected };
        assert_eq!(PageHeader::parse(dictionary), Some(expected));
    }

    #[test]
    fn of_a_number_that_is_there_twice_the_larger_one_counts() {
        // The field 2 again, by its number.
        for (first, second) in [(b"\x15\xd8\x04", b"\x05\x04\x28"), (b"\x15\x28\x05", b"\x04\xd8\x04")] {
            let bytes = [&b"\x15\x00"[..], first, second, b"\x00"].concat();
            if let Some(header) = PageHeader::parse(&bytes) {
                assert_eq!(header.unpacked, 300);
            }
        }
    }

    #[test]
    fn what_ends_early_or_has_no_end_is_none() {
        for length in 0..DATA.len() {
            assert_eq!(PageHeader::parse(&DATA[..length]), None, "{length}");
        }
        assert_eq!(PageHeader::parse(&[0x1c; 4000]), None, "structs within structs");
        assert_eq!(PageHeader::parse(b"\x19\xf1\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), None, "a list of all booleans");
        assert_eq!(PageHeader::parse(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), None, "a text without an end");
        assert_eq!(PageHeader::parse(b"\x1d"), None, "no type");
    }
}
