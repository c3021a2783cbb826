//! Huffman codes, and the lookup that decodes them.
//!
//! Most coefficients are small and frequent, so code and value together fit into the few bits that one look sees: the lookup then
//! holds the finished value.

use super::super::super::error::DecodeError;
use super::bits::{BitReader, Damage};
use super::corrupt;

/// Codes as a file gives them: how many of each length, and what they stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Codes {
    counts: [u8; 16],
    symbols: [u8; 256],
}

impl Codes {
    /// At most 256 symbols, as many as the counts say.
    pub(super) fn new(counts: [u8; 16], symbols: &[u8]) -> Self {
        let mut all = [0; 256];
        all[..symbols.len()].copy_from_slice(symbols);
        Self { counts, symbols: all }
    }
}

/// Bits that one look sees.
pub(super) const LOOK: u32 = 10;

/// What one look tells. From the lowest bit: five of length, one of [`Look::WITH_VALUE`], two empty, four of size, four of run,
/// sixteen of value. All zero where the code is longer than the look, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look(u32);

impl Look {
    /// The value's bits, of which there may be none, were seen too, and are counted in the length.
    const WITH_VALUE: u32 = 1 << 5;

    fn code(length: u32, symbol: u8) -> Self {
        Self(length | u32::from(symbol) << 8)
    }

    fn value(length: u32, symbol: u8, value: i16) -> Self {
        Self(length | Self::WITH_VALUE | u32::from(symbol) << 8 | u32::from(value as u16) << 16)
    }

    fn length(self) -> u32 {
        self.0 & 31
    }
}

/// What a symbol and its value say: so many zeros, then a coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunValue {
    pub(super) run: usize,
    /// Bits of the value; if 0, there is no coefficient and `run` says what is meant.
    pub(super) size: u32,
    pub(super) value: i32,
}

/// Codes made ready for decoding.
#[derive(Debug, Clone)]
pub(super) struct Huffman {
    codes: Codes,
    looks: [Look; 1 << LOOK],
    /// By length: the first code of 16 bits that is longer, so that a code is below the limit of its own length first.
    limits: [u32; 17],
    /// By length: what to add to a code to get the index of its symbol.
    offsets: [i32; 17],
}

