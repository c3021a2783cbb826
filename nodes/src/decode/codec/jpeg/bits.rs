//! The bits of a scan, without its stuffed zeros, up to the next marker.
//!
//! Behind the last bit come zeros, so that decoding needs no test at each step; [`BitReader::is_overdrawn`] then says that some of
//! them were used. It must be asked once in a while (after each unit), before the made-up bits are more than can be counted.

use super::super::super::error::DecodeError;
use super::segments::behind_restart;
use super::{corrupt, truncated};

/// Why a scan cannot be decoded any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Damage {
    /// Bits that are no code of the table.
    #[error("a scan has bits that are no Huffman code")]
    NoSuchCode,
    /// A coefficient behind the last one of its block.
    #[error("a scan has a coefficient beyond its block")]
    BeyondBlock,
    /// A correction of a coefficient by more than one step.
    #[error("a scan corrects a coefficient by more than one step")]
    BadRefinement,
    /// More bits than a coefficient can have.
    #[error("a scan has a coefficient of more than 15 bits")]
    TooLarge,
}

/// Reads bits, most significant first.
///
/// Small, and copied: a loop that works on a copy of its own has it in registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The next bits, from the top. Below the `n_bits` that count there may be some of those that follow.
    ahead: u64,
    n_bits: u32,
    /// How many of the bits read so far were made up.
    made_up: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, ahead: 0, n_bits: 0, made_up: 0 }
    }

    /// Where the next marker is to be looked for.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Whether more bits were used than there are.
    #[inline(always)]
    pub(super) fn is_overdrawn(&self) -> bool {
        self.n_bits < self.made_up
    }

    /// Sees to it that at least `least` bits are ahead; at most 56.
    #[inline(always)]
    pub(super) fn refill(&mut self, least: u32) {
        if self.n_bits < least {
            self.top_up(least);
        }
    }

    /// As [`Self::refill`], and takes up more where that is cheap: whether bits are wanting is told by the picture, so a processor
    /// that guesses it is wrong more often than it costs to take them up each time.
    #[inline(always)]
    pub(super) fn top_up(&mut self, least: u32) {
        if let Some(eight) = self.bytes.get(self.at..self.at + 8) {
            let word = u64::from_be_bytes(eight.try_into().expect("eight bytes"));
            // At a marker there may be 64 bits ahead, elsewhere at most 63.
            if !has_ff(word) {
                self.ahead |= word >> self.n_bits;
                self.at += ((63 - self.n_bits) >> 3) as usize;
                self.n_bits |= 56;
                return;
            }
        }
        if self.n_bits < least {
            *self = self.refilled_bytewise();
        }
    }

    /// By value, so that the reader of a loop need not lie in memory for the sake of this rare call.
    #[inline(never)]
    fn refilled_bytewise(mut self) -> Self {
        while self.n_bits < 56 {
            let Some(&byte) = self.bytes.get(self.at) else {
                return self.with_made_up();
            };
            let mut next = self.at + 1;
            if byte == 0xff {
                while self.bytes.get(next) == Some(&0xff) {
                    next += 1;
                }
                if self.bytes.get(next) != Some(&0) {
                    return self.with_made_up();
                }
                next += 1;
            }
            self.at = next;
            self.ahead |= u64::from(byte) << (56 - self.n_bits);
            self.n_bits += 8;
        }
        self
    }

    fn with_made_up(mut self) -> Self {
        self.made_up = self.made_up.saturating_add(64 - self.n_bits);
        self.n_bits = 64;
        self
    }

    /// The next `n` bits, of those that are ahead: 1 to 32.
    #[inline(always)]
    pub(super) fn peek(&self, n: u32) -> u32 {
        (self.ahead >> (64 - n)) as u32
    }

    #[inline(always)]
    pub(super) fn consume(&mut self, n: u32) {
        self.ahead <<= n;
        self.n_bits -= n;
    }

    /// Takes `n` bits of those that are ahead: 1 to 32.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> u32 {
        let bits = self.peek(n);
        self.consume(n);
        bits
    }

    /// Reads up to 16 bits, ahead or not.
    #[inline(always)]
    pub(super) fn read(&mut self, n: u32) -> u32 {
        if n == 0 {
            return 0;
        }
        self.refill(n);
        self.take(n)
    }

    /// Reads one bit.
    #[inline(always)]
    pub(super) fn read_bit(&mut self) -> bool {
        self.read(1) != 0
    }

    /// Passes the restart marker number `n` (of 8), and what stands before it.
    pub(super) fn restart(&mut self, n: u8) -> Result<(), DecodeError> {
        *self = Self::new(self.bytes, behind_restart(self.bytes, self.at, n)?);
        Ok(())
    }

    /// The reason for which decoding ended, when `damage` was met here.
    #[cold]
    pub(super) fn refusal(&self, damage: Damage) -> DecodeError {
        if self.is_overdrawn() { truncated("a scan ends early") } else { corrupt(damage.to_string()) }
    }
}

/// Whether one of the eight bytes is 0xff.
#[inline(always)]
fn has_ff(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // A byte of `!word` is zero exactly where the word has 0xff; subtracting one then borrows into its highest bit.
    (!word).wrapping_sub(ONES) & word & HIGHS != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_without_stuffing_and_zeros_behind_the_end_count_as_overdrawn() {
        let bytes = [0xa5, 0xff, 0, 0x0f, 0xff, 0xff, 0, 0x81, 0xff, 0xd9];
        let mut reader = BitReader::new(&bytes, 0);
        let got: Vec<u32> = (0..5).map(|_| reader.read(8)).collect();
        assert_eq!(got, [0xa5, 0xff, 0x0f, 0xff, 0x81]);
        assert!(!reader.is_overdrawn());
        assert_eq!(reader.read(1), 0);
        assert!(reader.is_overdrawn());
        assert_eq!(reader.place(), 8);
    }

    #[test]
    fn any_sizes_of_reads_give_the_same_bits() {
        let bytes: Vec<u8> = (0..400_u32).map(|n| (n * n * 31 + n * 7) as u8).filter(|&byte| byte != 0xff).collect();
        let text: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
        for seed in 1..20 {
            let mut reader = BitReader::new(&bytes, 0);
            let (mut at, mut n) = (0, seed);
            while at + 16 <= text.len() {
                n = (n * 5 + 3) % 17;
                let expected = if n == 0 { 0 } else { u32::from_str_radix(&text[at..at + n], 2).unwrap() };
                assert_eq!(reader.read(n as u32), expected);
                at += n;
            }
            assert!(!reader.is_overdrawn());
        }
    }

    #[test]
    fn a_restart_is_found_behind_what_is_left_of_a_unit() {
        let bytes = [1, 2, 3, 0xff, 0, 0xff, 0xff, 0xd2, 0x70, 0xff, 0xd9];
        let mut reader = BitReader::new(&bytes, 0);
        reader.read(3);
        reader.restart(2).unwrap();
        assert_eq!(reader.read(8), 0x70);
        assert!(matches!(reader.restart(3), Err(DecodeError::Truncated { .. })));
        assert!(matches!(BitReader::new(&bytes, 0).restart(1), Err(DecodeError::Corrupt { .. })));
    }

    #[test]
    fn a_byte_of_all_ones_is_seen_wherever_it_stands() {
        for place in 0..8 {
            for other in [0_u8, 1, 0x7f, 0x80, 0xfe] {
                let mut bytes = [other; 8];
                assert!(!has_ff(u64::from_be_bytes(bytes)));
                bytes[place] = 0xff;
                assert!(has_ff(u64::from_be_bytes(bytes)));
            }
        }
    }
}
