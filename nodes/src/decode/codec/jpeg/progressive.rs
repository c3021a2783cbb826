//! Blocks of progressive scans, Huffman-coded: each scan brings some coefficients, or one bit more of them.

use super::super::super::error::DecodeError;
use super::bits::{BitReader, Damage};
use super::frame::MAX_COMPONENTS;
use super::huffman::Huffman;
use super::idct::Block;
use super::scan::{BlockCoder, Scan};
use super::tables::NATURAL_ORDER;
use super::truncated;

/// What a scan brings.
#[derive(Clone, Copy)]
pub(super) enum Part<'t> {
    /// The first coefficient, with a table for each component.
    DcFirst([Option<&'t Huffman>; MAX_COMPONENTS]),
    /// One more bit of the first coefficient.
    DcRefine,
    /// Other coefficients.
    AcFirst(&'t Huffman),
    /// One more bit of other coefficients.
    AcRefine(&'t Huffman),
}

/// Decodes one part of each block.
pub(super) struct Progressive<'a, 't> {
    reader: BitReader<'a>,
    part: Part<'t>,
    scan: Scan,
    previous: [i32; MAX_COMPONENTS],
    /// Blocks to come that have no more coefficients in this scan.
    empty_blocks: u32,
}

impl<'a, 't> Progressive<'a, 't> {
    pub(super) fn new(reader: BitReader<'a>, part: Part<'t>, scan: Scan) -> Self {
        Self { reader, part, scan, previous: [0; MAX_COMPONENTS], empty_blocks: 0 }
    }

    fn dc_first(
        &mut self,
        reader: &mut BitReader<'_>,
        slot: usize,
        table: &Huffman,
        block: &mut Block,
    ) -> Result<(), Damage> {
        let previous = &mut self.previous[slot];
        *previous = previous.wrapping_add(table.run_value(reader)?.value);
        block[0] = (*previous << self.scan.low) as i16;
        Ok(())
    }

    #[inline(always)]
    fn ac_first(&mut self, reader: &mut BitReader<'_>, table: &Huffman, block: &mut Block) -> Result<(), Damage> {
        if self.empty_blocks > 0 {
            self.empty_blocks -= 1;
            return Ok(());
        }
        let mut n = self.scan.first;
        while n <= self.scan.last {
            let coefficient = table.run_value(reader)?;
            if coefficient.size == 0 {
                if coefficient.run < 15 {
                    self.empty_blocks = Self::read_empty_blocks(reader, coefficient.run) - 1;
                    break;
                }
                n += 16;
                continue;
            }
            n += coefficient.run;
            if n > 63 {
                return Err(Damage::BeyondBlock);
            }
            block[usize::from(NATURAL_ORDER[n])] = (coefficient.value << self.scan.low) as i16;
            n += 1;
        }
        Ok(())
    }

    /// The length of a run of blocks, this one included.
    fn read_empty_blocks(reader: &mut BitReader<'_>, log: usize) -> u32 {
        (1 << log) + reader.read(log as u32)
    }

    #[inline(always)]
    fn ac_refine(&mut self, reader: &mut BitReader<'_>, table: &Huffman, block: &mut Block) -> Result<(), Damage> {
        let step = 1_i16 << self.scan.low;
        let mut n = self.scan.first;
        if self.empty_blocks == 0 {
            while n <= self.scan.last {
                let symbol = table.symbol(reader)?;
                let mut zeros = symbol >> 4;
                let mut value = 0;
                match symbol & 15 {
                    0 if zeros < 15 => {
                        self.empty_blocks = Self::read_empty_blocks(reader, usize::from(zeros));
                        break;
                    }
                    0 => {}
                    1 => value = if reader.read_bit() { step } else { -step },
                    _ => return Err(Damage::BadRefinement),
                }
                // Over coefficients that are known, refining them, and over so many that stay zero.
                while n <= self.scan.last {
                    let known = &mut block[usize::from(NATURAL_ORDER[n])];
                    if *known != 0 {
                        Self::refine(reader, known, step);
                    } else if zeros == 0 {
                        break;
                    } else {
                        zeros -= 1;
                    }
                    n += 1;
                }
                if value != 0 {
                    if n > 63 {
                        return Err(Damage::BeyondBlock);
                    }
                    block[usize::from(NATURAL_ORDER[n])] = value;
                }
                n += 1;
            }
        }
        if self.empty_blocks > 0 {
            for &place in NATURAL_ORDER.get(n..=self.scan.last).unwrap_or_default() {
                let known = &mut block[usize::from(place)];
                if *known != 0 {
                    Self::refine(reader, known, step);
                }
            }
            self.empty_blocks -= 1;
        }
        Ok(())
    }

    /// A bit says whether the coefficient grows by a step.
    #[inline(always)]
    fn refine(reader: &mut BitReader<'_>, known: &mut i16, step: i16) {
        if reader.read_bit() && *known & step == 0 {
            *known = known.wrapping_add(if *known >= 0 { step } else { -step });
        }
    }
}

impl BlockCoder for Progressive<'_, '_> {
    #[inline(always)]
    fn block(&mut self, slot: usize, block: &mut Block) -> Result<usize, Damage> {
        let mut reader = self.reader;
        let result = match self.part {
            Part::DcFirst(tables) => {
                let table = tables[slot].expect("a table for each component of the scan");
                self.dc_first(&mut reader, slot, table, block)
            }
            Part::DcRefine => {
                if reader.read_bit() {
                    block[0] |= 1 << self.scan.low;
                }
                Ok(())
            }
            Part::AcFirst(table) => self.ac_first(&mut reader, table, block),
            Part::AcRefine(table) => self.ac_refine(&mut reader, table, block),
        };
        self.reader = reader;
        result.map(|()| self.scan.last)
    }

    fn restart(&mut self, n: u8) -> Result<(), DecodeError> {
        self.previous = [0; MAX_COMPONENTS];
        self.empty_blocks = 0;
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