impl Huffman {
    /// Readies `slot` for `codes`; nothing is done where it is so already.
    pub(super) fn ready<'a>(slot: &'a mut Option<Box<Self>>, codes: &Codes) -> Result<&'a Self, DecodeError> {
        if slot.as_ref().is_none_or(|table| table.codes != *codes) {
            *slot = Some(Box::new(Self::new(codes)?));
        }
        Ok(slot.as_ref().expect("just filled"))
    }

    fn new(codes: &Codes) -> Result<Self, DecodeError> {
        let mut table = Self { codes: codes.clone(), looks: [Look(0); 1 << LOOK], limits: [0; 17], offsets: [0; 17] };
        let (mut code, mut index) = (0_u32, 0_usize);
        for length in 1..=16_u32 {
            let count = usize::from(codes.counts[length as usize - 1]);
            table.offsets[length as usize] = index as i32 - code as i32;
            for _ in 0..count {
                table.fill_looks(code, length, codes.symbols[index]);
                code += 1;
                index += 1;
            }
            // No code is all ones.
            if count > 0 && code >= 1 << length {
                return Err(corrupt("a Huffman table has more codes than there are"));
            }
            table.limits[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Ok(table)
    }

    fn fill_looks(&mut self, code: u32, length: u32, symbol: u8) {
        if length > LOOK || code >= 1 << length {
            return;
        }
        let size = u32::from(symbol & 15);
        let rest = LOOK - length;
        for below in 0..1 << rest {
            self.looks[(code << rest | below) as usize] = if size == 0 {
                Look::value(length, symbol, 0)
            } else if size <= rest {
                let bits = below >> (rest - size);
                Look::value(length + size, symbol, extend(bits, size) as i16)
            } else {
                Look::code(length, symbol)
            };
        }
    }

    /// Whether all symbols are sizes of differences.
    pub(super) fn is_of_differences(&self) -> bool {
        let n: usize = self.codes.counts.iter().map(|&count| usize::from(count)).sum();
        self.codes.symbols[..n].iter().all(|&symbol| symbol < 16)
    }

    /// Reads a symbol and its value. At most 31 bits.
    #[inline(always)]
    pub(super) fn run_value(&self, reader: &mut BitReader<'_>) -> Result<RunValue, Damage> {
        reader.refill(31);
        self.run_value_at_once(reader).map_or_else(|| self.long_run_value(reader), Ok)
    }

    /// Reads a symbol and its value if one look sees them; at least [`LOOK`] bits must be ahead.
    #[inline(always)]
    pub(super) fn run_value_at_once(&self, reader: &mut BitReader<'_>) -> Option<RunValue> {
        let look = self.looks[reader.peek(LOOK) as usize];
        if look.0 & Look::WITH_VALUE == 0 {
            return None;
        }
        reader.consume(look.length());
        let (run, size) = ((look.0 >> 12 & 15) as usize, look.0 >> 8 & 15);
        Some(RunValue { run, size, value: look.0 as i32 >> 16 })
    }

    /// Reads a symbol and its value that one look did not see.
    #[inline(always)]
    pub(super) fn long_run_value(&self, reader: &mut BitReader<'_>) -> Result<RunValue, Damage> {
        reader.refill(31);
        let symbol = self.symbol_after(self.looks[reader.peek(LOOK) as usize], reader)?;
        let size = u32::from(symbol & 15);
        let value = if size > 0 { extend(reader.take(size), size) } else { 0 };
        Ok(RunValue { run: usize::from(symbol >> 4), size, value })
    }

    /// Reads a symbol alone.
    #[inline(always)]
    pub(super) fn symbol(&self, reader: &mut BitReader<'_>) -> Result<u8, Damage> {
        reader.refill(31);
        let look = self.looks[reader.peek(LOOK) as usize];
        if look.0 & Look::WITH_VALUE != 0 {
            reader.consume(look.length() - (look.0 >> 8 & 15));
            return Ok((look.0 >> 8) as u8);
        }
        self.symbol_after(look, reader)
    }

    fn symbol_after(&self, look: Look, reader: &mut BitReader<'_>) -> Result<u8, Damage> {
        if look.length() > 0 {
            reader.consume(look.length());
            return Ok((look.0 >> 8) as u8);
        }
        let (symbol, length) = self.long_symbol(reader.peek(16)).ok_or(Damage::NoSuchCode)?;
        reader.consume(length);
        Ok(symbol)
    }

    /// The symbol and the length of a code that is longer than a look.
    #[inline(never)]
    fn long_symbol(&self, code: u32) -> Option<(u8, u32)> {
        let length = (LOOK + 1..=16).find(|&length| code < self.limits[length as usize])?;
        let index = (code >> (16 - length)) as i32 + self.offsets[length as usize];
        Some((self.codes.symbols[index as usize & 255], length))
    }
}

/// The value of `size` bits: those that begin with 0 are negative. Without a branch, which would be guessed wrong half of the time.
#[inline(always)]
pub(super) fn extend(bits: u32, size: u32) -> i32 {
    let if_negative = (bits >> (size - 1)) as i32 - 1;
    bits as i32 + (if_negative & (1 - (1 << size)))
}

#[cfg(test)]
mod tests {
    use super::super::standard_codes;
    use super::*;

    #[test]
    fn values_cover_both_signs_of_their_size() {
        assert_eq!([0, 1].map(|bits| extend(bits, 1)), [-1, 1]);
        assert_eq!([0, 3, 4, 7].map(|bits| extend(bits, 3)), [-7, -4, 4, 7]);
    }

    /// Codes one after the other, each with its value, against what was put in.
    #[test]
    fn every_standard_code_decodes_to_its_symbol_and_value() {
        for codes in standard_codes::ac() {
            let table = Huffman::new(&codes).unwrap();
            let (mut text, mut expected) = (String::new(), Vec::new());
            let (mut code, mut index) = (0_u32, 0);
            for length in 1..=16 {
                for _ in 0..codes.counts[length - 1] {
                    let symbol = codes.symbols[index];
                    let size = u32::from(symbol & 15);
                    for bits in [0, (1 << size) - 1, (1 << size) / 2] {
                        text += &format!("{code:0length$b}");
                        if size > 0 {
                            text += &format!("{bits:0width$b}", width = size as usize);
                        }
                        let value = if size > 0 { extend(bits, size) } else { 0 };
                        expected.push(RunValue { run: usize::from(symbol >> 4), size, value });
                    }
                    code += 1;
                    index += 1;
                }
                code <<= 1;
            }
            text += &"0".repeat(8 - text.len() % 8);
            let mut bytes = Vec::new();
            for byte in text.as_bytes().chunks(8) {
                let byte = byte.iter().fold(0_u8, |byte, &digit| byte << 1 | (digit - b'0'));
                bytes.push(byte);
                if byte == 0xff {
                    bytes.push(0);
                }
            }
            let mut reader = BitReader::new(&bytes, 0);
            for expected in expected {
                assert_eq!(table.run_value(&mut reader).unwrap(), expected);
            }
            assert!(!reader.is_overdrawn());
        }
    }

    #[test]
    fn more_codes_than_there_are_is_damage() {
        let mut counts = [0; 16];
        counts[1] = 4;
        assert!(Huffman::new(&Codes::new(counts, &[1, 2, 3, 4])).is_err());
        counts[1] = 3;
        assert!(Huffman::new(&Codes::new(counts, &[1, 2, 3])).is_ok());
    }
}
