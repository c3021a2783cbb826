//! The tables that stand between the scans: quantisation, Huffman codes, the restart interval.

use super::super::super::error::DecodeError;
use super::corrupt;
use super::huffman::Codes;
use super::segments::marker;
use super::standard_codes;

/// From the order in which coefficients are coded to rows of a block. The last entries take what runs beyond the block.
pub(super) static NATURAL_ORDER: [u8; 128] = {
    let mut order = [63; 128];
    let (mut x, mut y) = (0_usize, 0_usize);
    let mut n = 0;
    while n < 64 {
        order[n] = (y * 8 + x) as u8;
        n += 1;
        // Up and to the right on even diagonals, down and to the left on odd ones.
        if (x + y) % 2 == 0 {
            if x == 7 {
                y += 1;
            } else if y == 0 {
                x += 1;
            } else {
                x += 1;
                y -= 1;
            }
        } else if y == 7 {
            x += 1;
        } else if x == 0 {
            y += 1;
        } else {
            x -= 1;
            y += 1;
        }
    }
    order
};

/// Steps of quantisation, in rows of a block.
pub(super) type Quant = [i16; 64];

/// How contexts of arithmetic coding are chosen, by number of table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditioning {
    /// Logarithms of the differences that are not small any more, and that are large.
    pub(super) dc: [(u8, u8); 16],
    /// The last coefficient of those that are near the first.
    pub(super) ac: [u8; 16],
}

impl Default for Conditioning {
    fn default() -> Self {
        Self { dc: [(0, 1); 16], ac: [5; 16] }
    }
}

/// The tables in force at a place in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    quant: [Option<Quant>; 4],
    pub(super) dc: [Option<Codes>; 4],
    pub(super) ac: [Option<Codes>; 4],
    pub(super) conditioning: Conditioning,
    /// Units between restart markers; 0: there are none.
    pub(super) restart_interval: usize,
}

impl Tables {
    /// Takes in a segment, if it is one of tables.
    pub(super) fn read(&mut self, marker: u8, body: &[u8]) -> Result<(), DecodeError> {
        match marker {
            marker::DQT => self.read_quant(body),
            marker::DHT => self.read_codes(body),
            marker::DAC => self.read_conditioning(body),
            marker::DRI => {
                let &[high, low] = body else {
                    return Err(corrupt("its restart interval has the wrong length"));
                };
                self.restart_interval = usize::from(high) << 8 | usize::from(low);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn quant(&self, index: usize) -> Result<&Quant, DecodeError> {
        let table = self.quant.get(index).and_then(Option::as_ref);
        table.ok_or_else(|| corrupt(format!("quantisation table {index} is missing")))
    }

    /// Puts the codes of the standard's annex where none were given: frames of motion JPEG leave them out.
    pub(super) fn assume_standard_codes(&mut self) {
        for (table, codes) in self.dc.iter_mut().zip(standard_codes::dc()) {
            table.get_or_insert(codes);
        }
        for (table, codes) in self.ac.iter_mut().zip(standard_codes::ac()) {
            table.get_or_insert(codes);
        }
    }

    fn read_quant(&mut self, mut body: &[u8]) -> Result<(), DecodeError> {
        let wrong = || corrupt("a quantisation table has the wrong length");
        while let [kind, rest @ ..] = body {
            let index = usize::from(kind & 15);
            let size = if kind >> 4 == 0 { 1 } else { 2 };
            let (steps, rest) = rest.split_at_checked(64 * size).ok_or_else(wrong)?;
            let slot = self.quant.get_mut(index);
            let slot = slot.ok_or_else(|| corrupt(format!("there is no quantisation table {index}")))?;
            let table = slot.insert([0; 64]);
            for (step, &place) in steps.chunks_exact(size).zip(&NATURAL_ORDER) {
                let step = step.iter().fold(0, |step, &byte| step << 8 | u16::from(byte));
                // Products are taken modulo 2^16, so the sign does not matter.
                table[usize::from(place)] = step as i16;
            }
            body = rest;
        }
        Ok(())
    }

    fn read_conditioning(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        let wrong = || corrupt("the conditioning of arithmetic coding is none");
        let (pairs, []) = body.as_chunks::<2>() else {
            return Err(wrong());
        };
        for &[kind, value] in pairs {
            let index = usize::from(kind & 15);
            match (kind >> 4, value & 15, value >> 4) {
                (0, lower, upper) if lower <= upper => self.conditioning.dc[index] = (lower, upper),
                (1, ..) => self.conditioning.ac[index] = value,
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }

    fn read_codes(&mut self, mut body: &[u8]) -> Result<(), DecodeError> {
        let wrong = || corrupt("a Huffman table has the wrong length");
        while let [kind, rest @ ..] = body {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or_else(wrong)?;
            let n = counts.iter().map(|&count| usize::from(count)).sum::<usize>();
            if n > 256 {
                return Err(corrupt("a Huffman table has more than 256 codes"));
            }
            let (symbols, rest) = rest.split_at_checked(n).ok_or_else(wrong)?;
            let tables = if kind & 0x10 == 0 { &mut self.dc } else { &mut self.ac };
            let slot = tables.get_mut(usize::from(kind & !0x10));
            let slot = slot.ok_or_else(|| corrupt(format!("there is no Huffman table {kind:02x}")))?;
            *slot = Some(Codes::new(*counts, symbols));
            body = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::NATURAL_ORDER;

    #[test]
    fn the_order_of_coefficients_is_the_standards_zigzag() {
        let begins = [0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5];
        let ends = [58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63];
        assert_eq!(NATURAL_ORDER[..16], begins);
        assert_eq!(NATURAL_ORDER[48..64], ends);
        let mut all = NATURAL_ORDER[..64].to_vec();
        all.sort();
        assert!(all.into_iter().eq(0..64));
    }
}
