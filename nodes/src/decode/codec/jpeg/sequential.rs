//! Blocks of baseline and extended sequential scans, Huffman-coded.

use super::super::super::error::DecodeError;
use super::bits::{BitReader, Damage};
use super::frame::MAX_COMPONENTS;
use super::huffman::{Huffman, LOOK};
use super::idct::Block;
use super::scan::BlockCoder;
use super::tables::{NATURAL_ORDER, Quant};
use super::truncated;

/// So many looks are taken before more bits are taken up.
const LOOKS: u32 = 5;

/// A component's tables in a scan.
#[derive(Clone, Copy)]
pub(super) struct Coded<'t> {
    pub(super) dc: &'t Huffman,
    pub(super) ac: &'t Huffman,
    pub(super) quant: Quant,
}

/// Decodes whole blocks, and multiplies the coefficients with the steps of quantisation.
pub(super) struct Sequential<'a, 't> {
    reader: BitReader<'a>,
    components: [Option<Coded<'t>>; MAX_COMPONENTS],
    previous: [i32; MAX_COMPONENTS],
}

impl<'a, 't> Sequential<'a, 't> {
    pub(super) fn new(reader: BitReader<'a>, components: [Option<Coded<'t>>; MAX_COMPONENTS]) -> Self {
        Self { reader, components, previous: [0; MAX_COMPONENTS] }
    }
}

impl Coded<'_> {
    #[inline(always)]
    fn block(&self, reader: &mut BitReader<'_>, previous: &mut i32, block: &mut Block) -> Result<usize, Damage> {
        *previous = previous.wrapping_add(self.dc.run_value(reader)?.value);
        block[0] = (*previous as i16).wrapping_mul(self.quant[0]);
        let (mut n, mut last) = (1, 0);
        'block: while n < 64 {
            reader.top_up(LOOKS * LOOK);
            for _ in 0..LOOKS {
                let at_once = self.ac.run_value_at_once(reader);
                let coefficient = at_once.map_or_else(|| self.ac.long_run_value(reader), Ok)?;
                if coefficient.size > 0 {
                    // At most 63 + 15.
                    last = n + coefficient.run;
                    let place = usize::from(NATURAL_ORDER[last & 127] & 63);
                    block[place] = (coefficient.value as i16).wrapping_mul(self.quant[place]);
                    n = last + 1;
                } else if coefficient.run < 15 {
                    break 'block;
                } else {
                    n += 16;
                }
                if n > 63 || at_once.is_none() {
                    continue 'block;
                }
            }
        }
        if last > 63 { Err(Damage::BeyondBlock) } else { Ok(last) }
    }
}

impl BlockCoder for Sequential<'_, '_> {
    #[inline(always)]
    fn block(&mut self, slot: usize, block: &mut Block) -> Result<usize, Damage> {
        let coded = self.components[slot].as_ref().expect("tables for each component of the scan");
        let mut reader = self.reader;
        let result = coded.block(&mut reader, &mut self.previous[slot], block);
        self.reader = reader;
        result
    }

    fn restart(&mut self, n: u8) -> Result<(), DecodeError> {
        self.previous = [0; MAX_COMPONENTS];
        self.reader.restart(n)
    }

    #[inline(always)]
    fn check(&self) -> Result<(), DecodeError> {
        if self.reader.is_overdrawn() { Err(truncated("a scan ends early")) } else { Ok(()) }
    }

    fn refusal(&self, damage: Damage) -> DecodeError {
        self.reader.refusal(damage)
    }

    fn place(&self) -> usize {
        self.reader.place()
    }
}
